"""What a packet filter does to what comes in: who manages it, and the rules at the input hook."""

from __future__ import annotations

from dataclasses import dataclass

from ncheck.facts.definition import Fact, trouble
from ncheck.model.evidence import Command, Evidence, File, Reply, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.packet_filters import Chain, iptables_chains, nft_chains


@dataclass(frozen=True)
class FirewallFacts:
    """`managers` are the services that keep rules here: firewalld, ufw. Anyone may know these; the rules, root only."""

    managers: tuple[str, ...]
    chains: tuple[Chain, ...] | Unread


SERVICES = Command(("systemctl", "is-active", "firewalld", "ufw"))


UFW = File("/etc/ufw/ufw.conf")


NFT = Command(("nft", "-j", "list", "ruleset"), root=True)


# The table of iptables is in nftables, or in the old module where that was loaded; old releases make it by looking.
_SCRIPT = (
    "case $(iptables -V) in *nf_tables*) "
    "command -v nft >/dev/null && ! nft list table ip filter >/dev/null 2>&1 && exit 0; exec iptables -S;; esac; "
    "test -e /proc/net/ip_tables_names || exit 0; grep -qx filter /proc/net/ip_tables_names; "
    "case $? in 0) exec iptables -S;; 1) exit 0;; *) exit 2;; esac"
)


IPTABLES = Command(("sh", "-c", _SCRIPT), root=True)


_WORDS = frozenset(
    {"active", "inactive", "failed", "unknown", "activating", "deactivating", "reloading", "maintenance"}
)


_ACTIVE = frozenset({"active", "activating", "reloading"})


_EXITS = (0, 3, 4)  # some unit is active, none is, none is known


_NO_SYSTEMD = ("not been booted with systemd", "Failed to connect to bus", "Host is down")


_NO_JSON = ("JSON support not compiled-in", "invalid option", "unrecognized option")


_NOT_FOR_NFT = "is incompatible, use 'nft' tool"  # what iptables says of a table that it did not write


def firewall(evidence: Evidence) -> Read[FirewallFacts]:
    """Read who keeps rules here, and the rules as far as this user is shown them."""
    managers = _managers(evidence)
    if isinstance(managers, Unread):
        return managers
    chains = _chains(evidence)
    if isinstance(chains, Absent) or (isinstance(chains, Unread) and not managers):
        return chains if not managers else FirewallFacts(managers, Unread("no program here shows the rules"))
    if isinstance(chains, Unread) and not chains.needs_root:
        return chains
    return FirewallFacts(managers, chains)


def _managers(evidence: Evidence) -> tuple[str, ...] | Unread:
    """Return which of the two services filter. Ubuntu's ufw counts as active from the start, and is off until told."""
    reply = evidence.reply(SERVICES)
    if reply.status is Status.MISSING or any(words in reply.stderr for words in _NO_SYSTEMD):
        return ()
    if reply.status is not Status.OK or reply.truncated:
        why = trouble(SERVICES, reply)
        return why if isinstance(why, Unread) else Unread("systemctl was not asked")
    words = reply.stdout.split()
    if reply.exit_status not in _EXITS or len(words) != 2 or not _WORDS.issuperset(words):  # noqa: PLR2004  as many units
        return Unread(f"systemctl is-active: {(reply.stderr or reply.stdout).strip()[:200] or 'it said nothing'}")
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
        return Unread(f"ufw is active as a service, and whether it filters cannot be read: {why.reason}")
    if not isinstance(reply.value, str):
        raise TypeError(f"{UFW.path} is no text")
    # The line is this one: ENABLED=yes
    lines = [line.strip().lower().partition("=") for line in reply.value.splitlines()]
    words = [value.strip("\"'") for key, _, value in lines if key == "enabled"]
    return words[-1] == "yes" if words else Unread(f"{UFW.path} does not say whether ufw filters")


def _chains(evidence: Evidence) -> tuple[Chain, ...] | Unread | Absent:
    """Return the rules of both programs; where iptables tells of its own table, nft's account of that is left out."""
    nft, old = evidence.reply(NFT), evidence.reply(IPTABLES)
    for source, reply in ((NFT, nft), (IPTABLES, old)):
        if reply.status in (Status.TIMEOUT, Status.FAILED, Status.UNANSWERED):
            why = trouble(source, reply)
            return why if isinstance(why, Unread) else Unread(f"{source.argv[0]} was not asked")
    if Status.DENIED in (nft.status, old.status):
        return Unread("the rules of the packet filter are shown to root only", True, "sudo nft list ruleset")  # noqa: FBT003
    shown = nft.status is Status.OK and not any(words in nft.stderr for words in _NO_JSON)
    if shown and (why := trouble(NFT, nft)):
        return why
    text = _iptables(old)
    if isinstance(text, Unread):
        return text
    if not shown and "not found" in old.stderr:
        return Absent("neither nft nor iptables is here, and no rules to be seen")
    chains = nft_chains(nft.stdout) if shown else ()
    by_iptables = iptables_chains(text)
    return (*(chain for chain in chains if not (by_iptables and chain.table == "ip filter")), *by_iptables)


def _iptables(reply: Reply) -> str | Unread:
    if reply.status is Status.MISSING or _NOT_FOR_NFT in reply.stderr:
        return ""
    why = trouble(IPTABLES, reply)
    return Unread(f"iptables -S: {reply.stderr.strip()[:200] or why.reason}") if why else reply.stdout


FACTS = (Fact(FirewallFacts, (SERVICES, UFW, NFT, IPTABLES), firewall),)
