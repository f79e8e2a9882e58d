"""The network interfaces of a node, and what kind each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from ipaddress import ip_address, ip_interface
from typing import Annotated

from ncheck.decode import OPTIONAL, Device, Flag, Maybe, Null, OrEmpty, Words
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.parse.interface_names import Kind as Kind  # noqa: PLC0414  checks compare Interface.kind with it
from ncheck.parse.interface_names import kind_by_name


@dataclass(frozen=True)
class Address:
    """One address: ("10.1.0.7", 24). `prefix`: bits of the network; `scope`: global, link or host."""

    ip: str
    prefix: int
    scope: str = "global"

    @cached_property  # read by every network check, and a node may have ten thousand addresses
    def network(self) -> str:
        """The subnet, as "10.1.0.0/24"."""
        return str(ip_interface(f"{self.ip}/{self.prefix}").network)


@dataclass(frozen=True)
class Interface:
    """One interface, in the kernel's order, which is the order in which NCCL searches.

    `index`: the kernel's number of it. `speed`: Mb/s, None if the driver does not report it; `mtu`: bytes; `pci`
    like "0000:3b:00.0"; `numa`: its NUMA node, None if there is none. `up` is the administrative state, `running`
    whether it has a carrier (IFF_RUNNING). `master`: the bond or bridge that it belongs to.

    `uplink`: in a network namespace without a physical interface, the end of a veth pair that is a container's only
    connection. It is not usable, but a plan may use it if there is nothing else.
    """

    name: str
    index: int
    kind: Kind
    up: bool
    running: bool
    mtu: int
    addresses: tuple[Address, ...] = ()
    driver: str = ""
    pci: str = ""
    numa: int | None = None
    speed: int | None = None
    duplex: str = ""  # full, half; "" if the driver does not report it
    mac: str = ""
    master: str = ""
    hca: str = ""  # the InfiniBand or RoCE device behind it: mlx5_0
    default_route: bool = False
    uplink: bool = False
    peer_index: int | None = None  # the index of its parent or of its peer, in this namespace or another
    firmware: str = ""  # of the card, as `ethtool -i` shows it

    @property
    def usable(self) -> bool:
        """Whether a job's data can use it: a real network, up, with an address of global scope."""
        addressed = any(address.scope == "global" for address in self.addresses)
        return self.kind in CARRIES_DATA and self.up and self.running and addressed


# A management controller (BMC) appears to its host as a USB network card, with the same addresses on every machine.
BMC_DRIVERS = frozenset({"cdc_ether", "cdc_eem", "cdc_ncm", "rndis_host"})
CARRIES_DATA = frozenset({Kind.PHYSICAL, Kind.CLOUD, Kind.INFINIBAND, Kind.BOND, Kind.VLAN, Kind.BRIDGE, Kind.MACVLAN})


@dataclass(frozen=True)
class SubnetAddress:
    """An address of a node in a subnet, and its interface."""

    interface: Interface
    ip: str
    subnet: str


@dataclass(frozen=True)
class NicFacts:
    """Every interface of the node's network namespace, lo and veth included."""

    interfaces: tuple[Interface, ...]

    @cached_property
    def candidates(self) -> tuple[Interface, ...]:
        """The interfaces that a job may use: every usable one, or the uplinks if there is none."""
        usable = tuple(nic for nic in self.interfaces if nic.usable)
        return usable or tuple(nic for nic in self.interfaces if nic.uplink)

    @cached_property
    def met_at(self) -> tuple[SubnetAddress, ...]:
        """The addresses at which other nodes can reach this one, in the kernel's order, without link-local ones."""
        held = ((nic, address) for nic in self.candidates for address in nic.addresses if nic.driver not in BMC_DRIVERS)
        return tuple(
            SubnetAddress(nic, one.ip, one.network)
            for nic, one in held
            if one.scope == "global" and not ip_address(one.ip).is_link_local
        )


_MOST = 8192  # interfaces of one node: a thousand containers create as many


@dataclass(frozen=True)
class LinkAddress:
    """One address of an interface; without a prefix length it is the whole address."""

    ip: str
    prefix: Maybe[int] = None
    scope: OrEmpty = ""


