"""The line that is printed runs a real all-reduce with Debian's own mpirun; where it is not followed, the trap shuts.

Every test shows both: the line as it was printed, then the trap that it goes round.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.skips import cannot

from . import faults, hosts
from .command import Run, built, listing
from .conftest import once, why_not
from .hosts import Lab
from .launching import Launched, Watch, launched
from .layers import ADA
from .node import Node
from .promises import PATIENT, nothing_left, planned
from .wiring import SEVERAL_NICS

PROGRAM = ("--for", "mpirun", "--", "allreduce")
BEGUN, SMALL, LARGE = "rank 0 on node01", "8 bytes over", "8388608 bytes over"
# What Open MPI says when it tried an address that is another host's too; its line breaks after "process".
ASTRAY = r"connect\(\) to (172\.17\.0\.1|192\.168\.49\.1):\d+ failed|cannot find a corresponding (process|endpoint)"
REFUSED = "An invalid value was given for btl_tcp_if_include"


def ended_well(run: Launched, size: int = 3) -> bool:
    """Tell whether every rank summed all; what mpirun remarks beside that stands there too."""
    ranks = {f"rank {number} on node0{number + 1}" for number in range(size)}
    summed = {f"{SMALL} {size} ranks", f"{LARGE} {size} ranks"}
    return run.exit_code == 0 and set(run.said.splitlines()) >= ranks | summed


def without_interfaces(line: str) -> str:
    return re.sub(r"--mca (btl|oob)_tcp_if_include \S+ ", "", line)


def held_to(line: str, network: str) -> str:
    """Return the line with MPI's own traffic on this network, and the launch as it was."""
    return re.sub(r"(--mca btl_tcp_if_include) \S+", rf"\1 {network}", line)


@pytest.fixture(scope="session")
def line(running_wide_lab: Lab, of_all_workers: Path) -> str:
    """Return the line for the healthy lab."""
    return once(of_all_workers / "wide-line", lambda: planned(running_wide_lab, *PROGRAM)).stdout


def test_docker0_alike_everywhere_stops_mpirun_and_the_printed_line_does_not(wide_lab: Lab, line: str) -> None:
    node = wide_lab.nodes[0]

    with nothing_left(wide_lab):
        done = launched(node, line)
    assert ended_well(done), done

    trapped = launched(node, without_interfaces(line), Watch(enough=ASTRAY))
    assert re.search(ASTRAY, trapped.said), trapped
    assert LARGE not in trapped.said
    wide_lab.remake(*wide_lab.nodes)


def test_the_line_for_port_10001_needs_no_other_port_for_an_ordinary_user(wide_lab: Lab) -> None:
    for node in wide_lab.nodes:
        faults.firewall(node, "tcp dport 22 reject with tcp reset")
    line = planned(wide_lab, "-p", "10001", *PROGRAM, user=ADA, nodes=wide_lab.names[:2]).stdout

    with nothing_left(wide_lab):
        done = launched(wide_lab.nodes[0], line, user=ADA)
    assert ended_well(done, 2), done

    refused = launched(wide_lab.nodes[0], line.replace("-p 10001", ""), user=ADA)
    assert "Connection refused" in refused.said
    assert refused.exit_code not in (0, None)


def test_the_line_runs_from_a_head_that_is_on_the_other_network_alone(wide_lab: Lab, line: str) -> None:
    assert re.findall(r"_if_include (\S+)", line) == ["10.78.0.0/24", "10.77.0.0/24"]

    with nothing_left(wide_lab):
        done = launched(wide_lab, line)

    assert ended_well(done), done
    # mpirun's own race with each ssh that it starts, told now and then, is none of the line's.
    said = [line for line in done.said.splitlines() if "Warning: setpgid(" not in line]
    assert not [line for line in said if "warning" in line.lower()], done


