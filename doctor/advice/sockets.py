"""Threads and sockets of NCCL's TCP transport: one of each by itself, too few for a fast network without RDMA."""

from __future__ import annotations

from doctor.advice.networks import Network
from doctor.advice.sight import Sight
from doctor.model.facts import EnvironmentFacts, InfinibandFacts, LoadedNcclFacts
from doctor.model.plan import Setting
from doctor.nccl.choice import LINK_STATE_COUNTS, settings_in_force
from doctor.reasoning.subnets import speed

THREADS, SOCKETS = "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"
FAST = 25000  # Mb/s: what one thread with one socket does not fill
_KNOWN_TO_NCCL = frozenset({"ena", "gve"})  # there it takes more by itself (NCCL source, net_socket.cc)


def socket_threads(sight: Sight, network: Network) -> dict[str, Setting]:
    """Return both variables where all data goes over fast TCP, and nobody has set either."""
    cards = {seat.interface.driver for held in network.members.values() for seat in held}
    environments = sight.known(EnvironmentFacts).values()
    own = {name for environment in environments for name in settings_in_force(environment, LINK_STATE_COUNTS)}
    loaded = len(sight.known(LoadedNcclFacts)) == len(sight.reached)
    tcp = not sight.rdma and not sight.unread(InfinibandFacts)
    if not loaded or not tcp or cards & _KNOWN_TO_NCCL or own & {THREADS, SOCKETS} or speed(network.members) < FAST:
        return {}
    rate = speed(network.members) // 1000
    why = f"all data goes by TCP at {rate} Gb/s, for which one thread with one socket is too slow"
    return {THREADS: Setting("4", why), SOCKETS: Setting("4", why)}
