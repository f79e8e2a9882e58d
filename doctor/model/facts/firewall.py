"""What a packet filter does to what comes in: who manages it, and the rules at the input hook."""

from __future__ import annotations

from dataclasses import dataclass

from doctor.model.fact import Unread


@dataclass(frozen=True)
class Match:
    """One condition of a rule: what `field` must be (or, `negated`, must not be).

    The fields: "interface" (names, a "*" at the end stands for any rest), "source" and "target" (networks or
    addresses), "protocol" ("tcp", "6"), "port" (the target's: "22", "30000-40000"), "state" ("new", ...),
    "status" (of address translation: "dnat"), "family" ("ipv4"), "other" (of another protocol than TCP over IPv4). ""
    is a condition that is not understood: it may hold or not.
    """

    field: str
    values: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Rule:
    """All `matches` must hold. `verdict`: accept, drop, reject, return, jump, goto (with `to`), "" goes on."""

    matches: tuple[Match, ...]
    verdict: str
    to: str = ""


@dataclass(frozen=True)
class Chain:
    """`table` as its program calls it ("inet firewalld", "iptables filter"). `policy` is what ends a chain at the input
    hook, accept or drop; "" is a chain that others jump to.
    """

    table: str
    name: str
    rules: tuple[Rule, ...]
    policy: str = ""


@dataclass(frozen=True)
class FirewallFacts:
    """`managers` are the services that keep rules here: firewalld, ufw. Anyone may know these; the rules, root only."""

    managers: tuple[str, ...]
    chains: tuple[Chain, ...] | Unread
