"""NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME as somebody set them: where, and what their entries take on a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from shlex import quote
from string import ascii_letters, digits

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.nccl.choice import LINK_STATE_COUNTS, Choice, nccl_choice, placed_settings, release_of, settings_in_force
from ncheck.text import export_line, sudo_for

GLOO = "GLOO_SOCKET_IFNAME"


_PLAIN = frozenset(ascii_letters + digits + "_.,:@^=-")  # what may come to stand in a line to type


Release = tuple[int, ...]


@dataclass(frozen=True)
class Named:
    """A variable with its value; `file` is the configuration file that sets it, "" is the environment.

    NCCL's are prefixes, unless "=" makes them exact; "^" turns the list round. Gloo's are exact, and all are used:
    torch (source, distributed/c10d) has a list, Paddle one name; for both one character is no value.
    """

    variable: str
    value: str
    file: str = ""

    @property
    def told(self) -> str:
        return f"{self.variable}={self.value} in {self.file or 'the environment'}"

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(entry for entry in self.value.removeprefix("^").removeprefix("=").split(",") if entry)

    @property
    def negated(self) -> bool:
        return self.value.startswith("^")

    @property
    def exact(self) -> bool:
        return self.variable == GLOO or self.value.removeprefix("^").startswith("=")

    def set_to(self, value: str) -> str:
        """Return a line that sets another value in the same place; one that is "" takes the setting away."""
        plain = set(value) <= _PLAIN
        if not self.file or not self.file.isprintable():
            return export_line(self.variable, value) if value and plain else f"unset {self.variable}"
        change = f"s/^{self.variable}=.*/{self.variable}={value}/" if value and plain else f"/^{self.variable}=/d"
        return f"{sudo_for(self.file)}sed -i {quote(change)} {quote(self.file)}"


def named(environment: EnvironmentFacts, release: Release) -> Named | None:
    """Return NCCL_SOCKET_IFNAME as it counts for NCCL, which passes over a value of one character."""
    value, file = placed_settings(environment, release).get(IFNAME, ("", ""))
    return Named(IFNAME, value, file) if len(value) > 1 else None


def named_for_gloo(environment: EnvironmentFacts) -> Named | None:
    """Return GLOO_SOCKET_IFNAME; no file sets it, and one character counts as nothing there, too."""
    value = environment.variables.get(GLOO, "")
    return Named(GLOO, value) if len(value) > 1 else None


def why_nothing(setting: Named, nics: NicFacts, environment: EnvironmentFacts, releases: Sequence[Release]) -> str:
    """Say why NCCL finds no interface by its list, whatever its release; "" where it finds one."""
    for release in releases:
        settings = settings_in_force(environment, release)
        if nccl_choice(nics, settings, release).used:
            return ""
    if setting.negated:
        return "it leaves out every interface here"
    family = {"AF_INET": 4, "AF_INET6": 6}.get(settings.get("NCCL_SOCKET_FAMILY", ""), 0)
    strict = all(release >= LINK_STATE_COUNTS for release in releases)
    return "; ".join(dict.fromkeys(_missed(entry, setting, nics, family, strict=strict) for entry in setting.entries))


def why_no_gloo(setting: Named, nics: NicFacts) -> str:
    """Say which of gloo's interfaces are not here: it needs each of its list; "" where all are."""
    addressed = {nic.name for nic in nics.interfaces if nic.addresses}
    missed = [entry for entry in setting.value.split(",") if entry and entry not in addressed]
    return "; ".join(_missed(entry, setting, nics, 0, strict=False) for entry in missed)


def _missed(entry: str, setting: Named, nics: NicFacts, family: int, *, strict: bool) -> str:
    """Say what is wrong with one entry that takes no interface."""
    there = [nic for nic in nics.interfaces if _takes(setting, entry, nic.name)]
    if there:
        return f"{there[0].name} is here, and {_useless(there[0], family, strict=strict)}"
    return next(_misspelled(entry, nics, gloo=setting.variable == GLOO))


def _useless(nic: Interface, family: int, *, strict: bool) -> str:
    if not nic.addresses:
        return "has no address"
    if strict and not nic.running:
        return "has no link" if nic.up else "is down"
    return f"has no IPv{family} address" if family else "has no address that counts"


def _misspelled(entry: str, nics: NicFacts, *, gloo: bool) -> Iterator[str]:
    """Yield what a person may have meant by an entry that is no name here, the likeliest first."""
    names = [nic.name for nic in nics.interfaces]
    if (owner := _addressed(entry, nics)) is not None:
        yield f"{entry.strip()} is no name{owner}: names are wanted, no addresses"
    if entry != entry.strip():
        yield f"the blank in {entry!r} counts as a part of the name"
    if entry.strip("'\"") != entry:
        yield f"the quotation marks in {entry} count as a part of the name"
    if entry[:1] in ("^", "="):
        yield f"in {entry} the {entry[0]} counts as a part of the name: only a list may begin with ^, = or ^="
    if any(name.startswith(entry) for name in names):
        yield f"{entry} is not all of a name: {'gloo takes no prefix' if gloo else 'with = no prefix is taken'}"
    if alike := [name for name in names if name.lower().startswith(entry.lower())]:
        yield f"{entry} is not {alike[0]}: capital letters count"
    others = ", ".join(name for name in names if name != "lo")
    yield f"no interface here is called {entry}: {f'there are {others}' if others else 'there is only lo'}"


def _addressed(entry: str, nics: NicFacts) -> str | None:
    """Tell whose address or subnet an entry is; None where it is neither."""
    try:
        wanted = ip_network(entry.strip(), strict=False)
    except ValueError:
        return None
    held = (
        (nic.name, ip_address(address.ip.partition("%")[0])) for nic in nics.interfaces for address in nic.addresses
    )
    owner = next((name for name, ip in held if ip in wanted), "")
    return f", {owner} is" if owner else ""


def _takes(setting: Named, entry: str, name: str) -> bool:
    return name == entry if setting.exact else name.startswith(entry.partition(":")[0])


def taken_along(setting: Named, nics: NicFacts) -> dict[str, tuple[str, ...]]:
    """Return the entries that are the very name of an interface here, with the others that they take as prefixes."""
    if setting.negated or setting.exact:
        return {}
    names = [nic.name for nic in nics.interfaces]
    meant = {entry.partition(":")[0] for entry in setting.entries}
    along = {entry: tuple(n for n in names if n.startswith(entry) and n not in meant) for entry in meant & {*names}}
    return {entry: found for entry, found in sorted(along.items()) if found}


def with_exact_names(
    setting: Named, nics: NicFacts, environment: EnvironmentFacts, release: Release
) -> tuple[Choice, Choice]:
    """Return what NCCL does now, and what it would do if the entries were exact names."""
    settings = settings_in_force(environment, release)
    exact = {**settings, IFNAME: f"={setting.value}"}
    return nccl_choice(nics, settings, release), nccl_choice(nics, exact, release)


def steering(environment: EnvironmentFacts, version: str, plan: Mapping[str, str]) -> tuple[Named, ...]:
    """Return the settings beside the plan's that steer which address NCCL picks."""
    placed = placed_settings(environment, release_of(version))
    names = [name for name in ("NCCL_SOCKET_FAMILY", "NCCL_COMM_ID", IFNAME) if name in placed and name not in plan]
    return tuple(Named(name, *placed[name]) for name in names)
