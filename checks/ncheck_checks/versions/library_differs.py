"""A library of the frameworks differs between nodes

## What it finds
Nodes whose job interpreter has another version of flash-attn, transformer-engine, apex, DALI, torchvision, torchaudio,
or of the wheels of cuDNN, cuBLAS and the CUDA runtime, than the other nodes, or lacks one that most nodes have. Nodes
whose frameworks differ are left to framework-differs, and NCCL to nccl-version-differs. `--packages all` compares every
package.

## Why it matters
A rank whose node lacks the package ends with "ModuleNotFoundError", and the others wait for it. Another version of a
kernel library computes with other kernels: the ranks differ in speed and in their last bits, or one of them fails
where the others run.

## What to type
`python3 -m pip install flash-attn==VERSION` in the job's environment on the named nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, nodes_by_value, split
from ncheck.facts.interpreter import NCCL_WHEELS, InterpreterFacts


@cluster_check("NC222", Severity.WARNING, InterpreterFacts)
def library_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    pythons = cluster.facts(InterpreterFacts)
    frameworks = nodes_by_value({node: tuple(sorted(own.frameworks.items())) for node, own in pythons.items()})
    alike = max(frameworks.values(), key=len)  # a node with other frameworks has other libraries, too
    if others := tuple(node for node in pythons if node not in alike):
        yield NotApplicable("its frameworks are not those of most nodes: see NC206", others)
    names = sorted({name for node in alike for name in pythons[node].libraries if not name.startswith(NCCL_WHEELS)})
    if not names:
        yield NotApplicable("none of these libraries is installed", alike)
    for name in names:
        versions = {node: pythons[node].libraries.get(name, "none") for node in alike}
        parted = split(versions)
        if parted and 2 * list(versions.values()).count("none") <= len(versions):
            wanted = next(version for version, _ in parted.groups if version != "none")
            fix = f"{quote(pythons[parted.odd[0]].path)} -m pip install {quote(f'{name}=={wanted}')}"
            yield Problem(f"{name} differs: {parted.summary()}", fix, nodes=parted.odd, summary=f"{name} differs")
