"""A port of an HCA is slower than expected

## What it finds
Ports of InfiniBand or RoCE adapters that are active with a lower rate, in Gb/s, than `--expect rate=400` or `[expect]`
in ncheck.toml says. Ports that are not active are NC401's.

## Why it matters
A cable or a switch port of an older generation makes a whole cluster slow, and no node differs from the others.

## What to type
`ibstat` on the named nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.infiniband import InfinibandFacts

_ON_BUS = "lspci -nn | grep -Ei 'ethernet|infiniband'"


@node_check("NC905", Severity.ERROR, ExpectedFacts, also=(InfinibandFacts,))
def hca_rate_unexpected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected = node[ExpectedFacts].rate
    hcas = node.maybe(InfinibandFacts)
    if expected is None:
        yield NotApplicable("no rate is expected: --expect rate=400")
    elif isinstance(hcas, Unread):
        yield Inconclusive(hcas.reason)
    elif isinstance(hcas, Absent):
        yield Problem(f"no HCA, expected {expected:.0f} Gb/s", _ON_BUS, look=True, summary="no HCA")
    else:
        active = [port for port in hcas.ports if port.state == "Active"]
        for port in active:
            if port.rate is None:
                yield Inconclusive(f"{port.name}: its rate could not be read")
            elif port.rate < expected:
                yield Problem(
                    f"{port.name} has {port.rate:.0f} Gb/s, expected {expected:.0f}", "sudo iblinkinfo", look=True,
                    summary="HCA ports slower than expected",
                )  # fmt: skip
        if not active:
            yield NotApplicable("no port of an HCA is active")
