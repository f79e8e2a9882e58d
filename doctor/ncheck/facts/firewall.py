"""The active firewall: which service manages it, and which input chains stop new connections by default."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import cast

from ncheck.expression import expression
from ncheck.facts.definition import Fact, sudo_refused, trouble
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, File, Reply, Status
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class InputChain:
    """A chain at the input hook. `action` is what happens to a packet that no conditional rule of the chain decides:
    accept, drop or reject. `table` is named as its program names it ("inet firewalld", "iptables filter").
    """

    table: str
    name: str
    action: str


@dataclass(frozen=True)
class FirewallFacts:
    """`services`: the active ones of firewalld and ufw, which every user may see; only root may read the rules."""

    services: tuple[str, ...]
    chains: tuple[InputChain, ...] | Unread


SERVICES = Command(("systemctl", "is-active", "firewalld", "ufw"))
UFW = File("/etc/ufw/ufw.conf")
NFT = Command(("nft", "-j", "list", "ruleset"), root=True)

# The iptables table lives in nftables, or in the legacy module if that is loaded. `iptables -S` of old releases
# creates the table by reading it, so it runs only where the table exists.
_SCRIPT = (
    "case $(iptables -V) in *nf_tables*) "
    "command -v nft >/dev/null && ! nft list table ip filter >/dev/null 2>&1 && exit 0; exec iptables -S;; esac; "
    "test -e /proc/net/ip_tables_names || exit 0; grep -qx filter /proc/net/ip_tables_names; "
    "case $? in 0) exec iptables -S;; 1) exit 0;; *) exit 2;; esac"
)

IPTABLES = Command(("sh", "-c", _SCRIPT), root=True)

_STATES = frozenset(
    {"active", "inactive", "failed", "unknown", "activating", "deactivating", "reloading", "maintenance"}
)

_ACTIVE = frozenset({"active", "activating", "reloading"})
_EXITS = (0, 3, 4)  # a unit is active, none is active, none is installed
_NO_SYSTEMD = ("not been booted with systemd", "Failed to connect to bus", "Host is down")
_NO_JSON = ("JSON support not compiled-in", "invalid option", "unrecognized option")
_NOT_FOR_NFT = "is incompatible, use 'nft' tool"  # iptables' error for a table that nft wrote


def firewall(evidence: Evidence) -> Read[FirewallFacts]:
    """Read the active services, and the input chains if this user may see them."""
    services = _services(evidence)
    if isinstance(services, Unread):
        return services
    chains = _chains(evidence)
    if isinstance(chains, Absent):
        return FirewallFacts(services, Unread("neither nft nor iptables is installed")) if services else chains
    if isinstance(chains, Unread) and not (services and chains.needs_root):
        return chains
    return FirewallFacts(services, chains)


def _services(evidence: Evidence) -> tuple[str, ...] | Unread:
    """Return which of the two services filter. On Ubuntu the ufw service is active even while its filter is off."""
    reply = evidence.reply(SERVICES)
    if reply.status is Status.MISSING or any(words in reply.stderr for words in _NO_SYSTEMD):
        return ()
    if reply.status is not Status.OK or reply.truncated:
        why = trouble(SERVICES, reply)
        return why if isinstance(why, Unread) else Unread("systemctl was not run")
    words = reply.stdout.split()
    if reply.exit_status not in _EXITS or len(words) != 2 or not _STATES.issuperset(words):  # noqa: PLR2004  two units
        return Unread(f"systemctl is-active: {(reply.stderr or reply.stdout).strip()[:200] or 'no output'}")
    active = [name for name, word in zip(SERVICES.argv[2:], words, strict=True) if word in _ACTIVE]
    if "ufw" in active:
        enabled = _ufw_enabled(evidence)
        if isinstance(enabled, Unread):
            return enabled
        active = active if enabled else [name for name in active if name != "ufw"]
    return tuple(active)


def _ufw_enabled(evidence: Evidence) -> bool | Unread:
    reply = evidence.reply(UFW)
    if why := trouble(UFW, reply):
        return Unread(f"the ufw service is active, but its configuration cannot be read: {why.reason}")
    if not isinstance(reply.value, str):
        raise TypeError(f"{UFW.path} is not text")
    # The line reads ENABLED=yes.
    lines = [line.strip().lower().partition("=") for line in reply.value.splitlines()]
    values = [value.strip("\"'") for key, _, value in lines if key == "enabled"]
    return values[-1] == "yes" if values else Unread(f"{UFW.path} has no line ENABLED=")


def _chains(evidence: Evidence) -> tuple[InputChain, ...] | Unread | Absent:
    """Return the input chains of both programs. A table that iptables lists itself is not taken from nft again."""
    nft, old = evidence.reply(NFT), evidence.reply(IPTABLES)
    for source, reply in ((NFT, nft), (IPTABLES, old)):
        if reply.status in (Status.TIMEOUT, Status.FAILED, Status.UNANSWERED):
            why = trouble(source, reply)
            return why if isinstance(why, Unread) else Unread(f"{source.argv[0]} was not run")
    if Status.DENIED in (nft.status, old.status):
        hidden = Unread("only root can read the firewall rules", needs_root=True, fix="sudo nft list ruleset")
        return sudo_refused(nft) or sudo_refused(old) or hidden
    readable = nft.status is Status.OK and not any(words in nft.stderr for words in _NO_JSON)
    if readable and (why := trouble(NFT, nft)):
        return why
    text = _iptables_text(old)
    if isinstance(text, Unread):
        return text
    if not readable and "not found" in old.stderr:
        return Absent("neither nft nor iptables is installed")
    chains = nft_chains(nft.stdout) if readable else ()
    by_iptables = iptables_chains(text)
    return (*(chain for chain in chains if not (by_iptables and chain.table == "ip filter")), *by_iptables)


def _iptables_text(reply: Reply) -> str | Unread:
    if reply.status is Status.MISSING or _NOT_FOR_NFT in reply.stderr:
        return ""
    why = trouble(IPTABLES, reply)
    return Unread(f"iptables -S: {reply.stderr.strip()[:200] or why.reason}") if why else reply.stdout


_ACTIONS = ("accept", "drop", "reject")
_NO_CONDITION = frozenset({"counter", "log", "comment", *_ACTIONS})  # statements of a rule that applies to every packet

_Object = Mapping[str, object]

# KUBE-FIREWALL, cali_input: what nft itself takes for a name; it reads its arguments once more as its own language
_NFT_NAME = expression(r"[A-Za-z][A-Za-z0-9/\\_.-]{0,255}")


def nft_chains(text: str) -> tuple[InputChain, ...]:
    """Read the IPv4 input chains of `nft -j list ruleset`. Raises ValueError, KeyError or TypeError for other text."""
    objects = cast("list[Mapping[str, _Object]]", json.loads(text)["nftables"])
    actions: dict[tuple[object, ...], str] = {}  # of each chain's first rule without a condition
    for rule in (item["rule"] for item in objects if "rule" in item):
        statements = [name for statement in cast("list[_Object]", rule["expr"]) for name in statement]
        if _NO_CONDITION.issuperset(statements) and statements[-1] in _ACTIONS:
            actions.setdefault((rule["family"], rule["table"], rule["chain"]), statements[-1])
    return tuple(
        InputChain(
            f"{chain['family']} {_nft_name(chain['table'])}",
            _nft_name(chain["name"]),
            actions.get((chain["family"], chain["table"], chain["name"]), str(chain.get("policy") or "accept")),
        )
        for chain in (item["chain"] for item in objects if "chain" in item)
        if chain["family"] in ("inet", "ip") and (chain.get("hook"), chain.get("type")) == ("input", "filter")
    )


def _nft_name(value: object) -> str:
    if not isinstance(value, str) or not _NFT_NAME.fullmatch(value):
        raise ValueError(f"{quoted(str(value))} is not a name of nftables")
    return value


_POLICIES = {"ACCEPT": "accept", "DROP": "drop"}


def iptables_chains(text: str) -> tuple[InputChain, ...]:
    """Read the INPUT chain of `iptables -S`; no text is no chain. Raises ValueError or LookupError for other text."""
    policy, action = "", ""
    for words in map(shlex.split, text.splitlines()):
        if words and words[0] not in ("-P", "-N", "-A"):
            raise ValueError(f"not a line of iptables -S: {' '.join(words)[:60]}")
        if words[:2] == ["-P", "INPUT"]:  # -P INPUT DROP
            policy = _POLICIES[words[2]]
        elif words[:2] == ["-A", "INPUT"] and not action:
            action = _unconditional(words[2:])
    return (InputChain("iptables filter", "INPUT", action or policy or "accept"),) if text.strip() else ()


def _unconditional(words: list[str]) -> str:
    """Return the action of a rule that applies to every packet, "" for any other rule."""
    if words[:3] == ["-m", "comment", "--comment"]:
        words = words[4:]
    # -j REJECT --reject-with icmp-port-unreachable
    applies_to_all = words[:1] == ["-j"] and (len(words) == 2 or words[2] == "--reject-with")  # noqa: PLR2004
    return words[1].lower() if applies_to_all and words[1].lower() in _ACTIONS else ""


FACTS = (Fact(FirewallFacts, (SERVICES, UFW, NFT, IPTABLES), firewall),)
