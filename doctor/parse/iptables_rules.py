"""`iptables -S`: the chains of the filter table, INPUT among them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from doctor.model.facts import Chain, Match, Rule

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