@dataclass(frozen=True)
class ListedLink:
    """One interface. `type` is its number in ARPHRD_*, `lower` what is beneath it."""

    name: Device
    index: int
    up: Flag = False
    running: Flag = False
    loopback: Flag = False
    addresses: Annotated[tuple[Annotated[Address, _address], ...], OPTIONAL, Null(())] = ()
    type: Maybe[int] = None
    mtu: Annotated[int, OPTIONAL, Null(0)] = 0
    speed: Maybe[int] = None
    duplex: OrEmpty = ""
    mac: OrEmpty = ""
    master: OrEmpty = ""
    lower: Annotated[tuple[str, ...], OPTIONAL, Null(())] = ()
    device: OrEmpty = ""
    driver: OrEmpty = ""
    pci: OrEmpty = ""
    numa: Maybe[int] = None
    devtype: OrEmpty = ""
    bond: Flag = False
    bridge: Flag = False
    tun: Flag = False
    wireless: Flag = False
    vlan_id: Maybe[int] = None
    peer_index: Maybe[int] = None
    hca: OrEmpty = ""
    firmware: Annotated[Words, OPTIONAL, Null("")] = ""


@dataclass(frozen=True)
class InterfacesAnswer:
    """Every interface, in the kernel's order, and those of the default routes."""

    interfaces: tuple[ListedLink, ...]
    default_routes: Annotated[tuple[str, ...], OPTIONAL, Null(())] = ()


INTERFACES = Answer("interfaces", shape=InterfacesAnswer)
_LOOPBACK, _INFINIBAND, _NO_LINK_LAYER, _PPP, _ETHERNET = 772, 32, 65534, 512, 1  # ARPHRD_*, as in sysfs `type`
_CLOUD_DRIVERS = frozenset({"virtio_net", "ena", "gve", "gvnic", "hv_netvsc", "mana", "vmxnet3", "xen_netfront", "vif"})
_USB_DRIVERS = frozenset({"cdc_ether", "rndis_host", "cdc_ncm", "cdc_subset", "cdc_mbim", "qmi_wwan", "ipheth"})

_BY_DEVTYPE = {
    "wlan": Kind.WIFI,
    "bond": Kind.BOND,
    "vlan": Kind.VLAN,
    "vxlan": Kind.OVERLAY,
    "geneve": Kind.OVERLAY,
    "macvlan": Kind.MACVLAN,
    "macvtap": Kind.MACVLAN,
    "ipvlan": Kind.MACVLAN,
    "wireguard": Kind.TUN,
    "wwan": Kind.OTHER,
    "gadget": Kind.OTHER,
}

# What `ethtool -i` calls the drivers that have no device on a bus.
_BY_DRIVER = {
    "veth": Kind.VETH,
    "tun": Kind.TUN,
    "macvlan": Kind.MACVLAN,
    "macvtap": Kind.MACVLAN,
    "ipvlan": Kind.MACVLAN,
    "ipvtap": Kind.MACVLAN,
    "vxlan": Kind.OVERLAY,
    "geneve": Kind.OVERLAY,
    "bonding": Kind.BOND,
    "team": Kind.BOND,
    "802.1Q VLAN Support": Kind.VLAN,
    "dummy": Kind.OTHER,
    "openvswitch": Kind.OTHER,
}

_NEVER_UPLINKS = frozenset({Kind.LOOPBACK, Kind.BRIDGE, Kind.CONTAINER_BRIDGE, Kind.BOND_SLAVE})


@reading(INTERFACES)
def nics(answer: InterfacesAnswer) -> NicFacts:
    """Read every interface of the namespace that the agent ran in."""
    if len(answer.interfaces) > _MOST:
        raise ValueError(f"{len(answer.interfaces)} interfaces: more than any node has")
    links = {link.name: link for link in answer.interfaces}
    return NicFacts(with_uplinks(tuple(_interface(link, links, answer.default_routes) for link in links.values())))


def kind_of(link: ListedLink, links: Mapping[str, ListedLink], *, routed: bool) -> Kind:
    """Return the kind of an interface. `links` are all of the namespace, among them its master and its ports."""
    if link.loopback or link.type == _LOOPBACK:
        return Kind.LOOPBACK
    master = links.get(link.master)
    if master and master.bond:
        return Kind.BOND_SLAVE
    if link.type == _INFINIBAND:
        return Kind.INFINIBAND
    if link.bridge or link.devtype == "bridge":
        return _bridge(link, links, routed=routed)
    return _by_devtype(link) or _by_device(link) or _by_driver(link) or _by_pairing(link)


