"""`nft -j list ruleset`: the chains at the input hook of IP, and those that they jump to.

The form is libnftables-json(5)'s. A condition that is not understood stays in its rule as one that may hold or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from doctor.model.facts import Chain, Match, Rule

Words = Mapping[str, object]

_FAMILIES = ("inet", "ip")
_VERDICTS = ("accept", "drop", "reject", "return", "jump", "goto")
_NO_CONDITION = ("counter", "log", "comment", "mangle", "notrack")
_ELSEWHERE = ("queue", "synproxy", "tproxy", "fwd")  # what becomes of the packet there is not in the rules
_UNKNOWN = Match("")
_FIELDS = {
    ("payload", "ip", "saddr"): "source",
    ("payload", "ip", "daddr"): "target",
    ("payload", "ip", "protocol"): "protocol",
    ("payload", "tcp", "dport"): "port",
    ("payload", "th", "dport"): "port",
    ("meta", "iifname"): "interface",
    ("meta", "iif"): "interface",
    ("meta", "l4proto"): "protocol",
    ("meta", "nfproto"): "family",
    ("meta", "protocol"): "family",
    ("ct", "state"): "state",
    ("ct", "status"): "status",
}


def nft_chains(text: str) -> tuple[Chain, ...]:
    """Read all chains. Raises ValueError, KeyError or TypeError for what is no ruleset."""
    objects = cast("list[Mapping[str, Words]]", json.loads(text)["nftables"])
    sets = {_place(one["set"], "name"): one["set"].get("elem") for one in objects if "set" in one}
    rules: dict[tuple[str, str], list[Rule]] = {}
    for rule in (one["rule"] for one in objects if "rule" in one):
        rules.setdefault(_place(rule, "chain"), []).extend(_rules(rule, sets))
    return tuple(
        Chain(f"{chain['family']} {chain['table']}", str(chain["name"]), tuple(rules.get(_place(chain, "name"), ())),
              _policy(chain))
        for chain in (one["chain"] for one in objects if "chain" in one) if chain["family"] in _FAMILIES
    )  # fmt: skip


def _place(one: Words, key: str) -> tuple[str, str]:
    return f"{one['family']} {one['table']}", str(one[key])


def _policy(chain: Words) -> str:
    at_input = chain.get("hook") == "input" and chain.get("type") == "filter"
    return str(chain.get("policy") or "accept") if at_input else ""


def _rules(rule: Words, sets: Mapping[tuple[str, str], object]) -> Iterator[Rule]:
    """Make rules of one: a verdict map is one for each of its elements."""
    matches: list[Match] = []
    for statement in cast("list[Words]", rule["expr"]):
        ((name, what),) = statement.items()
        if name in _VERDICTS:
            target = str(cast("Words", what)["target"]) if name in ("jump", "goto") else ""
            yield Rule(tuple(matches), name, target)
        elif name == "vmap":
            yield from _mapped(cast("Words", what), tuple(matches), rule, sets)
        elif name in _ELSEWHERE:
            yield Rule((*matches, _UNKNOWN), "accept")
        elif name == "match":
            matches.append(_match(cast("Words", what), rule, sets))
        elif name not in _NO_CONDITION:
            matches.append(_UNKNOWN)


def _mapped(
    what: Words, before: tuple[Match, ...], rule: Words, sets: Mapping[tuple[str, str], object]
) -> Iterator[Rule]:
    data = what["data"]
    if not isinstance(data, Mapping):  # a named map, whose elements are listed elsewhere
        yield Rule((*before, _UNKNOWN), "accept")
        return
    for key, verdict in cast("list[tuple[object, Words]]", data["set"]):
        match = _match({"op": "==", "left": what["key"], "right": key}, rule, sets)
        ((name, target),) = verdict.items()
        yield Rule((*before, match), name, str(cast("Words", target)["target"]) if name in ("jump", "goto") else "")


def _match(what: Words, rule: Words, sets: Mapping[tuple[str, str], object]) -> Match:
    field = _field(what["left"])
    values = _values(what["right"], rule, sets)
    if field is None or values is None or what["op"] not in ("==", "!=", "in"):
        return _UNKNOWN
    return Match(field, values, negated=what["op"] == "!=")


def _field(left: object) -> str | None:
    """Return our name of what is compared. IPv6's addresses and UDP's ports are those of no packet of the job."""
    if not isinstance(left, Mapping) or len(left) != 1:
        return None
    ((name, what),) = left.items()
    if not isinstance(what, Mapping):
        return None
    if name == "payload" and what.get("protocol") in ("ip6", "udp", "icmp", "icmpv6", "igmp", "sctp"):
        return "other"
    key = (
        (name, str(what.get("protocol")), str(what.get("field"))) if name == "payload" else (name, str(what.get("key")))
    )
    return _FIELDS.get(key)


def _values(right: object, rule: Words, sets: Mapping[tuple[str, str], object]) -> tuple[str, ...] | None:
    """Return what it is compared with, spelled out; None for what cannot be."""
    if isinstance(right, str) and right.startswith("@"):
        right = sets.get((f"{rule['family']} {rule['table']}", right[1:]), "?") or []
    if isinstance(right, Mapping) and "set" in right:
        right = right["set"]
    parts = [_value(one) for one in (right if isinstance(right, list) else [right])]
    return None if None in parts else tuple(cast("list[str]", parts))


def _value(one: object) -> str | None:
    if isinstance(one, Mapping) and "elem" in one:  # an element with a counter or a comment of its own
        one = cast("Words", one["elem"])["val"]
    if isinstance(one, (str, int)) and not isinstance(one, bool) and one != "?":
        return str(one)
    if isinstance(one, Mapping) and "prefix" in one:
        prefix = cast("Words", one["prefix"])
        return f"{prefix['addr']}/{prefix['len']}"
    if isinstance(one, Mapping) and "range" in one:
        first, last = cast("list[object]", one["range"])
        return f"{first}-{last}"
    return None
