"""Which interface NCCL picks on a node: its own answer, or else its rules (NCCL source, misc/socket.cc and
os/linux.cc), which also give what the answer does not: every interface that its TCP transport uses.

The rules work on names, addresses, link state and settings; nothing is run. They were compared in the source of each
release from 2.3.7 to 2.30.7. They changed twice. Since 2.5.6 a leading "=" makes the names of NCCL_SOCKET_IFNAME exact;
before, it is part of a name. Since 2.28.3 an interface without a carrier is passed over, and virbr* comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from operator import attrgetter

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts, SubnetAddress
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import NodeView
from ncheck.nccl.settings import (
    BEFORE_LINK_STATE,
    EXACT_NAMES,
    LINK_STATE_COUNTS,
    Release,
    releases_of,
    settings_in_force,
)
from ncheck.network.subnets import subnet_addresses

MOST_ENTRIES = 16

PICK_FACTS = (LoadedNcclFacts, NcclPickFacts)  # what a pick depends on besides the interfaces and the environment

Candidate = tuple[Interface, Address]


@dataclass(frozen=True)
class Choice:
    """`picked` is the interface and address where ranks connect first; None if NCCL stops with an error instead.

    `used` are all interfaces that its TCP transport sends data over, each with the address where it listens, `why` the
    rule that selected them. `answer` is what NCCL itself answered, if it was asked, and `stray` the address in that
    answer if no interface has it.
    """

    picked: Candidate | None
    used: tuple[Candidate, ...]
    why: str
    answer: tuple[str, ...] = ()
    stray: str = ""

    @property
    def name(self) -> str:
        """The picked interface, "" if there is none."""
        return self.picked[0].name if self.picked else ""

    @property
    def where(self) -> tuple[str, str]:
        """The picked interface's name and the address, "" if there is none."""
        return (self.picked[0].name, self.picked[1].ip) if self.picked else ("", "")

    @property
    def described(self) -> str:
        """Return what NCCL does, as it follows "NCCL would"."""
        if self.picked is None:
            return f"find no interface and stop: {self.why}"
        nic, address = self.picked
        state = "" if nic.running else (", without a link" if nic.up else ", down")
        where = " at a link-local address" if _without_zone(address.ip).is_link_local else ""
        return f"pick {nic.name} ({nic.kind.value}{state}){where}: {self.why}"


def nccl_choice(nics: NicFacts, settings: Mapping[str, str], release: Release) -> Choice:
    """Return what NCCL of that release picks under these settings (see `settings_in_force`)."""
    candidates = list(_candidates(nics, settings.get("NCCL_SOCKET_FAMILY", ""), release))
    named, rendezvous = settings.get(IFNAME, ""), settings.get("NCCL_COMM_ID", "")
    rules = [(named, f"{IFNAME}={named}")] if len(named) > 1 else list(_automatic_rules(release))
    selected, why = _first_match(candidates, rules, exact=release >= EXACT_NAMES)
    why += f" ({IFNAME}={named} has one character and counts as unset)" if len(named) == 1 else ""
    if len(rendezvous) > 1:
        every = list(_candidates(nics, "", BEFORE_LINK_STATE))  # here neither family nor link state counts, even now
        picked = _in_subnet_of(every, rendezvous)
        first = len(named) > 1 or why.startswith(_IB_FIRST)  # for the data, these rules come before the rendezvous
        return Choice(picked, _used(selected) if first or not picked else (picked,), f"NCCL_COMM_ID={rendezvous}")
    return Choice(selected[0] if selected else None, _used(selected), why)


_IB_FIRST = "names that begin with ib come first"


def _automatic_rules(release: Release) -> Iterator[tuple[str, str]]:
    yield "ib", _IB_FIRST
    if release >= LINK_STATE_COUNTS:
        yield "^docker,lo,virbr", "the first in the kernel's order except docker*, lo and virbr*"
    else:
        yield "^docker,lo", "the first in the kernel's order except docker* and lo"
    yield "docker", "there is nothing but docker*"
    yield "lo", "there is nothing but lo"
    yield "virbr", "there is nothing but virbr*"


def _candidates(nics: NicFacts, family: str, release: Release) -> Iterator[Candidate]:
    """Yield interfaces with addresses in the order in which the kernel lists them: IPv4 before IPv6, then by index."""
    wanted = {"AF_INET": (4,), "AF_INET6": (6,)}.get(family, (4, 6))
    ordered = sorted(nics.interfaces, key=attrgetter("index"))
    every = [(nic, one) for nic in ordered if nic.running or release < LINK_STATE_COUNTS for one in nic.addresses]
    for version in wanted:
        yield from ((nic, address) for nic, address in every if _considered(address, version))


def _considered(address: Address, version: int) -> bool:
    """Return whether NCCL considers this address: it skips ::1, but not 127.0.0.1."""
    return version == (6 if ":" in address.ip else 4) and address.ip != "::1"


def _first_match(
    candidates: list[Candidate], rules: Iterable[tuple[str, str]], *, exact: bool
) -> tuple[list[Candidate], str]:
    why = "no interface has an address that NCCL considers"
    for pattern, why in rules:  # if no rule matches, the last one is the reason
        if selected := [candidate for candidate in candidates if _matches(candidate[0].name, pattern, exact)]:
            return selected, why
    return [], why


