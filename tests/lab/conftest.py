"""The lab for tests: one a worker, skipped with a reason where it cannot be."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import ncheck as ncheck_package
import ncheck_checks
import pytest

from tests.skips import cannot

from . import hosts, layers, running_jobs
from .command import Run, ncheck
from .hosts import Lab
from .namespaces import INIT
from .promises import HANGS, PATIENT
from .wiring import SEVERAL_NICS

NEEDED = {
    "cc": "gcc", "ethtool": "ethtool", "ibstat": "infiniband-diags", "ip": "iproute2", "mpicc": "libopenmpi-dev",
    "mpirun": "openmpi-bin", "nft": "nftables", "nsenter": "util-linux", "ssh": "openssh-client",
    "/usr/sbin/sshd": "openssh-server", "/usr/bin/python3": "python3",
}  # fmt: skip


def why_not() -> str:
    """Say why the lab cannot run here; nothing where it can."""
    if not sys.platform.startswith("linux"):
        return "the lab is made of Linux namespaces"
    if os.geteuid():
        return "the lab needs root, to make hosts of namespaces: sudo make test"
    missing = sorted({package for tool, package in NEEDED.items() if not shutil.which(tool)})
    if not list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")):
        missing.append("libfaketime")
    if missing:
        return f"the lab needs packages: apt-get install {' '.join(missing)}"
    tried = subprocess.run(["unshare", *INIT, "--mount-proc", "true"], capture_output=True, text=True, check=False)
    return f"the lab needs namespaces, and here root may make none: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.fixture(scope="session")
def running_lab() -> Iterator[Lab]:
    """Four nodes and a head, for all tests of this worker."""
    if why := why_not():
        cannot(why)
    with hosts.lab(4) as lab:
        yield lab


@pytest.fixture
def lab(running_lab: Lab) -> Iterator[Lab]:
    """Yield the lab, all of it healthy; nodes that the test touched are made anew after it."""
    yield running_lab
    running_lab.heal()


@pytest.fixture(scope="session")
def running_wide_lab() -> Iterator[Lab]:
    """Three nodes with several NICs each, and a head with one, for all tests of this worker."""
    if why := why_not():
        cannot(why)
    with hosts.lab(3, SEVERAL_NICS) as lab:
        yield lab


@pytest.fixture
def wide_lab(running_wide_lab: Lab) -> Iterator[Lab]:
    """Yield the lab of several NICs; nodes that the test touched are made anew after it."""
    yield running_wide_lab
    running_wide_lab.heal()


def this_interpreter() -> dict[str, Path]:
    """Map the folders of this interpreter and of the ncheck under test, as a node names them, to themselves."""
    prefixes = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()} - {Path("/usr")}
    roots = {Path(package.__file__ or "").resolve().parents[1] for package in (ncheck_package, ncheck_checks)}
    outside = {root for root in roots if not any(root.is_relative_to(prefix) for prefix in prefixes)}
    return {str(place).lstrip("/"): place for place in prefixes | outside}


def prepare_jobs(lab: Lab) -> None:
    """Give all nodes this interpreter, an NCCL and a torch for CUDA for it, and a job to run with it."""
    lab.remake(*lab.nodes, real=this_interpreter())
    for node in lab.nodes:
        node.write("/run/job.py", (layers.STANDINS / "job.py").read_text())
        layers.nccl(node.path("/run/site"), "2.20.5")
        layers.torch(node.path("/run/site"))


@pytest.fixture
def job_lab(lab: Lab) -> Lab:
    """Yield the lab, prepared for jobs."""
    prepare_jobs(lab)
    return lab


# As pip writes it; without what a sixth of its time goes to.
TORCHRUN = """
import gc, sys
gc.disable()
sys.modules.update(numpy=None, pynvml=None)
from torch.distributed.run import main
main()
"""


@pytest.fixture
def torch_lab(wide_lab: Lab) -> Lab:
    """Give all nodes this interpreter with its torch, a torchrun of it, and 127.0.1.1 for their own names."""
    if not find_spec("torch"):
        cannot("torch is not installed beside the tests: make test TORCH=1")
    wide_lab.remake(*wide_lab.nodes, real=this_interpreter())
    for node in wide_lab.nodes:
        node.write("/usr/local/bin/torchrun", f"#!{sys.executable}\n{TORCHRUN}", 0o755)
        node.sh(f"sed '1a 127.0.1.1 {node.name}' /etc/hosts >/run/hosts; cat /run/hosts >/etc/hosts")
    return wide_lab


@pytest.fixture
def triage_lab(lab: Lab) -> Lab:
    """Give all nodes what jobs need: programs of Open MPI, and this interpreter with its torch, if it has one."""
    running_jobs.prepare(lab, this_interpreter())
    return lab


def once(place: Path, run: Callable[[], Run]) -> Run:
    """Return the run that the first worker made: the labs of all workers are alike."""
    with place.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if made := file.read():
            found: Run = pickle.loads(made)  # noqa: S301  our own
            return found
        file.write(pickle.dumps(first := run()))
        return first


@pytest.fixture(scope="session")
def of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this run of the tests."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def healthy(running_lab: Lab, of_all_workers: Path) -> Run:
    """Return what ncheck says of the healthy lab."""
    run = once(of_all_workers / "healthy", lambda: ncheck(running_lab, *PATIENT, hard_limit=HANGS))
    assert run.exit_code == 0, f"the lab is not healthy, or this machine too busy: {run.report['findings']}"
    return run


@pytest.fixture(scope="session")
def wide_healthy(running_wide_lab: Lab, of_all_workers: Path) -> Run:
    """Return what ncheck says of the lab of several NICs before anything is done to it."""
    return once(of_all_workers / "wide-healthy", lambda: ncheck(running_wide_lab, *PATIENT, hard_limit=HANGS))
