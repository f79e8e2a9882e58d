"""What each source of evidence says of a running job: one module per source, and nothing else has to know of a new one.

A module has READS, the facts that it needs, and `signs(job, cluster)`, a pure function that yields clues and motions.
A fact that a node lacks is Unread or Absent there: the module says nothing of that node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster, FactType
    from ncheck.model.job import Job
    from ncheck.triage.clue import Sign


class Reader(NamedTuple):
    """One module of this package."""

    name: str
    reads: tuple[FactType, ...]
    signs: Callable[[Job, Cluster], Iterator[Sign]]


@cache
def readers() -> tuple[Reader, ...]:
    """Return all readers of evidence, by name."""
    modules = (import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__))
    return tuple(Reader(one.__name__.rpartition(".")[2], one.READS, one.signs) for one in modules)
