"""The NCCL version differs between nodes

## What it finds
Nodes whose job interpreter loads another NCCL version than on the other nodes. ncheck calls `ncclGetVersion` of the
library that the interpreter really loads and does not rely on package lists. All nodes are compared, whatever their
GPU model, but AMD's RCCL only with RCCL: the two run in no common job. With a majority, the other nodes are named; in a
tie, both sides are named and none is blamed.

## Why it matters
NCCL refuses to start if versions differ, even in the last number ("Mismatched NCCL version detected", since 2.23.4);
older releases hang silently.

## What to type
Install the majority's version on the other nodes, in the environment that the job uses:
`python3 -m pip install nvidia-nccl-cu12==VERSION` (cu13 for CUDA 13) if it comes from a wheel,
`sudo apt-get install 'libnccl2=VERSION*'` if it is a system package; RCCL comes with torch or with ROCm, so install
the majority's release of these; then
`ncheck --select nccl-version-differs nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, fold, nodes_by_value, split
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.os_release import OsFacts, command_to_install


@cluster_check("NC201", Severity.ERROR, LoadedNcclFacts, also=(OsFacts,), everywhere=True)
def nccl_version_differs(cluster: Cluster) -> Iterator[Problem]:
    loaded = cluster.facts(LoadedNcclFacts)
    for library in dict.fromkeys(own.library for own in loaded.values()):
        nccl = {node: own for node, own in loaded.items() if own.library == library}
        yield from _differing(library, nccl, cluster.facts(OsFacts))


def _differing(library: str, nccl: Mapping[str, LoadedNcclFacts], systems: Mapping[str, OsFacts]) -> Iterator[Problem]:
    if parted := split({node: own.version for node, own in nccl.items()}):
        odd = parted.odd[-1]  # in a tie a node of the last group: the first group has the version already
        fix = _installed(nccl[odd], parted.wanted, systems.get(odd))
        copies = nodes_by_value({node: f"{own.version} from {own.path}" for node, own in nccl.items()})
        evidence = tuple(f"{copy} on {fold(nodes)}" for copy, nodes in copies.items())
        look = library == "RCCL"
        yield Problem(
            f"{library} differs: {parted.summary()}", fix, evidence, parted.odd, look=look, summary=f"{library} differs"
        )


def _installed(odd: LoadedNcclFacts, wanted: str, system: OsFacts | None) -> str:
    """Return the command that installs a version from the source of the deviating node's copy.

    RCCL comes with torch or with ROCm, so the command shows that copy.
    """
    if odd.library == "RCCL":
        return f"ls -l {quote(odd.path)}"
    if odd.path.startswith(("/usr/lib", "/lib")) and not odd.static:
        rpm = f"libnccl-{wanted}"
        return command_to_install({"apt-get": f"libnccl2={wanted}*", "dnf": rpm, "zypper": rpm}, system)
    return f"python3 -m pip install {quote(f'nvidia-nccl-cu12=={wanted}')}"