@lru_cache(maxsize=4096)  # the nodes of a cluster have the same few names
def _matches(name: str, pattern: str, exact_names: bool) -> bool:  # noqa: FBT001  a cache has no named arguments
    """Match as NCCL does: "^" excludes the whole list, "=" makes it exact, in this order; otherwise prefixes match."""
    negated, pattern = pattern.startswith("^"), pattern.removeprefix("^")
    exact = exact_names and pattern.startswith("=")
    pattern = pattern.removeprefix("=") if exact else pattern
    entries = [entry.partition(":")[0] for entry in pattern.split(",") if entry][:MOST_ENTRIES]
    hit = any(name == entry if exact else name.startswith(entry) for entry in entries) or not entries
    return hit != negated


def _in_subnet_of(candidates: list[Candidate], rendezvous: str) -> Candidate | None:
    """Return the first interface in the subnet of NCCL_COMM_ID ("10.0.0.1:4444"); host names are not resolved here."""
    try:
        there: IPv4Address | IPv6Address = ip_address(rendezvous.rpartition(":")[0].strip("[]"))
    except ValueError:
        return None
    return next((candidate for candidate in candidates if there in ip_network(candidate[1].network)), None)


def _used(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return each interface once, with its first address, as many as NCCL uses."""
    first: dict[str, Candidate] = {}
    for nic, address in candidates:
        first.setdefault(nic.name, (nic, address))
    return tuple(first.values())[:MOST_ENTRIES]


def choices(nics: NicFacts, environment: EnvironmentFacts, nccl: object, pick: object = None) -> tuple[Choice, ...]:
    """Return what the loaded NCCL picks: by its own answer, else by its rules.

    If its release is unknown, return what the old rules and the new ones pick. NCCL_COMM_ID, if set, also leaves it to
    the rules: NCCL then answers with that address.
    """
    by_rules = tuple(
        nccl_choice(nics, settings_in_force(environment, release), release) for release in releases_of(nccl)
    )
    if isinstance(pick, NcclPickFacts) and (pick.error or not pick.rendezvous):
        return (_answered(by_rules[-1], pick, nics),)
    return by_rules


def _answered(by_rules: Choice, pick: NcclPickFacts, nics: NicFacts) -> Choice:
    """Return NCCL's own answer. It takes precedence over the rules, and `answer` mentions any difference.

    It is the first interface alone. Which others carry data is left to the rules, but for those that come before it by
    the rules: NCCL has passed them over.
    """
    asked = f"asked NCCL {pick.version} itself"
    expected = f"ncheck expected {by_rules.name or 'no interface'} from NCCL's rules: {by_rules.why}"
    if pick.error:
        lines = (f"{asked}: {pick.error}", *([expected] if by_rules.picked else []))
        return Choice(None, (), by_rules.why if by_rules.picked is None else "its own answer", lines)
    owners = located(nics, pick)
    if not owners:
        return replace(by_rules, answer=(f"{asked}: {pick.address}", expected), stray=pick.address)
    if by_rules.picked in owners:
        return replace(by_rules, answer=(asked,))
    names = [nic.name for nic, _ in by_rules.used]
    others = by_rules.used[names.index(owners[0][0].name) :] if owners[0][0].name in names else by_rules.used
    return Choice(owners[0], _used((owners[0], *others)), "its own answer", (asked, expected))


def located(nics: NicFacts, pick: NcclPickFacts) -> tuple[Candidate, ...]:
    """Return the interfaces that have the address in NCCL's answer; the scope selects among link-local ones."""
    there = ip_address(pick.address)
    return tuple(
        (nic, address)
        for nic in nics.interfaces
        for address in nic.addresses
        if pick.scope in (0, nic.index) and _without_zone(address.ip) == there
    )


@lru_cache(maxsize=4096)
def _without_zone(ip: str) -> IPv4Address | IPv6Address:
    return ip_address(ip.partition("%")[0])


def picked_addresses(nodes: Iterable[NodeView]) -> dict[str, SubnetAddress]:
    """Return the address that NCCL picks on each node, of those where it is known and one that a job may use."""
    picked = {}
    for node in nodes:
        environment = node.maybe(EnvironmentFacts)
        if isinstance(environment, EnvironmentFacts):
            nics, library, answer = node[NicFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts)
            if address := _usable_pick(choices(nics, environment, library, answer), nics):
                picked[node.name] = address
    return picked


def used_addresses(node: NodeView) -> set[str]:
    """Return the addresses at which NCCL would listen on a node: for the first connections, and for data over TCP."""
    environment, nics = node.maybe(EnvironmentFacts), node.maybe(NicFacts)
    if not isinstance(environment, EnvironmentFacts) or not isinstance(nics, NicFacts):
        return set()
    found = choices(nics, environment, node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts))
    return {address.ip for choice in found for _, address in (*filter(None, [choice.picked]), *choice.used)}


def _usable_pick(alternatives: tuple[Choice, ...], nics: NicFacts) -> SubnetAddress | None:
    """Return the picked address; None if no job can use it, or if it depends on the release, which is unknown."""
    picked = {choice.picked for choice in alternatives}
    if len(picked) != 1 or alternatives[0].picked is None or alternatives[0].stray:
        return None
    nic, address = alternatives[0].picked
    return next((own for own in subnet_addresses(nics) if (own.interface, own.ip) == (nic, address.ip)), None)
