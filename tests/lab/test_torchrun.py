"""The printed torchrun lines run gloo across hosts that take their own names for 127.0.1.1, as Debian sets it up."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from .hosts import Lab
from .launching import Launched, Watch, launched
from .promises import planned

PROGRAM = Path(__file__).with_name("torch_sums.py")
SUMMED = [f"rank {rank} of 2 on node0{rank + 1}: 8388608 bytes" for rank in (0, 1)]


def lines(printed: str) -> dict[str, str]:
    """Map each node to its line: "# on node01:" stands above each."""
    words = printed.splitlines()
    return {above.removeprefix("# on ").rstrip(":"): line for above, line in zip(words[::2], words[1::2], strict=True)}


def typed(lab: Lab, by_node: Mapping[str, str]) -> dict[str, Launched]:
    """Type each line on its node, all at once, until all have ended or one cannot connect."""
    over = Event()

    def run(name: str) -> Launched:
        node = next(node for node in lab.nodes if node.name == name)
        return launched(node, by_node[name], Watch(300, "connectFullMesh failed", over=over))

    with ThreadPoolExecutor(len(by_node)) as pool:
        return dict(zip(by_node, pool.map(run, by_node), strict=True))


def test_the_printed_lines_run_gloo_across_hosts_that_call_themselves_127_0_1_1(torch_lab: Lab) -> None:
    for node in torch_lab.nodes:
        node.write("/root/sums.py", PROGRAM.read_text())
    printed = planned(torch_lab, "--for", "torchrun", "--", "python", "sums.py", "60", nodes=torch_lab.names[:2]).stdout
    by_node = lines(printed)

    done = typed(torch_lab, by_node)

    assert {name: run.exit_code for name, run in done.items()} == {"node01": 0, "node02": 0}, done
    assert sorted(re.findall(r"rank \d of .*", "\n".join(run.said for run in done.values()))) == SUMMED

    bare = {name: re.sub(r"GLOO_SOCKET_IFNAME=\S+ ", "", line) for name, line in by_node.items()}
    job = f"WORLD_SIZE=2 MASTER_ADDR={torch_lab.nodes[0].address} MASTER_PORT=29500 {sys.executable} sums.py 20"
    ranks = enumerate(bare.items())
    trapped = typed(
        torch_lab, {name: re.sub(r"torchrun .*", f"RANK={rank} {job}", line) for rank, (name, line) in ranks}
    )

    assert any("remote=[127.0.1.1]" in run.said for run in trapped.values()), trapped
    assert not any("8388608 bytes" in run.said for run in trapped.values()), trapped
