"""Which interface NCCL would pick on a node: its own answer, or else its rules (NCCL source, misc/socket.cc and
os/linux.cc), which also tell what the answer does not: every interface that its TCP transport would use.

Reasoned from names, addresses, link state and settings; nothing is run. The rules changed with 2.28.3: since then
an interface without a carrier is passed over, and virbr* comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.fact import Absent, Unread

BEFORE_LINK_STATE = (2, 27, 7)


LINK_STATE_COUNTS = (2, 28, 3)


CONF_FILE_VARIABLE = (2, 23, 4)


MOST_ENTRIES = 16


@dataclass(frozen=True)
class Choice:
    """`picked` is the interface and address that ranks meet by; None where NCCL stops with an error instead.

    `used` are all interfaces that its TCP transport would send data over, `why` the rule that found them. `answer` is
    what NCCL said where it was asked itself, and `stray` the address that it named and no interface was seen to have.
    """

    picked: tuple[Interface, Address] | None
    used: tuple[Interface, ...]
    why: str
    answer: tuple[str, ...] = ()
    stray: str = ""

    @property
    def name(self) -> str:
        """The picked interface, "" where there is none."""
        return self.picked[0].name if self.picked else ""

    @property
    def where(self) -> tuple[str, str]:
        """The picked interface's name and the address, "" where there is none."""
        return (self.picked[0].name, self.picked[1].ip) if self.picked else ("", "")

    @property
    def told(self) -> str:
        """Say what NCCL does, after "NCCL would"."""
        if self.picked is None:
            return f"find no interface and stop: {self.why}"
        nic, address = self.picked
        state = "" if nic.running else (", without a link" if nic.up else ", down")
        where = " at a link-local address" if ip_address(address.ip.partition("%")[0]).is_link_local else ""
        return f"pick {nic.name} ({nic.kind.value}{state}){where}: {self.why}"


def nccl_choice(nics: NicFacts, settings: Mapping[str, str], release: tuple[int, ...]) -> Choice:
    """Return what NCCL of that release picks under these settings (see `settings_in_force`)."""
    offers = list(_offers(nics, settings.get("NCCL_SOCKET_FAMILY", ""), release))
    named = settings.get(IFNAME, "")
    rules = [(named, f"{IFNAME}={named}")] if len(named) > 1 else list(_automatic_rules(release))
    found, why = _first_that_finds(offers, rules)
    why += f" ({IFNAME}={named}, of one character, is no setting)" if len(named) == 1 else ""
    rendezvous = settings.get("NCCL_COMM_ID", "")
    if len(rendezvous) > 1:
        whatever = list(_offers(nics, "", BEFORE_LINK_STATE))  # here neither family nor link state counts, not even now
        return Choice(_in_subnet_of(whatever, rendezvous), _interfaces(found), f"NCCL_COMM_ID={rendezvous}")
    return Choice(found[0] if found else None, _interfaces(found), why)


def settings_in_force(environment: EnvironmentFacts, release: tuple[int, ...]) -> dict[str, str]:
    """Return NCCL's variables as a job would have them: the environment, then the user's file, then /etc/nccl.conf."""
    return {name: value for name, (value, _) in placed_settings(environment, release).items()}


def placed_settings(environment: EnvironmentFacts, release: tuple[int, ...]) -> dict[str, tuple[str, str]]:
    """Return the same, each with the file that sets it; "" is the environment."""
    other = environment.variables.get("NCCL_CONF_FILE", "") if release >= CONF_FILE_VARIABLE else ""
    users = [path for path in environment.files if (path == other if other else path.endswith("/.nccl.conf"))]
    settings = {name: (value, "") for name, value in environment.variables.items() if name.startswith("NCCL_")}
    for path in (*users, "/etc/nccl.conf"):
        for name, value in _assignments(environment.files.get(path, Absent("not there"))):
            settings.setdefault(name, (value, path))
    return settings


def _assignments(lines: tuple[str, ...] | Unread | Absent) -> Iterator[tuple[str, str]]:
    """Yield a file's settings as NCCL reads them: no blank is cut off, so "NCCL_X = v" sets nothing that it knows.

    A file that this user may not read is no setting either: NCCL is the same user.
    """
    for line in () if isinstance(lines, (Unread, Absent)) else lines:
        name, equals, value = line.rstrip("\n").partition("=")
        if equals and not name.startswith("#"):
            yield name, value


