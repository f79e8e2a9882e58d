"""A node is listed more than once

## What it finds
A host whose name stands in the list of nodes more than once, with the places. ncheck asks it once all the same. Two
different names of one machine are another finding: one-machine-twice.

## Why it matters
mpirun adds up the slots of all mentions, so twice the ranks land on that node's GPUs; other launchers start a second
worker there, which finds the port taken or the GPU in use. In a list with one line a slot, as PBS and LSF write it,
it is meant: `--ignore node-listed-twice`.

## What to type
Take the later lines out, as by `sed -i 9d nodes.txt`, and look again: `ncheck --select node-listed-twice nodes.txt`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from doctor import NodeView, Problem, Severity, node_check
from doctor.model.facts import ListingFacts

TWICE = 2


@node_check("NC101", Severity.WARNING, ListingFacts)
def node_listed_twice(node: NodeView) -> Iterator[Problem]:
    places = node[ListingFacts].places
    if len(places) >= TWICE:
        times = "twice" if len(places) == TWICE else f"{len(places)} times"
        yield Problem(
            message=f"{node.name} is listed {times}: {', '.join(places)}",
            fix=_without_the_later(node.name, places),
            evidence=places,
        )


def _without_the_later(name: str, places: tuple[str, ...]) -> str:
    """Return a line that leaves the first mention alone; a list that is no file is written anew."""
    file, _, _ = places[0].rpartition(":")
    later = [place.rpartition(":") for place in places[1:]]
    if file in ("", "standard input") or any(other != file for other, _, _ in later):
        return f"ncheck -H {name}"
    lines = ";".join(f"{line}d" for _, _, line in later)
    return f"sed -i {shlex.quote(lines)} {shlex.quote(file)}"
