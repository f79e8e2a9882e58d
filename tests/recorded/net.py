"""What a node answers about its networks beyond interfaces: settings, bonds. A default Ubuntu's values."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

from ncheck.facts.arrivals import ARRIVALS
from ncheck.facts.bonds import BONDING
from ncheck.facts.firewall import IPTABLES, NFT, SERVICES, UFW
from ncheck.facts.names import HOST_NAME, NAMES
from ncheck.facts.neighbours import ARP
from ncheck.facts.net_settings import CONF, NET, SETTINGS
from ncheck.facts.routes import ROUTES
from ncheck.model.evidence import JsonValue, Note, Reply, Status

from .host import address, mac

if TYPE_CHECKING:
    from .host import Host


_DENIED = "Operation not permitted (you must be root)"
# Ubuntu starts the service with the system, and leaves the filter off.
_UFW = "# /etc/ufw/ufw.conf\n#\n\nENABLED=no\n\nLOGLEVEL=low\n"


def net_replies(host: Host) -> dict[str, Reply | Note]:
    """Return the answers about networks, by source key."""
    return {
        SETTINGS.key: Reply(Status.OK, value=_settings(host), seconds=0.004),
        ARRIVALS.key: Note("one interface, and no strict rp_filter"),
        ROUTES.key: Note("wherever NCCL picks lies in a subnet of its own"),
        BONDING.key: Reply(Status.OK, value={}, seconds=0.001),
        SERVICES.key: Reply(Status.OK, exit_status=0, stdout="inactive\nactive\n", seconds=0.01),
        UFW.key: Reply(Status.OK, value=_UFW, seconds=0.001),
        **{
            source.key: Reply(Status.DENIED, reason=_DENIED, exit_status=1, stderr=_DENIED)
            for source in (NFT, IPTABLES)
        },
        HOST_NAME.key: Reply(Status.OK, value=_own_name(host), seconds=0.002),
        ARP.key: Reply(Status.OK, value=_neighbours(host), seconds=0.001),
        NAMES.key: Reply(Status.OK, value=_names(host), seconds=0.003),
    }


def _own_name(host: Host) -> JsonValue:
    own: JsonValue = {"addresses": [host.name_leads_to]} if host.name_leads_to else _address(host.name)
    return {"name": host.name, "leads_to": own}


def _names(host: Host) -> JsonValue:
    """Return what /etc/hosts says of the node, the first node, and those that it is asked to reach by ssh."""
    first = min((host.name, *host.peers))
    return {"names": {name: _address(name) for name in sorted({host.name, first, *host.ssh_peers})}}


def _number(name: str) -> int:
    return int(name.lstrip(ascii_lowercase))  # gpu01


def _neighbours(host: Host) -> str:
    """Return the ARP table: the router, one that does not answer, and the nodes that it reached."""
    wire = next(nic for nic in host.nics if nic.default_route)
    index = host.nics.index(wire) + 1
    rows = [("10.20.0.1", "0x2", "02:5e:10:00:ff:01"), ("10.20.0.99", "0x0", "00:00:00:00:00:00")]
    rows += [(address(_number(name)), "0x2", mac(_number(name), index)) for name in host.peers]
    lines = [f"{ip:16} 0x1         {flags}         {mac}     *        {wire.name}" for ip, flags, mac in rows]
    header = "IP address       HW type     Flags       HW address            Mask     Device"
    return "".join(f"{line}\n" for line in (header, *lines))


def _address(name: str) -> JsonValue:
    return {"addresses": [address(_number(name))]}


def _settings(host: Host) -> JsonValue:
    names = ("all", "default", *(nic.name for nic in host.nics))
    tree: dict[str, JsonValue] = {f"{NET}/ipv4/conf/{name}/{key}": "0\n" for name in names for key in CONF}
    tree |= {f"{NET}/ipv4/conf/{name}/rp_filter": "2\n" for name in names}
    tree |= {f"{NET}/ipv{family}/neigh/default/gc_thresh3": "1024\n" for family in (4, 6)}
    return {
        **dict(sorted(tree.items())),
        f"{NET}/ipv4/ip_local_port_range": "32768\t60999\n",
        f"{NET}/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        f"{NET}/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
        f"{NET}/ipv4/ip_local_reserved_ports": "\n",
        f"{NET}/netfilter/nf_conntrack_count": "214\n",
        f"{NET}/netfilter/nf_conntrack_max": "262144\n",
    }
