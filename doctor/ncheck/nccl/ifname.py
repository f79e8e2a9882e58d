"""What is wrong with NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME on a node: entries that match no, or more, interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.nccl.choice import Choice, nccl_choice
from ncheck.nccl.settings import GLOO, LINK_STATE_COUNTS, PlacedSetting, Release, settings_in_force


def why_nothing_matches(
    setting: PlacedSetting, nics: NicFacts, environment: EnvironmentFacts, releases: Sequence[Release]
) -> str:
    """Return why NCCL finds no interface by this setting, whatever its release; "" if it finds one."""
    for release in releases:
        settings = settings_in_force(environment, release)
        if nccl_choice(nics, settings, release).used:
            return ""
    if setting.negated:
        return "it excludes every interface here"
    family = {"AF_INET": 4, "AF_INET6": 6}.get(settings.get("NCCL_SOCKET_FAMILY", ""), 0)
    strict = all(release >= LINK_STATE_COUNTS for release in releases)
    reasons = (_why_not(entry, setting, nics, family, strict=strict) for entry in setting.entries)
    return "; ".join(dict.fromkeys(reasons))


def why_gloo_fails(setting: PlacedSetting, nics: NicFacts) -> str:
    """Return which of gloo's interfaces are missing; "" if none is. Gloo needs every entry of its list."""
    with_address = {nic.name for nic in nics.interfaces if nic.addresses}
    missing = [entry for entry in setting.value.split(",") if entry and entry not in with_address]
    return "; ".join(_why_not(entry, setting, nics, 0, strict=False) for entry in missing)


def _why_not(entry: str, setting: PlacedSetting, nics: NicFacts, family: int, *, strict: bool) -> str:
    """Return what is wrong with one entry that selects no interface."""
    matching = [nic for nic in nics.interfaces if _matches(setting, entry, nic.name)]
    if matching:
        return f"{matching[0].name} exists but {_why_unusable(matching[0], family, strict=strict)}"
    return next(_likely_mistakes(entry, nics, gloo=setting.variable == GLOO))


def _why_unusable(nic: Interface, family: int, *, strict: bool) -> str:
    if not nic.addresses:
        return "has no address"
    if strict and not nic.running:
        return "has no link" if nic.up else "is down"
    return f"has no IPv{family} address" if family else "has no usable address"


def _likely_mistakes(entry: str, nics: NicFacts, *, gloo: bool) -> Iterator[str]:
    """Yield what may be wrong with an entry that is no interface name here, the likeliest mistake first."""
    names = [nic.name for nic in nics.interfaces]
    if (owner := _owner_of_address(entry, nics)) is not None:
        hint = f" (it belongs to {owner})" if owner else ""
        yield f"{entry.strip()} is an address{hint}: use interface names, not addresses"
    if entry != entry.strip():
        yield f"the blank in {entry!r} counts as part of the name"
    if entry.strip("'\"") != entry:
        yield f"the quotation marks in {entry} count as part of the name"
    if entry[:1] in ("^", "="):
        yield f"in {entry} the {entry[0]} counts as part of the name: ^, = and ^= only work before the whole list"
    if any(name.startswith(entry) for name in names):
        yield f"{entry} is only part of a name: {'gloo matches no prefixes' if gloo else 'after = names are exact'}"
    if alike := [name for name in names if name.lower().startswith(entry.lower())]:
        yield f"{entry} is not {alike[0]}: names are case-sensitive"
    others = ", ".join(name for name in names if name != "lo")
    yield f"no interface is named {entry}: {f'there are {others}' if others else 'there is only lo'}"


def _owner_of_address(entry: str, nics: NicFacts) -> str | None:
    """Return which interface an entry that is an address or subnet belongs to ("" for none); None if it is neither."""
    try:
        wanted = ip_network(entry.strip(), strict=False)
    except ValueError:
        return None
    addresses = (
        (nic.name, ip_address(address.ip.partition("%")[0])) for nic in nics.interfaces for address in nic.addresses
    )
    return next((name for name, ip in addresses if ip in wanted), "")


def _matches(setting: PlacedSetting, entry: str, name: str) -> bool:
    return name == entry if setting.exact else name.startswith(entry.partition(":")[0])


def also_matched(setting: PlacedSetting, nics: NicFacts) -> dict[str, tuple[str, ...]]:
    """Return the entries that are the full name of an interface here, with the others that they match as prefixes."""
    if setting.negated or setting.exact:
        return {}
    names = [nic.name for nic in nics.interfaces]
    meant = {entry.partition(":")[0] for entry in setting.entries}
    matched = {entry: tuple(n for n in names if n.startswith(entry) and n not in meant) for entry in meant & {*names}}
    return {entry: others for entry, others in sorted(matched.items()) if others}


def with_exact_names(
    setting: PlacedSetting, nics: NicFacts, environment: EnvironmentFacts, release: Release
) -> tuple[Choice, Choice]:
    """Return what NCCL picks now, and what it would pick if the entries were exact names."""
    settings = settings_in_force(environment, release)
    exact = {**settings, IFNAME: f"={setting.value}"}
    return nccl_choice(nics, settings, release), nccl_choice(nics, exact, release)
