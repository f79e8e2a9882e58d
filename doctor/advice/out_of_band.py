"""Where Open MPI's mpirun and its daemons call each other: a network that the machine has on which it is typed.

Told of one that this machine is not on, 4.1 (4.1.4 was tried) warns of an invalid value and takes any; 5.0 ends with
"No network interfaces were found for out-of-band communications" where none of the names that it is told is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from doctor.advice.networks import Network, reached, shared_by_all
from doctor.advice.sight import Sight
from doctor.model.head import Head


@dataclass(frozen=True)
class OutOfBand:
    """`subnet` is "" where routers join the nodes. `names` lead there, one or more on every machine that takes part.

    Without either, nothing can be named; `why` says so, or why it is not the job's own network.
    """

    subnet: str = ""
    names: tuple[str, ...] = ()
    why: str = ""

    @property
    def where(self) -> str:
        """Return the subnet, which holds where names differ, else the names; Open MPI takes IPv4 subnets only."""
        return self.subnet if self.subnet and ":" not in self.subnet else ",".join(self.names)


def out_of_band(sight: Sight, network: Network, head: Head | None) -> OutOfBand:
    """Return where mpirun, typed on the head, and its daemons meet: in the job's network, or in the next that is whole.

    Where nothing is known of the head, it is taken to be like the nodes.
    """
    if head is None:
        return OutOfBand(network.subnet, _names(network))
    if held := _held(head, network):
        return OutOfBand(network.subnet, _names(network, held))
    here = f"this machine has no address in {network.told}"
    for other in _others(sight, network):
        if held := _held(head, other):
            why = f"{here}: mpirun and its daemons reach each other on {other.subnet}"
            return OutOfBand(other.subnet, _names(other, held), why)
    return OutOfBand(why=f"{here}: how mpirun and its daemons reach each other is left to them")


def _others(sight: Sight, network: Network) -> Iterator[Network]:
    found = [one for one in shared_by_all(sight) if one.subnet != network.subnet]
    yield from sorted(found, key=lambda one: reached(sight, one).whole is False)


def _held(head: Head, network: Network) -> tuple[str, ...]:
    """Return the head's interfaces there; where routers join the nodes, only a head that is one of them has any."""
    if not network.subnet:
        own = {seat.ip for held in network.members.values() for seat in held}
        return tuple(name for ip, name in head.interfaces.items() if ip in own)
    subnet = ip_network(network.subnet)
    return tuple(name for ip, name in head.interfaces.items() if ip_address(ip.partition("%")[0]) in subnet)


def _names(network: Network, held: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return one name that all have, else all names."""
    common = next((name for name in network.names if not held or name in held), None)
    return (common,) if common else tuple(sorted({*network.first_names, *held}))
