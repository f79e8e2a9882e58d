"""A version is not the expected one

## What it finds
Nodes where the driver, CUDA, NCCL, MPI, Horovod, Python or a framework is not installed, or has not the version that
`--expect 'nccl=2.21.5,driver>=550,torch=2.3'` or `[expect]` in ncheck.toml says. A version fits if it begins with the
expected numbers: 550.54.15 is 550.

## Why it matters
Nodes that agree can agree on the wrong version: an image that was rolled back everywhere looks like a healthy cluster.

## What to type
`modinfo -F version nvidia` (which driver is installed, loaded or not), `mpirun --version` or `python3 -m pip list` on
the named nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.expected import ExpectedFacts, fits, shown
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts

# Under which name a version is expected: what people call it, and the command that shows it.
_NAMES = {
    "driver": ("NVIDIA driver", "modinfo -F version nvidia"),
    "cuda": ("CUDA of the driver", "modinfo -F version nvidia"),
    "nccl": ("NCCL", "ldconfig -p | grep nccl"), "mpi": ("MPI", "mpirun --version"),
    "horovod": ("Horovod", "horovodrun --check-build"), "python": ("Python", "python3 --version"),
}  # fmt: skip


@node_check(
    "NC903", Severity.ERROR, ExpectedFacts, also=(GpuFacts, LoadedNcclFacts, MpiFacts, HorovodFacts, InterpreterFacts)
)
def version_unexpected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected = node[ExpectedFacts].versions
    if not expected:
        yield NotApplicable("no version is expected: --expect nccl=2.21.5")
    for name, wanted in expected.items():
        found = _version(node, name)
        called, look = _shown(node, name)
        summary = f"unexpected version of {called}"
        if isinstance(found, Unread):
            yield Inconclusive(f"{called}: {found.reason}")
        elif isinstance(found, Absent):
            yield Problem(f"no {called}, expected {shown(wanted)}", look, (found.reason,), look=True, summary=summary)
        elif not fits(found, wanted):
            yield Problem(f"{called} {found}, expected {shown(wanted)}", look, look=True, summary=summary)


def _shown(node: NodeView, name: str) -> tuple[str, str]:
    """Return what people call it, and the command that shows it."""
    gpus = node.maybe(GpuFacts)
    if name == "driver" and isinstance(gpus, GpuFacts) and gpus.vendor == "AMD":
        return "AMD driver", gpus.driver_shown_by
    return _NAMES.get(name, (name, "python3 -m pip list"))


def _version(node: NodeView, name: str) -> str | Absent | Unread:
    """Return a version on this node, or why it is not known."""
    facts: Mapping[str, object] = {
        "driver": node.maybe(GpuFacts), "cuda": node.maybe(GpuFacts), "nccl": node.maybe(LoadedNcclFacts),
        "mpi": node.maybe(MpiFacts), "horovod": node.maybe(HorovodFacts),
    }  # fmt: skip
    match facts.get(name, node.maybe(InterpreterFacts)):
        case Absent() | Unread() as why:
            return why
        case GpuFacts(vendor="AMD") if name == "cuda":
            return Absent("the node has AMD's GPUs")
        case GpuFacts(driver=driver, cuda=cuda):
            version = driver if name == "driver" else cuda
            return version or Unread("NVML did not say it")
        case LoadedNcclFacts(version=version) | MpiFacts(version=version) | HorovodFacts(version=version):
            return version
        case InterpreterFacts() as python:
            found = python.version if name == "python" else python.frameworks.get(name)
            return found or Absent(f"{python.path} has no package {name}")
    return Unread("it was not read")
