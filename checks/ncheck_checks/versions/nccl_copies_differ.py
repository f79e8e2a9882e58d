"""Several NCCL versions on one node compete for the job

## What it finds
Nodes on which copies of libnccl (AMD: librccl) of different versions could be loaded by the job: from wheels, conda or
torch, and copies that LD_LIBRARY_PATH or LD_PRELOAD point to. The message names the copy that the job's Python loads
and what leads there: LD_PRELOAD, the path inside torch's own library (DT_RPATH or DT_RUNPATH), LD_LIBRARY_PATH, the
loader's cache, the wheel that torch opens itself, or a copy linked into torch. A system-wide copy beside the job's own
does not compete and is not reported.

## Why it matters
Which copy is loaded depends on the order of imports and on variables that ssh, mpirun and batch systems set
differently. The same program uses one NCCL when started by hand and another under a launcher.

## What to type
`env -u LD_LIBRARY_PATH -u LD_PRELOAD python3 train.py` uses the job's own copy; `python3 -m pip list` shows the wheels
that contain one. Keep only one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts, NcclCopy


@node_check("NC202", Severity.WARNING, NcclCopiesFacts, also=(LoadedNcclFacts, InterpreterFacts))
def nccl_copies_differ(node: NodeView) -> Iterator[Problem | Inconclusive]:
    loaded, python = node.maybe(LoadedNcclFacts), node.maybe(InterpreterFacts)
    home = python.path.rpartition("/bin/")[0] if isinstance(python, InterpreterFacts) else ""
    library = loaded.library if isinstance(loaded, LoadedNcclFacts) else "NCCL"  # or RCCL, which is AMD's
    copies = [copy for copy in node[NcclCopiesFacts].copies if copy.library == library]
    rivals = [copy for copy in copies if _competes(copy, home)]
    versions = sorted({copy.version for copy in rivals if not isinstance(copy.version, Unread)})
    if len(versions) > 1:
        used = "it is unknown which one is loaded"
        if isinstance(loaded, LoadedNcclFacts):
            route = f" ({loaded.route})" if loaded.route else ""
            used = f"the job loads {loaded.version} from {loaded.path}{route}"
        evidence = tuple(f"{copy.version} at {copy.path} ({copy.origin})" for copy in rivals)
        yield Problem(
            f"{library} {' and '.join(versions)} compete for the job; {used}", "python3 -m pip list", evidence,
            look=True, summary=f"several copies of {library} compete",
        )  # fmt: skip
    for copy in rivals:
        if isinstance(copy.version, Unread) and len(rivals) > 1:
            yield Inconclusive(f"the version of {copy.path} is unknown: {copy.version.reason}")


def _competes(copy: NcclCopy, home: str) -> bool:
    """Tell whether the job might load a copy: conda's copies count only in the job's own environment."""
    own = home != "" and copy.path.startswith(home + "/")
    return copy.origin in ("wheel", "torch", "environment") or (copy.origin == "conda" and own)
