"""A framework version differs between nodes

## What it finds
Nodes whose job interpreter has another version of torch, tensorflow, jax, paddle, deepspeed or a similar framework than
the other nodes, or lacks one that most nodes have. The part after + counts: 2.3.0+cu121 and 2.3.0+cpu are two builds;
for torch it is read from its own version.py, for pip may call both 2.3.0. horovod-differs compares Horovod.

If no node's interpreter has a framework, the check is skipped. On nodes with GPUs it is probably the wrong interpreter,
unless it loads an NCCL of its own, as jobs in C++ do: the headline then says that the Python of the job was not judged.

Inside a job, a package of which nothing shows that the job uses it is a warning: rank 0 has not imported it, and the
launcher is not its own.

## Why it matters
Every rank runs the same program with its own copy of the framework. Two versions disagree about what is sent when, or
bring two NCCL versions: the job stops at its first collective, or continues with wrong results.

## What to type
`python3 -m pip install torch==VERSION` in the job's environment on the named nodes. If the job uses another Python than
the one in the finding: `ncheck --python /path/to/python nodes.txt`. The finding proposes this, with the path that the
other nodes have, if the named nodes found another Python without any framework: they may have the environment too, but
not in a login that is not interactive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from shlex import quote

from ncheck import HERE, Cluster, NotApplicable, Problem, Severity, Split, cluster_check, split
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.ranks import RanksFacts


@cluster_check("NC206", Severity.ERROR, InterpreterFacts, also=(RanksFacts,))
def framework_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    pythons = cluster.facts(InterpreterFacts)
    names = sorted({name for python in pythons.values() for name in python.frameworks} - {"horovod"})
    ranks = next(iter(cluster.facts(RanksFacts).values()), None)
    for name in names:
        if parted := _differing(name, pythons):
            wanted, (having, *_) = next(group for group in parted.groups if group[0] != "none")
            nodes = parted.odd if parted.majority != "none" else parted.groups[0][1]
            odd, usual = [pythons[node] for node in nodes if node != having], pythons[having]
            unused = ranks and _module(name) not in ranks.packages
            differs = partial(
                Problem, f"{name} differs: {parted.summary()}", nodes=nodes, summary=f"{name} differs",
                severity=Severity.WARNING if unused else None,
            )  # fmt: skip
            if all(not python.frameworks and python.path != usual.path for python in odd):
                look = f"ncheck nodes.txt --python {quote(usual.path)}"
                yield differs(look, where=HERE, look=True)
                continue
            pip = odd[0].pip if len({python.path for python in odd}) == 1 else "python3 -m pip"
            fix = f"{pip} install {quote(f'{name}=={wanted}')}{_index(name, wanted)}"
            yield differs(fix)
    if not names:
        where = ", ".join(sorted({f"{python.path} ({python.how})" for python in pythons.values()}))
        yield NotApplicable(f"no framework in {where} (--python selects another Python)")


def _module(package: str) -> str:
    """Return the module that a package is imported as: mxnet-cu112 is mxnet."""
    first = package.partition("-")[0]
    return {"paddlepaddle": "paddle", "pytorch": "pytorch_lightning"}.get(first, first)


def _index(name: str, version: str) -> str:
    """Return the option for the index of PyTorch that has this build: of cu121, rocm6.0 and cpu it has one each."""
    build = re.fullmatch(r"[\d.]+\+(cu\d+|rocm[\d.]+|cpu)", version)
    return f" --index-url https://download.pytorch.org/whl/{build[1]}" if name == "torch" and build else ""


def _differing(name: str, pythons: Mapping[str, InterpreterFacts]) -> Split[str] | None:
    """Group the nodes by version. A node without a framework that most nodes lack is left out, unless it has none."""
    versions = {node: python.frameworks.get(name, "none") for node, python in pythons.items()}
    usual = 2 * list(versions.values()).count("none") <= len(versions)
    return split({n: v for n, v in versions.items() if usual or v != "none" or not pythons[n].frameworks})
