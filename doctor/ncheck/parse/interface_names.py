"""The kinds of network interfaces, and what a name alone shows of the kind."""

from __future__ import annotations

import re
from enum import Enum


class Kind(str, Enum):
    """What an interface is. Its name decides only if nothing else does."""

    PHYSICAL = "physical"  # a device on a bus behind it
    CLOUD = "cloud"  # a hypervisor's NIC: virtio, ena, gve, hv_netvsc, vmxnet3, xen
    INFINIBAND = "infiniband"  # IPoIB, sysfs type 32
    BOND = "bond"
    BOND_SLAVE = "bond-slave"
    VLAN = "vlan"
    BRIDGE = "bridge"
    VETH = "veth"
    TUN = "tun"  # tun, tap, wireguard, tailscale: user-space tunnels and VPNs
    OVERLAY = "overlay"  # flannel, cali, cilium, vxlan, geneve: container networks
    CONTAINER_BRIDGE = "container-bridge"  # docker0, br-<hash>, cni0, virbr0
    MACVLAN = "macvlan"  # macvlan and ipvlan: a container with its own address on the physical network
    WIFI = "wifi"
    LOOPBACK = "loopback"
    OTHER = "other"  # none of the above: dummy, ifb, sit, gre


# Sources: systemd.net-naming-scheme (en, wl, ww, ib and what follows), and the names that each program uses.
_BY_NAME: tuple[tuple[str, Kind], ...] = (
    (r"lo$", Kind.LOOPBACK),
    (r"docker(?:0|_gwbridge)|br-[0-9a-f]{12}$|cni|cbr\d|podman|nerdctl|kube-bridge|weave$", Kind.CONTAINER_BRIDGE),
    (r"lxdbr|lxcbr|incusbr|virbr|mpqemubr|antrea-gw", Kind.CONTAINER_BRIDGE),
    (r"flannel|vxlan|geneve?|cilium|calico|tunl\d|weave|ovn-|antrea-tun|datapath$", Kind.OVERLAY),
    (r"veth|qv[bo][0-9a-f]{4}|cali[0-9a-f]|lxc|eni[0-9a-f]{6}|vnet\d|gke[0-9a-f]|azv|vpeer", Kind.VETH),
    (r"tun|tap|wg|tailscale|zt[0-9a-z]{8}|utun|ppp|nebula|sit\d|gre\d|gif\d|stf\d|ip6|erspan|ipip", Kind.TUN),
    (r"ib\w*\.[0-9a-f]{4}$", Kind.INFINIBAND),  # ib0.8001: a partition of the fabric, by its P_Key
    (r"bond[\w-]*[.:]\d|[\w-]+\.\d{1,4}$|vlan", Kind.VLAN),
    (r"bond|team|lacp|ae\d|ib-?bond", Kind.BOND),
    (r"ib(?:\d|p|s|o|x|P|$)|mlx\w*_ib", Kind.INFINIBAND),
    (r"wl|wifi|ath\d|ra\d", Kind.WIFI),
    (r"usb|vmnet|vboxnet|dummy|ifb\d|kube-|nodelocaldns|ovs-|nlmon|antrea-|idrac|bmc|gretap|teql", Kind.OTHER),
    (r"q[rg]-[0-9a-f]{4}|ip_vti|bnep|vif|ww|fw(?:br|ln|pr)\d|can\d|tmfifo|awdl|llw\d|anpi|ap\d", Kind.OTHER),
    (r"macv|ipvl", Kind.MACVLAN),
    (r"br\d|br-|qbr[0-9a-f]{4}|vmbr|ovsbr|bridge", Kind.BRIDGE),
)  # fmt: skip

_PATTERNS = tuple((re.compile(pattern), kind) for pattern, kind in _BY_NAME)


def kind_by_name(name: str) -> Kind | None:
    """Return the kind that the name shows; None for eth0, enp1s0f0, hsn0 and the like, which may be any NIC."""
    return next((kind for pattern, kind in _PATTERNS if pattern.match(name)), None)
