"""What each source of evidence says of a running job: one module per source, and nothing else has to know of a new one.

A module has READS, the facts that it needs, and `signs(job, cluster)`, a pure function that yields clues and motions.
A fact that a node lacks is Unread or Absent there: the module says nothing of that node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster, FactType
    from ncheck.model.evidence import Evidence
    from ncheck.model.job import Job
    from ncheck.triage.clue import Sign


class SourceReader(NamedTuple):
    """One module of this package."""

    name: str
    reads: tuple[FactType, ...]
    signs: Callable[[Job, Cluster], Iterator[Sign]]


@cache
def readers() -> tuple[SourceReader, ...]:
    """Return all readers of evidence, by name."""
    modules = (import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__))
    return tuple(SourceReader(one.__name__.rpartition(".")[2], one.READS, one.signs) for one in modules)


def facts_read() -> tuple[FactType, ...]:
    """Return what must be read of the nodes: who runs there, and the facts of all readers."""
    from ncheck.triage.facts.processes import ProcessesFacts

    return tuple(dict.fromkeys((ProcessesFacts, *(fact for reader in readers() for fact in reader.reads))))


def cluster_of(evidence: Iterable[Evidence]) -> Cluster:
    """Return the nodes with all that triage reads off their evidence: of a run that has just ended, or a saved one."""
    from ncheck.facts.learning import learn
    from ncheck.facts.login import LoginFacts
    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node

    found = tuple(evidence)
    nodes = tuple(Node(one.node, places=one.places) for one in found)
    return learn(Cluster(nodes, {}), found, (LoginFacts, *facts_read()))
