"""The NCCL version differs between nodes

## What it finds
Nodes whose job interpreter loads another NCCL version than on the other nodes. ncheck calls `ncclGetVersion` of the
library that the interpreter really loads and does not rely on package lists. All nodes are compared, whatever their
GPU model, but AMD's RCCL only with RCCL: the two run in no common job. With a majority, the other nodes are named; in a
tie, both sides are named and none is blamed.

## Why it matters
NCCL refuses to start if versions differ, even in the last number ("Mismatched NCCL version detected", since 2.23.4);
older releases hang silently, or end with "Message truncated".

## What to type
Install the majority's version on the other nodes, in the environment that the job uses:
`python3 -m pip install nvidia-nccl-cu12==VERSION` (cu13 for CUDA 13) if it comes from a wheel,
`sudo apt-get install libnccl2=VERSION-1+cuda12.4 libnccl-dev=VERSION-1+cuda12.4` if it is a system package (with the
CUDA version of the majority's copy, and libnccl-dev where it is installed; dnf and zypper have libnccl and
libnccl-devel); RCCL comes with torch or with ROCm, so install the majority's release of these; then
`ncheck --select nccl-version-differs nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, NodeView, Problem, Severity, cluster_check, fold, nodes_by_value, split
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts, NcclCopy
from ncheck.facts.os_release import OsFacts, command_to_install


@cluster_check(
    "NC201", Severity.ERROR, LoadedNcclFacts, also=(NcclCopiesFacts, InterpreterFacts, OsFacts), everywhere=True
)
def nccl_version_differs(cluster: Cluster) -> Iterator[Problem]:
    loaded = cluster.facts(LoadedNcclFacts)
    for library in dict.fromkeys(own.library for own in loaded.values()):
        nccl = {node: own for node, own in loaded.items() if own.library == library}
        yield from _differing(library, nccl, cluster)


def _differing(library: str, nccl: Mapping[str, LoadedNcclFacts], cluster: Cluster) -> Iterator[Problem]:
    if parted := split({node: own.version for node, own in nccl.items()}):
        odd = parted.odd[-1]  # in a tie a node of the last group: the first group has the version already
        built = {node: _loaded_copy(own, cluster.facts(NcclCopiesFacts).get(node)) for node, own in nccl.items()}
        cuda = next((copy.cuda for node in parted.groups[0][1] if (copy := built[node]) and copy.cuda), "")
        fix = _installed(nccl[odd], built[odd], parted.wanted, cuda, cluster[odd])
        copies = nodes_by_value({node: f"{own.version} from {own.path}" for node, own in nccl.items()})
        evidence = tuple(f"{copy} on {fold(nodes)}" for copy, nodes in copies.items())
        look = library == "RCCL"
        yield Problem(
            f"{library} differs: {parted.summary()}", fix, evidence, parted.odd, look=look, summary=f"{library} differs"
        )


def _loaded_copy(own: LoadedNcclFacts, held: NcclCopiesFacts | None) -> NcclCopy | None:
    return next((copy for copy in held.copies if copy.path == own.path), None) if held else None


def _installed(odd: LoadedNcclFacts, copy: NcclCopy | None, wanted: str, cuda: str, node: NodeView) -> str:
    """Return the command that installs a version, built for this CUDA, from the source of the deviating node's copy.

    RCCL comes with torch or with ROCm, so the command shows that copy.
    """
    if odd.library == "RCCL":
        return f"ls -l {quote(odd.path)}"
    cuda = cuda or (copy.cuda if copy else "")
    if odd.path.startswith(("/usr/lib", "/lib")) and not odd.static:
        apt, rpm = (f"{wanted}-1+cuda{cuda}",) * 2 if cuda else (f"{wanted}*", wanted)
        debian, red_hat = [f"libnccl2={apt}"], [f"libnccl-{rpm}"]
        if copy and copy.for_compilers:
            debian, red_hat = [*debian, f"libnccl-dev={apt}"], [*red_hat, f"libnccl-devel-{rpm}"]
        suse = ["--oldpackage", *red_hat]  # the version may be an older one
        return command_to_install({"apt-get": debian, "dnf": red_hat, "zypper": suse}, node.maybe(OsFacts))
    python = node.maybe(InterpreterFacts)
    pip = python.pip if isinstance(python, InterpreterFacts) else "python3 -m pip"
    wheel = f"nvidia-nccl-cu{cuda.partition('.')[0] or 12}"
    return f"{pip} install {quote(f'{wheel}=={wanted}')}"
