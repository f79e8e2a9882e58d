"""A node has not the expected number of InfiniBand or RoCE adapters

## What it finds
Nodes with more or fewer HCAs than `--expect hcas=8` or `[expect]` in ncheck.toml says.

## Why it matters
An adapter without a driver, or one that fell off the bus, is a rail that the job lacks. Where all nodes lack it,
comparing them shows nothing.

## What to type
`lspci -nn | grep -Ei 'ethernet|infiniband'` on the named nodes: what is listed and not counted has no
driver.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.infiniband import InfinibandFacts

_ON_BUS = "lspci -nn | grep -Ei 'ethernet|infiniband'"


@node_check("NC904", Severity.ERROR, ExpectedFacts, also=(InfinibandFacts,))
def hca_count_unexpected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected = node[ExpectedFacts].hcas
    hcas = node.maybe(InfinibandFacts)
    if expected is None:
        yield NotApplicable("no number of HCAs is expected: --expect hcas=8")
    elif isinstance(hcas, Unread):
        yield Inconclusive(hcas.reason)
    else:
        count = 0 if isinstance(hcas, Absent) else len({port.hca for port in hcas.ports})
        if count != expected:
            message = f"{count} HCAs, expected {expected}"
            yield Problem(message, _ON_BUS, look=True, summary="unexpected number of HCAs")
