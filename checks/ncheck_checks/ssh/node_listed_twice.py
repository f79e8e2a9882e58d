"""A node is listed more than once

## What it finds
Hosts whose name occurs more than once in the list of nodes, with the places. ncheck still connects to each only once.
one-machine-twice reports two different names of one machine.

## Why it matters
mpirun adds the slots of all occurrences, so twice the ranks run on that node's GPUs. Other launchers start a second
worker there, which finds the port taken or the GPU in use. In a list with one line per slot, as PBS and LSF write it,
this is intended: `--ignore node-listed-twice`.

## What to type
Remove the later lines, for example with `sed -i 9d nodes.txt`, and run again:
`ncheck --select node-listed-twice nodes.txt`.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator

from ncheck import HERE, Cluster, Problem, Severity, cluster_check, fold
from ncheck.facts.login import ListingFacts

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
            fix=_without_later_lines(nodes),
            evidence=tuple(f"{node}: {', '.join(places)}" for node, places in list(nodes.items())[:MOST_SHOWN]),
            nodes=tuple(nodes),
            where=HERE,
            summary=f"listed {often}",
        )


def _without_later_lines(nodes: dict[str, tuple[str, ...]]) -> str:
    """Return a command that keeps only the first occurrences, or lists the nodes anew if they are not from a file."""
    files = {place.rpartition(":")[0] for places in nodes.values() for place in places}
    file = files.pop()
    if files or file in ("", "standard input"):
        return f"ncheck -H {shlex.quote(fold(nodes))}"
    lines = sorted(int(place.rpartition(":")[2]) for places in nodes.values() for place in places[1:])
    if len(lines) > MOST_SHOWN:
        return f"awk '!seen[$1]++' {shlex.quote(file)} > once.txt"
    return f"sed -i {shlex.quote(';'.join(f'{line}d' for line in lines))} {shlex.quote(file)}"
