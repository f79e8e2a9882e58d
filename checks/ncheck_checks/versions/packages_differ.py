"""Packages of the job's Python differ between nodes

## What it finds
With `--packages all`: nodes whose job interpreter has another version of any package than most nodes, lacks one that
most nodes have, or has one that most nodes lack. A package that was installed from a repository counts with its commit,
and one that was installed with `pip install -e` as editable. Packages are listed by their metadata; none is imported.
Frameworks and their libraries are compared without this option: framework-differs and library-differs.

## Why it matters
A rank whose node lacks a package ends with "ModuleNotFoundError" while the others wait for it. Tokenizers, data loaders
and kernels of other releases give other batches and other last bits, and nothing says so.

## What to type
`python3 -m pip freeze` on the named nodes and on a healthy one, or the same image or environment everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Problem, Severity, Split, cluster_check, split
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.packages import PackagesFacts

_MOST = 4  # packages that a message names
_EVIDENCE = 50  # and the evidence


@cluster_check("NC217", Severity.WARNING, PackagesFacts, InterpreterFacts)
def packages_differ(cluster: Cluster) -> Iterator[Problem]:
    pythons = cluster.facts(InterpreterFacts)
    compared = {name for python in pythons.values() for name in (*python.frameworks, *python.libraries)}
    by_nodes: dict[tuple[str, ...], dict[str, Split[str]]] = {}
    for name, parted in _differing(cluster.facts(PackagesFacts)):
        if name not in compared:  # NC206 and NC222 did
            by_nodes.setdefault(parted.odd, {})[name] = parted
    for nodes, packages in by_nodes.items():
        lines = [f"{name} {parted.summary()}" for name, parted in packages.items()]
        more = f" and {len(lines) - _MOST} more" if len(lines) > _MOST else ""
        what = "1 package differs" if len(lines) == 1 else f"{len(lines)} packages differ"
        fix = f"{quote(pythons[nodes[0]].path)} -m pip freeze"
        evidence = tuple(lines[_MOST:_EVIDENCE])
        message = f"{what}: {'; '.join(lines[:_MOST])}{more}"
        yield Problem(message, fix, evidence, nodes, look=True, summary="packages differ")


def _differing(found: Mapping[str, PackagesFacts]) -> Iterator[tuple[str, Split[str]]]:
    for name in sorted({name for own in found.values() for name in own.packages}):
        versions = {
            node: own.packages[name].described if name in own.packages else "none" for node, own in found.items()
        }
        if parted := split(versions):
            yield name, parted
