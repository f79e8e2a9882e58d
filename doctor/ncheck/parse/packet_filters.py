"""What a packet filter does to what comes in: who manages it, and the rules at the input hook."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast


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


TABLE = "iptables filter"


_VERDICTS = {"ACCEPT": "accept", "DROP": "drop", "REJECT": "reject", "RETURN": "return", "TARPIT": "drop"}


_GOES_ON = frozenset({"LOG", "NFLOG", "ULOG", "MARK", "CONNMARK", "SET", "AUDIT", "TRACE"})


_FIELDS = {
    "-s": "source", "-d": "target", "-i": "interface", "-p": "protocol", "--dport": "port", "--dports": "port",
    "--ctstate": "state", "--state": "state", "--ctstatus": "status",
}  # fmt: skip


_MODULES = frozenset({"tcp", "multiport", "conntrack", "state", "comment", "udp", "icmp"})


_OF_THE_TARGET = "--reject-with"


def iptables_chains(text: str) -> tuple[Chain, ...]:
    """Read the chains; no text is no rules. Raises ValueError or LookupError for lines that are none of its."""
    policies: dict[str, str] = {}
    rules: dict[str, list[Rule]] = {}
    for line in text.splitlines():
        words = shlex.split(line)
        if not words:
            continue
        if words[0] not in ("-P", "-N", "-A"):
            raise ValueError(f"no line of iptables -S: {line[:60]}")
        held = rules.setdefault(words[1], [])
        if words[0] == "-P":  # -P INPUT DROP
            policies[words[1]] = _VERDICTS[words[2]]
        elif words[0] == "-A":
            held.append(_rule(words[2:]))
    at_input = {"INPUT": policies.get("INPUT", "accept")}
    return tuple(Chain(TABLE, name, tuple(held), at_input.get(name, "")) for name, held in rules.items())


def _rule(words: list[str]) -> Rule:
    verdict, to = "", ""
    options = list(_options(words))
    for _, option, values in options:
        if option in ("-j", "-g"):
            target = values[0]
            known = _VERDICTS.get(target, "" if target in _GOES_ON else "goto" if option == "-g" else "jump")
            verdict, to = known, target if known in ("jump", "goto") else ""
    matches = (_match(negated, option, values) for negated, option, values in options if option not in ("-j", "-g"))
    return Rule(tuple(match for match in matches if match), verdict, to)


def _options(words: list[str]) -> Iterator[tuple[bool, str, list[str]]]:
    """Part ["!", "-i", "lo", "-j", "DROP"] into (True, "-i", ["lo"]) and (False, "-j", ["DROP"])."""
    negated = False
    current: tuple[bool, str, list[str]] | None = None
    for word in words:
        if word == "!":
            if current:
                yield current
            negated, current = True, None
        elif word.startswith("-") and len(word) > 1:
            if current:
                yield current
            current, negated = (negated, word, []), False
        elif current:
            current[2].append(word)
    if current:
        yield current


def _match(negated: bool, option: str, values: list[str]) -> Match | None:  # noqa: FBT001  one of three words
    """Return the condition that an option stands for; None for what is none."""
    if option in ("--comment", _OF_THE_TARGET) or (option == "-m" and values[0] in _MODULES):
        return None
    if option not in _FIELDS or not values:
        return Match("")
    parts = tuple(part.replace(":", "-") if "port" in option else part.lower() for part in values[0].split(","))
    wild = tuple(part[:-1] + "*" if part.endswith("+") else part for part in parts) if option == "-i" else parts
    return Match(_FIELDS[option], wild, negated)


Words = Mapping[str, object]


_FAMILIES = ("inet", "ip")


_NFT_RULESET_VERDICTS = ("accept", "drop", "reject", "return", "jump", "goto")


_NO_CONDITION = ("counter", "log", "comment", "mangle", "notrack")


_ELSEWHERE = ("queue", "synproxy", "tproxy", "fwd")  # what becomes of the packet there is not in the rules


_UNKNOWN = Match("")


_NFT_RULESET_FIELDS = {
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
        if name in _NFT_RULESET_VERDICTS:
            target = str(cast("Words", what)["target"]) if name in ("jump", "goto") else ""
            yield Rule(tuple(matches), name, target)
        elif name == "vmap":
            yield from _mapped(cast("Words", what), tuple(matches), rule, sets)
        elif name in _ELSEWHERE:
            yield Rule((*matches, _UNKNOWN), "accept")
        elif name == "match":
            matches.append(_nft_ruleset_match(cast("Words", what), rule, sets))
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
        match = _nft_ruleset_match({"op": "==", "left": what["key"], "right": key}, rule, sets)
        ((name, target),) = verdict.items()
        yield Rule((*before, match), name, str(cast("Words", target)["target"]) if name in ("jump", "goto") else "")


def _nft_ruleset_match(what: Words, rule: Words, sets: Mapping[tuple[str, str], object]) -> Match:
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
    return _NFT_RULESET_FIELDS.get(key)


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
