"""The health check and the prolog of docs/integrations.md, run by a real slurmd: an error on the node drains it."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.skips import cannot

from . import faults, hosts
from .command import built
from .conftest import why_not
from .layers import CHECKOUT
from .promises import eventually
from .slurm import Slurm

PAGE = (CHECKOUT / "docs" / "integrations.md").read_text(encoding="utf-8")
SCRIPTS = {
    path: script
    for script, path in re.findall(r"^```sh\n(#!/bin/sh\n# (/etc/slurm/\S+)\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
}
(SETTINGS,) = re.findall(r"^```text\n(HealthCheckProgram=.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


class Guarded(Slurm):
    """Slurm on one node, whose configuration has the lines of the page."""

    def _configure(self, root: Path) -> None:
        super()._configure(root)
        with (root / "etc/slurm/slurm.conf").open("a") as file:
            file.write(SETTINGS)

    def becomes(self, state: str, reason: str) -> None:
        """Wait until Slurm gives the node this state for this reason."""
        wanted = f"{state} {reason}"
        assert eventually(self.state, wanted, 60) == wanted

    def state(self) -> str:
        return self.lab.head("sinfo", "-h", "-N", "-o", "%T %E").stdout.strip()


@pytest.fixture
def slurm() -> Iterator[Guarded]:
    if why := why_not():
        cannot(why)
    if missing := [program for program in ("slurmctld", "slurmd", "srun", "munged") if not shutil.which(program)]:
        cannot(f"the lab needs {', '.join(missing)}: apt-get install slurm-wlm munge")
    with hosts.lab(1) as lab:
        (node,) = lab.nodes
        real = {Path(sys.base_prefix).resolve(), CHECKOUT} - {Path("/usr")}
        lab.remake(node, real={str(place).lstrip("/"): place for place in real})
        for path, script in SCRIPTS.items():
            node.write(path, script, 0o755)
        node.write("/opt/ncheck/bin/ncheck", f'#!/bin/sh\nexec {shlex.join(built())} "$@"\n', 0o755)
        slurm = Guarded(lab)
        slurm.start()
        lab.head("scancel", slurm.job)
        yield slurm


def test_slurm_runs_the_scripts_and_drains_a_node_for_its_own_error_alone(slurm: Guarded) -> None:
    (node,) = slurm.lab.nodes
    assert sorted(SCRIPTS) == ["/etc/slurm/ncheck-health", "/etc/slurm/prolog.d/ncheck"]
    assert node.path("/run/ncheck/local.json").exists()  # slurmd runs the health check before it registers
    done = slurm.lab.head("srun", "-w", node.name, "hostname", check=False)
    assert (done.returncode, done.stdout) == (0, f"{node.name}\n"), done

    faults.infiniband(node, polling=("mlx5_0",))
    node.sh("kill $(cat /mnt/slurmd.pid); while [ -e /mnt/slurmd.pid ]; do sleep 0.1; done; slurmd")
    slurm.becomes("drained", "ncheck: NC402 ib-port-polling")

    slurm.tell("update", f"nodename={node.name}", "state=resume")
    slurm.becomes("idle", "none")
    slurm.lab.head("sbatch", "--wrap", "touch /run/started")
    slurm.becomes("drained", "Prolog error")
    assert not node.path("/run/started").exists()
