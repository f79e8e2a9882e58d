"""Who dialled whom in vain: a connection has two ends, and only the one that dials tells of it.

What a node's firewall keeps out fails with the words of its partners. A node that came through with nobody is the
likelier culprit, where two partners or more that failed with it came through with somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from doctor.model.facts import NicFacts, Step
from doctor.probe.verdicts.accounts import Account
from doctor.triage import Confidence

# Address to node, of the addresses that one node alone has.
Holders = Mapping[str, str]

# What triage makes of a connection that did not come about. firewall is nothing else; the others are more than that.
_ALWAYS = "firewall"
_WITH_WORDS = frozenset({"rank_crashed", "rendezvous_misconfig", "routing"})
# NCCL WARN socketPollConnect: connect to 10.1.0.3<40113> returned Connection refused, exceeded error retry count (35)
_IN_VAIN = re.compile(r"No route to host|[Rr]efused|[Tt]imed out|no answer")
# filtered: 10.1.0.3 port 41234 from 10.1.0.1: timed out     connect to fd00::3<40113> returned No route to host
_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,40})(?![\w.])")
_WORD = re.compile(r"[\w.-]+")
_PARTNERS = 2
_PAIR = 2


@dataclass(frozen=True)
class Dial:
    """`node` could not connect to one of `far`: to the one that its words name, else to any other of its step."""

    node: str
    far: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """Return its two ends; of a far one that is not known, nothing."""
        return (self.node, *self.far) if len(self.far) == 1 else (self.node,)

    def blamed(self, culprits: frozenset[str]) -> tuple[str, ...]:
        """Return which of the nodes that it may be the fault of are known for it."""
        return tuple(node for node in (self.node, *self.far) if node in culprits)


def holders(nics: Mapping[str, NicFacts]) -> Holders:
    """Return which node has an address: what several have, as that of docker0, tells of none."""
    held: dict[str, set[str]] = {}
    for node, facts in nics.items():
        for address in (one for nic in facts.interfaces for one in nic.addresses):
            held.setdefault(_plain(address.ip), set()).add(node)
    return {address: next(iter(nodes)) for address, nodes in held.items() if address and len(nodes) == 1}


def dials(step: Step, part: Account, known: Holders) -> tuple[Dial, ...]:
    """Return the connections that a node tells of as not come about; none where it tells of something else."""
    others = tuple(node for node in step.group if node != part.node)
    if part.said is None or not others:
        return ()
    lines = tuple(line for line in part.said.evidence if _IN_VAIN.search(line))
    perhaps = part.said.cause in _WITH_WORDS and part.said.confidence is not Confidence.HIGH and lines
    if part.said.cause != _ALWAYS and not perhaps:
        return ()
    lines = lines or part.said.evidence
    addressed = set(_named(lines, known))
    named = tuple(node for node in others if node in addressed) or _by_name(lines, others)
    if len(step.group) == _PAIR or not named:
        return (Dial(part.node, others),)
    return tuple(Dial(part.node, (node,)) for node in named)


def likeliest(told: Iterable[Dial], sound: frozenset[str]) -> frozenset[str]:
    """Return who came through with nobody, though two or more with whom it failed did with others."""
    partners: dict[str, set[str]] = {}
    for dial in told:
        if len(dial.far) == 1:
            partners.setdefault(dial.node, set()).update(dial.far)
            partners.setdefault(dial.far[0], set()).add(dial.node)
    return frozenset(
        node for node, others in partners.items() if node not in sound and len(others) >= _PARTNERS and others <= sound
    )


def _named(lines: Iterable[str], known: Holders) -> Iterator[str]:
    for line in lines:
        for found in _ADDRESS.findall(line):
            if (address := _plain(found)) in known:
                yield known[address]


def _by_name(lines: Iterable[str], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nodes that words call by their names: "failed to connect to [node01]:29500"."""
    words = {word for line in lines for word in _WORD.findall(line)}
    return tuple(node for node in others if node in words)


def _plain(text: str) -> str:
    """Return an address as others write it too; "" where it is none."""
    try:
        address = ip_address(text.rstrip(":."))
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address)