def with_uplinks(interfaces: tuple[Interface, ...]) -> tuple[Interface, ...]:
    """Mark the uplinks of a namespace without a physical interface.

    These are an end of a veth pair with an address, and any interface with the default route.
    """
    if any(nic.usable for nic in interfaces):
        return interfaces
    return tuple(replace(nic, uplink=_leads_out(nic)) for nic in interfaces)


def _leads_out(nic: Interface) -> bool:
    addressed = any(address.scope == "global" for address in nic.addresses)
    if not (nic.up and nic.running and addressed) or nic.master or nic.kind in _NEVER_UPLINKS:
        return False
    return nic.kind is Kind.VETH or nic.default_route


def _bridge(link: ListedLink, links: Mapping[str, ListedLink], *, routed: bool) -> Kind:
    """Return BRIDGE for a bridge of a LAN, which has a physical port or the default route; else it is of containers."""
    ports = [links[name] for name in link.lower if name in links]
    if kind_by_name(link.name) is Kind.CONTAINER_BRIDGE:
        return Kind.CONTAINER_BRIDGE
    wired = any(port.device or port.bond or port.vlan_id for port in ports)
    return Kind.BRIDGE if wired or routed else Kind.CONTAINER_BRIDGE


def _by_devtype(link: ListedLink) -> Kind | None:
    if kind := _BY_DEVTYPE.get(link.devtype):
        return kind
    if link.wireless:
        return Kind.WIFI
    if link.bond:
        return Kind.BOND
    if link.vlan_id is not None:
        return Kind.VLAN
    if link.tun or link.type in (_NO_LINK_LAYER, _PPP):
        return Kind.TUN
    return None


def _by_device(link: ListedLink) -> Kind | None:
    """Return the kind by the driver of its device; None if it has no device on a bus."""
    driver = link.driver
    if not (link.device or link.pci):
        return None
    if driver in _USB_DRIVERS:
        return Kind.OTHER
    return Kind.CLOUD if driver in _CLOUD_DRIVERS else Kind.PHYSICAL


def _by_driver(link: ListedLink) -> Kind | None:
    """Return the kind by the driver of a virtual interface; a veth named like a container bridge counts as one."""
    kind = _BY_DRIVER.get(link.driver)
    named = kind_by_name(link.name)
    return Kind.CONTAINER_BRIDGE if kind is Kind.VETH and named is Kind.CONTAINER_BRIDGE else kind


def _by_pairing(link: ListedLink) -> Kind:
    """Return VETH if iflink names a peer, else the kind by its name."""
    named = kind_by_name(link.name)
    if named in (Kind.OVERLAY, Kind.VETH, Kind.OTHER, Kind.CONTAINER_BRIDGE):
        return named
    if link.peer_index and link.type in (_ETHERNET, None):
        return Kind.VETH
    if link.type is None:
        return named or Kind.PHYSICAL
    return Kind.OTHER


_FASTEST = 10_000_000  # Mb/s


def _interface(link: ListedLink, links: Mapping[str, ListedLink], routes: tuple[str, ...]) -> Interface:
    name = link.name
    return Interface(
        name=name,
        index=link.index,
        kind=kind_of(link, links, routed=name in routes),
        up=link.up,
        running=link.running,
        mtu=link.mtu,
        addresses=link.addresses,
        driver=link.driver,
        pci=link.pci,
        numa=link.numa,
        speed=link.speed if 0 < (link.speed or 0) <= _FASTEST else None,  # old kernels show an unknown one as 2^32 - 1
        duplex=link.duplex,
        mac=link.mac,
        master=link.master,
        hca=link.hca,
        default_route=name in routes,
        peer_index=link.peer_index,
        firmware="" if link.firmware == "N/A" else link.firmware.strip(),
    )


def _address(one: LinkAddress) -> Address:
    """Return the address. Raises ValueError for anything else: it becomes part of commands."""
    ip, whole = one.ip, 128 if ":" in one.ip else 32
    prefix = whole if one.prefix is None else one.prefix
    if not 0 <= prefix <= whole:
        raise ValueError(f"no address has {prefix} bits of a network")
    if "%" in ip:
        raise ValueError(f"{ip} has a zone, which getifaddrs never returns")
    return Address(str(ip_address(ip)), prefix, one.scope or "global")


FACTS = (Fact(NicFacts, (INTERFACES,), nics),)