def _automatic_rules(release: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    yield "ib", "a name that begins with ib comes first"
    if release >= LINK_STATE_COUNTS:
        yield "^docker,lo,virbr", "the first in the kernel's order but docker*, lo and virbr*"
    else:
        yield "^docker,lo", "the first in the kernel's order but docker* and lo"
    yield "docker", "nothing but docker* is left"
    yield "lo", "nothing but lo is left"
    yield "virbr", "nothing but virbr* is left"


Offer = tuple[Interface, Address]


def _offers(nics: NicFacts, family: str, release: tuple[int, ...]) -> Iterator[Offer]:
    """Yield interfaces with addresses in the order in which the kernel lists them: IPv4 before IPv6, then by index."""
    wanted = {"AF_INET": (4,), "AF_INET6": (6,)}.get(family, (4, 6))
    for version in wanted:
        for nic in sorted(nics.interfaces, key=lambda nic: nic.index):
            if nic.running or release < LINK_STATE_COUNTS:
                yield from ((nic, address) for address in nic.addresses if _counts(address, version))


def _counts(address: Address, version: int) -> bool:
    """Tell whether NCCL looks at this address: of IPv6's loopback it does not, of 127.0.0.1 it does."""
    return version == (6 if ":" in address.ip else 4) and address.ip != "::1"


def _first_that_finds(offers: list[Offer], rules: Iterable[tuple[str, str]]) -> tuple[list[Offer], str]:
    why = "no interface has an address that NCCL looks at"
    for pattern, why in rules:  # the last words stand where no rule finds any
        if found := [offer for offer in offers if _matches(offer[0].name, pattern)]:
            return found, why
    return [], why


@lru_cache(maxsize=4096)  # the nodes of a cluster have the same few names
def _matches(name: str, pattern: str) -> bool:
    """Match as NCCL does: "^" turns the whole list round, "=" makes it exact, in this order; else prefixes count."""
    negated, pattern = pattern.startswith("^"), pattern.removeprefix("^")
    exact, pattern = pattern.startswith("="), pattern.removeprefix("=")
    entries = [entry.partition(":")[0] for entry in pattern.split(",") if entry][:MOST_ENTRIES]
    hit = any(name == entry if exact else name.startswith(entry) for entry in entries) or not entries
    return hit != negated


def _in_subnet_of(offers: list[Offer], rendezvous: str) -> Offer | None:
    """Return the first interface in the subnet of NCCL_COMM_ID ("10.0.0.1:4444"); a host name finds none here."""
    try:
        there: IPv4Address | IPv6Address = ip_address(rendezvous.rpartition(":")[0].strip("[]"))
    except ValueError:
        return None
    return next((offer for offer in offers if there in ip_network(offer[1].network)), None)


def _interfaces(offers: list[Offer]) -> tuple[Interface, ...]:
    return tuple({nic.name: nic for nic, _ in offers}.values())[:MOST_ENTRIES]


def choices(nics: NicFacts, environment: EnvironmentFacts, nccl: object, pick: object = None) -> tuple[Choice, ...]:
    """Return what the loaded NCCL picks: as it said itself, else by its rules.

    Where its release is not known, what the old rules and the new ones pick. An NCCL_COMM_ID that is set leaves it to
    the rules too: NCCL echoes that address.
    """
    releases = releases_of(nccl)
    found = tuple(nccl_choice(nics, settings_in_force(environment, release), release) for release in releases)
    if isinstance(pick, NcclPickFacts) and (pick.error or not pick.rendezvous):
        return (_answered(found[-1], pick, nics),)
    return found


def releases_of(nccl: object) -> tuple[tuple[int, ...], ...]:
    """Return the release of the NCCL that loads; where it is not known, one of each kind of rules."""
    known = isinstance(nccl, LoadedNcclFacts) and release_of(nccl.version)
    return (known,) if known else (BEFORE_LINK_STATE, LINK_STATE_COUNTS)


def _answered(reasoned: Choice, pick: NcclPickFacts, nics: NicFacts) -> Choice:
    """Return NCCL's own answer. Where ncheck reasons otherwise the answer counts, and the difference is told."""
    asked = f"asked NCCL {pick.version} itself"
    expected = f"by NCCL's rules ncheck had expected {reasoned.name or 'no interface'}: {reasoned.why}"
    if pick.error:
        lines = (f"{asked}: {pick.error}", *([expected] if reasoned.picked else []))
        return Choice(None, (), reasoned.why if reasoned.picked is None else "its own answer", lines)
    owners = located(nics, pick)
    if not owners:
        return replace(reasoned, answer=(f"{asked}: {pick.address}", expected), stray=pick.address)
    if reasoned.picked in owners:
        return replace(reasoned, answer=(asked,))
    return Choice(owners[0], (owners[0][0],), "its own answer", (asked, expected))


def located(nics: NicFacts, pick: NcclPickFacts) -> tuple[Offer, ...]:
    """Return the interfaces that have the address which NCCL named; of link-local ones the scope tells which."""
    there = ip_address(pick.address)
    return tuple(
        (nic, address)
        for nic in nics.interfaces
        for address in nic.addresses
        if ip_address(address.ip.partition("%")[0]) == there and pick.scope in (0, nic.index)
    )


def release_of(version: str) -> tuple[int, ...]:
    """Return (2, 21, 5) for "2.21.5"; () for what does not begin so."""
    numbers = version.partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdecimal() for number in numbers) else ()
