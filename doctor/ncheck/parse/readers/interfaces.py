"""ip, ifconfig, and the interfaces that NCCL's log names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncheck.parse.ethtool import parse_ethtool
from ncheck.parse.interfaces import data_nic, parse_interfaces
from ncheck.parse.listed_interface import VIRTUAL, ListedInterface, class_of
from ncheck.parse.reading import Reader, Reading, Record, Remark, error, info, warning
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
    if best is None:
        yield warning("no interface for a job's data: none is up, physical and has an IPv4 address, or the text is cut")
    else:
        yield info(f"interface for a job's data: {best} ({export_line('NCCL_SOCKET_IFNAME', f'={best}')})")
    if classes.get(str(best)) == "wifi":
        yield warning(f"only the wireless interface {best} has an IPv4 address")
    if classes.get(str(best)) in VIRTUAL:
        yield warning(f"{best} is {classes[str(best)]}: no physical interface has an IPv4 address here")
    traps = [each.name for each in interfaces if each.name != best and _usable(each) and classes[each.name] in _TRAPS]
    if traps:
        yield warning(
            f"{', '.join(traps)}: no other node is behind these; NCCL, Gloo and Open MPI may choose one, so name the "
            "interface"
        )
    prefix = [each.name for each in interfaces if best and each.name != best and each.name.startswith(str(best))]
    if prefix:
        yield info(f"NCCL_SOCKET_IFNAME={best} without a second = is a prefix and also means {', '.join(prefix)}")
    for each in interfaces:
        if each.ipv4 and each.ipv4.startswith("169.254.") and classes[each.name] == "physical":
            yield error(f"{each.name} has only the link-local address {each.ipv4}: DHCP did not answer")


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
