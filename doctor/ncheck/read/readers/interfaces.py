"""ip, ifconfig, and the interfaces that NCCL's log names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck.expression import expression
from ncheck.model.remark import Remark, error, info, warning
from ncheck.read.ethtool import parse_ethtool
from ncheck.read.interfaces import data_nic, equal_nics, parse_interfaces, used_by_nccl
from ncheck.read.listed_interface import VIRTUAL, ListedInterface, class_of
from ncheck.read.reading import Reader, Reading, Record
from ncheck.text import export_line


def _read(text: str) -> Reading | None:
    if '"physical_state"' in text:
        return None  # rdma -j link
    try:
        tool, interfaces = parse_interfaces(text)
    except ValueError:
        return _ethtool(text)
    facts = _facts(tool, interfaces)
    return Reading("nics", tool, facts).saying(_remarks(interfaces, facts))


def _ethtool(text: str) -> Reading | None:
    cards = parse_ethtool(text)
    if not cards or not any("link" in card or "pci" in card for card in cards):
        return None
    facts: Record = {**_NOTHING, "format": "ethtool", "interfaces": cards}
    return Reading("nics", "ethtool", facts).saying(_of_cards(cards))


def _of_cards(cards: Sequence[Record]) -> Iterator[Remark]:
    speeds = {str(card["speed"]) for card in cards if card.get("link") == "yes" and "speed" in card}
    if len(speeds) > 1:
        yield warning(f"the interfaces differ in speed: {', '.join(sorted(speeds))}")
    for card in cards:
        if card.get("link") == "no":
            yield warning(f"{card['name']} has no link: cable, transceiver or switch port")
        if card.get("duplex") == "Half":
            yield error(f"{card['name']} runs at half duplex: autonegotiation failed")


def _facts(tool: str, interfaces: Sequence[ListedInterface]) -> Record:
    rows = [
        {"name": each.name, "cls": class_of(each, interfaces), "state": each.state, "ipv4": each.ipv4}
        for each in interfaces
    ]
    return {
        "format": tool,
        "interfaces": rows,
        "virtual_or_unusable": [row["name"] for row in rows if row["cls"] in VIRTUAL],
        "data_nic": data_nic(interfaces),
        "error": None,
    }


def _remarks(interfaces: Sequence[ListedInterface], facts: Record) -> Iterator[Remark]:
    classes = {each.name: class_of(each, interfaces) for each in interfaces}
    best = facts["data_nic"]
    if best is None and (equal := equal_nics(interfaces)):
        named = ", ".join(f"{each.name} ({each.ipv4})" if each.ipv4 else each.name for each in equal)
        yield warning(f"this text does not show which interface is for a job's data: {named} are equal")
    elif best is None:
        yield warning("no interface for a job's data: none is up, physical and has an IPv4 address, or the text is cut")
    else:
        yield info(f"interface for a job's data: {best} ({export_line('NCCL_SOCKET_IFNAME', f'={best}')})")
    if classes.get(str(best)) == "wifi":
        yield warning(f"only the wireless interface {best} has an IPv4 address")
    if classes.get(str(best)) in VIRTUAL:
        yield warning(f"{best} is {classes[str(best)]}: no physical interface has an IPv4 address here")
    dead = {each.name: why for each in used_by_nccl(interfaces) if each.name != best and (why := _dead(each, classes))}
    if dead and best is not None:
        named = ", ".join(f"{name} ({why})" for name, why in dead.items())
        yield warning(f"without InfiniBand NCCL would also send data over {named}, and may hang: name the interface")
    traps = [
        each.name
        for each in interfaces
        if each.name not in (best, *dead) and _usable(each) and classes[each.name] in _TRAPS
    ]
    if traps:
        names = ", ".join(traps)
        yield warning(f"{names}: not connected to other nodes; Gloo and Open MPI may choose one, so name the interface")
    prefix = [each.name for each in interfaces if best and each.name != best and each.name.startswith(str(best))]
    if prefix:
        yield info(f"NCCL_SOCKET_IFNAME={best} without a second = is a prefix and also means {', '.join(prefix)}")
    for each in interfaces:
        lonely = _link_local(each.ipv4) and classes[each.name] == "physical"
        if lonely and not _USB.match(each.name):
            yield error(f"{each.name} has only the link-local address {each.ipv4}: DHCP did not answer")


# enp0s20f0u1u6, usb0: how a management controller appears to its host
_USB = expression(r"en\w+?(?:u\d+)+(?:[ci]\d+)*$|usb\d|idrac")


def _dead(interface: ListedInterface, classes: Mapping[str, str]) -> str:
    """Return why no other node is behind an interface; "" as far as its class and its first address show."""
    if _link_local(interface.ipv4 or interface.ipv6):
        return "the network of the management controller" if _USB.match(interface.name) else "a link-local address"
    return f"{classes[interface.name]}, no network between nodes" if classes[interface.name] in _TRAPS else ""


def _link_local(address: str | None) -> bool:
    return bool(address) and str(address).lower().startswith(("169.254.", "fe80:"))


def _usable(interface: ListedInterface) -> bool:
    return interface.has_address and interface.state != "DOWN"


_TRAPS = ("container", "virtual", "overlay", "tunnel")


def _failed(_text: str) -> Reading:
    problem = "no interface found: not the output of ip or ifconfig, nor a log of NCCL"
    return Reading("nics", "", {**_NOTHING, "error": problem})


_NOTHING: Record = {"format": None, "interfaces": [], "virtual_or_unusable": [], "data_nic": None, "error": None}

READER = Reader(
    "nics",
    ("ip-addr", "ifconfig", "ip", "ip-link", "ethtool", "ip_json", "ip_br", "ip_addr", "ifconfig_new", "ifconfig_old"),
    60, _read, _failed,
)  # fmt: skip
