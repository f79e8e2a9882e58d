"""A node's name does not resolve

## What it finds
Nodes whose name (or the HostName in the ssh configuration) has no address on this machine: it is not in /etc/hosts, and
the name server does not know it or does not answer.

## Why it matters
Nothing can be started on such a node from here. mpirun, torchrun and NCCL's bootstrap resolve the same names on every
node, so a name that only some machines know fails later in the job. The evidence names the line of the list, and a name
that this machine knows and that looks like it: an O in place of a 0, letters in another order.

## What to type
`getent hosts NODE` shows what this machine knows. Correct the name in the list, add a line to /etc/hosts, or a
`HostName` to ~/.ssh/config.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ncheck import HERE, Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.login import ListingFacts, LoginFacts
from ncheck.network.logins import Cause, Login, login_results


@node_check("NC110", Severity.ERROR, LoginFacts, also=(ListingFacts,), blocks_plan=True, explains_unreached=True)
def name_does_not_resolve(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    listing = node.maybe(ListingFacts)
    place = f"{listing.places[0]}: " if isinstance(listing, ListingFacts) and listing.places else ""
    for result in login_results(node, Cause.NAME_UNKNOWN, _unknown):
        found = isinstance(result, Problem) and result.evidence
        yield (
            replace(result, evidence=(place + result.evidence[0],)) if isinstance(result, Problem) and found else result
        )


def _unknown(node: str, _login: Login) -> Problem:
    return Problem("its name does not resolve on this machine", f"getent hosts {node}", where=HERE, look=True)
