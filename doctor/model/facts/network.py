"""NICs and InfiniBand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Kind(str, Enum):
    """What an interface really is. Names decide only where nothing else does."""

    PHYSICAL = "physical"  # a device on a bus behind it
    CLOUD = "cloud"  # a hypervisor's NIC: virtio, ena, gve, hv_netvsc, vmxnet3, xen
    INFINIBAND = "infiniband"  # IPoIB, sysfs type 32
    BOND = "bond"
    BOND_SLAVE = "bond-slave"
    VLAN = "vlan"
    BRIDGE = "bridge"
    VETH = "veth"
    TUN = "tun"  # tun, tap, wireguard, tailscale: tunnels of user space and VPNs
    OVERLAY = "overlay"  # flannel, cali, cilium, vxlan, geneve: a container network's own
    CONTAINER_BRIDGE = "container-bridge"  # docker0, br-<hash>, cni0, virbr0
    MACVLAN = "macvlan"  # macvlan and ipvlan: a real address on a real wire, as containers with their own IP have
    WIFI = "wifi"
    LOOPBACK = "loopback"
    OTHER = "other"  # none of the above: dummy, ifb, sit, gre


@dataclass(frozen=True)
class Address:
    """One address with its prefix length: ("10.1.0.7", 24). `scope` is global, link or host."""

    ip: str
    prefix: int
    scope: str = "global"

    @cached_property  # every check of networks asks for it, and a node may have ten thousand addresses
    def network(self) -> str:
        """The subnet, as "10.1.0.0/24"."""
        from ipaddress import ip_interface  # noqa: PLC0415  its import is dear and many runs never need it

        return str(ip_interface(f"{self.ip}/{self.prefix}").network)


@dataclass(frozen=True)
class Interface:
    """One interface, in the kernel's order (by `index`), which is the order in which NCCL looks.

    `speed` is in Mb/s (None: the driver does not say), `pci` like "0000:3b:00.0", `numa` None where there is none.
    `up` is the administrative state, `running` whether it has a carrier (IFF_RUNNING).
    `uplink` marks what stands in where a network namespace has no wire of its own: the end of a veth pair that is a
    container's only way out. It is not `usable`, and a plan that must name something may name it.
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
    duplex: str = ""  # full, half; "" where the driver does not say
    mac: str = ""
    master: str = ""
    hca: str = ""  # the InfiniBand or RoCE device behind it: mlx5_0
    default_route: bool = False
    uplink: bool = False
    peer_index: int | None = None  # the index of what it hangs on or is paired with, in this namespace or another

    @property
    def usable(self) -> bool:
        """Tell whether data of a job could leave here: a real wire, up, with an address of more than link scope."""
        addressed = any(address.scope == "global" for address in self.addresses)
        return self.kind in CARRIES_DATA and self.up and self.running and addressed


# A management controller shows itself to its host as a network card on USB: the same addresses on every machine.
BMC_DRIVERS = frozenset({"cdc_ether", "cdc_eem", "cdc_ncm", "rndis_host"})
CARRIES_DATA = frozenset({Kind.PHYSICAL, Kind.CLOUD, Kind.INFINIBAND, Kind.BOND, Kind.VLAN, Kind.BRIDGE, Kind.MACVLAN})


@dataclass(frozen=True)
class NicFacts:
    """Every interface of the node's network namespace, lo and veth included."""

    interfaces: tuple[Interface, ...]

    @cached_property
    def candidates(self) -> tuple[Interface, ...]:
        """Return what a job may be told to use: every usable interface, and where there is none the uplinks."""
        usable = tuple(nic for nic in self.interfaces if nic.usable)
        return usable or tuple(nic for nic in self.interfaces if nic.uplink)

    @cached_property
    def met_at(self) -> tuple[tuple[Interface, Address], ...]:
        """Return the addresses at which others can meet the node, in the kernel's order; link-local ones are none."""
        from ipaddress import ip_address  # noqa: PLC0415  as above

        held = ((nic, address) for nic in self.candidates for address in nic.addresses if nic.driver not in BMC_DRIVERS)
        return tuple((nic, one) for nic, one in held if one.scope == "global" and not ip_address(one.ip).is_link_local)


@dataclass(frozen=True)
class Gid:
    """One entry of a port's GID table that is in use. `kind` is "IB/RoCE v1" or "RoCE v2"."""

    index: int
    address: str
    kind: str


@dataclass(frozen=True)
class HcaPort:
    """One port of one HCA. `state`: Down, Initializing, Armed, Active; `physical`: LinkUp, Polling, Disabled, Sleep,
    PortConfigurationTraining, LinkErrorRecovery, PhyTest; `rate` in Gb/s; `link_layer`: InfiniBand, Ethernet, OmniPath.
    `gids` are the first of an Ethernet port's.
    """

    hca: str
    port: int
    state: str
    physical: str
    rate: float | None
    link_layer: str
    lid: int | None = None
    sm_lid: int | None = None
    firmware: str = ""
    hca_type: str = ""
    node_guid: str = ""
    port_guid: str = ""
    pci: str = ""
    numa: int | None = None
    netdev: str = ""
    gids: tuple[Gid, ...] = ()

    @property
    def name(self) -> str:
        """As NCCL_IB_HCA and the probe name it: mlx5_0:1."""
        return f"{self.hca}:{self.port}"


@dataclass(frozen=True)
class InfinibandFacts:
    """Every HCA port that the node shows. `source` is "ibstat" or "sysfs": both tell the same."""

    ports: tuple[HcaPort, ...]
    source: str