def test_variables_of_a_slurm_job_that_is_over_do_not_stop_the_line(wide_lab: Lab, line: str) -> None:
    listing(wide_lab, [f"{name} slots=1" for name in wide_lab.names[:2]])
    left_over = "export SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NODELIST=n9 SLURM_NNODES=1 SLURM_TASKS_PER_NODE=1; "
    typed = f'line=$({shlex.join([*built(), "plan", "nodes.txt", *PATIENT, *PROGRAM])} 2>/dev/null) && eval "$line"'

    done = launched(wide_lab, left_over + typed)
    assert ended_well(done, 2), done

    trapped = launched(wide_lab, left_over + line, Watch(enough="already filled"))
    assert "already filled" in trapped.said, trapped
    wide_lab.remake(*wide_lab.nodes)


def test_one_subnet_under_two_names_is_named_by_its_addresses(wide_lab: Lab, line: str) -> None:
    assert "--mca btl_tcp_if_include 10.78.0.0/24" in line

    by_name = launched(wide_lab.nodes[0], held_to(line, "fast0"), Watch(enough=REFUSED, then=3))

    assert REFUSED in by_name.said, by_name
    assert LARGE not in by_name.said
    wide_lab.remake(*wide_lab.nodes)


@dataclass(frozen=True)
class Broken:
    """A fault of the fast network, as it is told; and how far a job of node01 and one more node comes on it."""

    fault: str
    node: int
    told: str
    said: str
    never: str


BROKEN = (
    Broken("a filter in one direction", 2, "node02 reaches node01 on 10.78.0.0/24, but node01 does not reach node02",
           BEGUN, SMALL),
    Broken("a NIC that goes nowhere", 3,
           "node03 cannot reach any node on 10.78.0.0/24, and no node can reach it", BEGUN, SMALL),
    Broken("a switch that loses large packets", 4, "large packets from and to node04 are lost on 10.78.0.0/24",
           SMALL, LARGE),
)  # fmt: skip


@dataclass(frozen=True)
class Tried:
    """The plan for a network that is not whole, its run on all nodes, and one on that network for each fault."""

    plan: Run
    done: Launched
    forced: Mapping[str, Launched]


@pytest.fixture(scope="module")
def tried() -> Iterator[Tried]:
    """Five nodes; the last is without a fault, and the second filters only what the first sends."""
    if why := why_not():
        cannot(why)
    with hosts.lab(5, SEVERAL_NICS) as lab:
        first, filtering, astray, shrunk, other = lab.nodes
        # Rank 0 is the first to speak, and to rank 1: these two may meet only if it is the other who calls.
        faults.firewall(filtering, "ip saddr 10.78.0.1 tcp flags & (syn | ack) == syn drop")
        faults.unplug_fast(lab, astray)
        faults.shrink_switch_port(lab, shrunk)
        plan = planned(lab, "--force", *PROGRAM)  # the network that is used instead is slower: NC329
        done = launched(first, plan.stdout)

        def forced(broken: Broken, host: Node | Lab) -> Launched:
            line = re.sub(r"-np \d+ -H \S+", f"-np 2 -H node01:1,node{broken.node:02}:1", plan.stdout)
            # What goes well says all at once: what is not said in two seconds is never said.
            return launched(host, held_to(line, "10.78.0.0/24"), Watch(enough=broken.said, then=2))

        # Ranks that wait use the CPU, so they wait side by side. Each mpirun is on a host of its own: all are pid 2,
        # and they name their files by that.
        with ThreadPoolExecutor(len(BROKEN)) as pool:
            ended = pool.map(forced, BROKEN, (first, other, lab))
            yield Tried(plan, done, dict(zip((one.fault for one in BROKEN), ended, strict=True)))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.fault)
def test_a_network_that_is_not_whole_is_named_with_its_fault_and_stops_the_job(tried: Tried, broken: Broken) -> None:
    forced = tried.forced[broken.fault]

    assert broken.told in tried.plan.stderr
    assert broken.said in forced.said, forced
    # Which end of two connects is chance: through a filter in one direction the job comes now and then.
    assert broken.never not in forced.said or broken.fault == "a filter in one direction", forced


def test_a_network_that_is_not_whole_is_gone_round(tried: Tried) -> None:
    assert "10.78.0.0/24 is not used: " in tried.plan.stderr
    assert "--mca btl_tcp_if_include 10.77.0.0/24" in tried.plan.stdout
    assert "NCCL_SOCKET_IFNAME==eth0" in tried.plan.stdout
    assert ended_well(tried.done, 5), tried.done
