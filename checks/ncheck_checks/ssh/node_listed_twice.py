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
from collections import defaultdict
from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import ListingFacts
from ncheck.hostlist import fold

TWICE = 2


MOST_SHOWN = 8


@cluster_check("NC101", Severity.WARNING, ListingFacts, alone=True, blocks_plan=True)
def node_listed_twice(cluster: Cluster) -> Iterator[Problem]:
    by_times: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for node, listing in cluster.facts(ListingFacts).items():
        if len(listing.places) >= TWICE:
            by_times[len(listing.places)][node] = listing.places
    for times, nodes in by_times.items():
        often = "twice" if times == TWICE else f"{times} times"
        yield Problem(
            message=f"{fold(nodes)} {'is' if len(nodes) == 1 else 'are each'} listed {often}",
            fix=_without_the_later(nodes),
            evidence=tuple(f"{node}: {', '.join(places)}" for node, places in list(nodes.items())[:MOST_SHOWN]),
            nodes=tuple(nodes),
        )


def _without_the_later(nodes: dict[str, tuple[str, ...]]) -> str:
    """Return a line that leaves only the first mentions; a list that is no file is written anew."""
    files = {place.rpartition(":")[0] for places in nodes.values() for place in places}
    file = files.pop()
    if files or file in ("", "standard input"):
        return f"ncheck -H {shlex.quote(fold(nodes))}"
    lines = sorted(int(place.rpartition(":")[2]) for places in nodes.values() for place in places[1:])
    if len(lines) > MOST_SHOWN:
        return f"awk '!seen[$1]++' {shlex.quote(file)} > once.txt"
    return f"sed -i {shlex.quote(';'.join(f'{line}d' for line in lines))} {shlex.quote(file)}"
