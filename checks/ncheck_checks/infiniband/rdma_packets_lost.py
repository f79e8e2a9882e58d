"""RDMA packets are lost or come too late

## What it finds
Active HCA ports that counted lost packets between the beginning and the end of the run: any `local_ack_timeout_err`,
`req_transport_retries_exceeded` or `port_xmit_constraint_errors`; or `out_of_sequence`, `packet_seq_err`,
`port_xmit_discards` and `roce_adp_retrans` that together are at least ten, and one in 10,000 packets of 4 KiB. Of
AWS's EFA: any `unresponsive_remote_events`, `impaired_remote_conn_events`, `rdma_read_wr_err` or `rdma_write_wr_err`;
or `rx_drops` and `retrans_timeout_events` in the same share. Its `retrans_pkts` are normal and shown beside them.

Congestion notifications (`np_cnp_sent`, `rp_cnp_handled`) are shown beside them: where they grew, too, the network is
congested; where they did not, think of a cable or of RoCE without flow control. By themselves they are normal: this is
how ECN slows senders down. What was counted before the run is not reported.

## Why it matters
RDMA sends everything again that came after a lost packet. An acknowledgement that is missing stalls a connection for
4 microseconds x 2^NCCL_IB_TIMEOUT (4 seconds with the default of 20), and all ranks wait: the job runs at a part of its
speed, and prints "status=12 (IBV_WC_RETRY_EXC_ERR)" when the retries are used up. On RoCE the usual causes are priority
flow control or ECN that is missing on one node or switch port. The share is ncheck's own choice: with one loss in 40
MB, what is sent again is about a hundredth.

## What to type
`grep -H . /sys/class/infiniband/HCA/ports/PORT/*counters/*` shows the counters. On RoCE compare `mlnx_qos -i NAME` or
`dcb pfc show dev NAME` of the nodes with each other and with the switch. `ncheck probe nodes.txt` finds slow pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.error_counters import ErrorCountersFacts, LaterErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.error_growth import Growth, problems

_STALLS = (
    "local_ack_timeout_err", "req_transport_retries_exceeded", "port_xmit_constraint_errors",
    "unresponsive_remote_events", "impaired_remote_conn_events", "rdma_read_wr_err", "rdma_write_wr_err",
)  # fmt: skip
_LOST = (
    "out_of_sequence", "packet_seq_err", "port_xmit_discards", "roce_adp_retrans", "rx_drops", "retrans_timeout_events",
)  # fmt: skip
_FEW = 10  # of a run: a loss may happen to anybody
_PER_PACKETS, _PACKET = 10_000, 4096


@cluster_check(
    "NC427", Severity.WARNING, InfinibandFacts, ErrorCountersFacts, LaterErrorCountersFacts,
    also=(NicFacts, LibraryFacts), alone=True, explains=SLOW_NETWORK,
)  # fmt: skip
def rdma_packets_lost(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from problems(cluster, (*_STALLS, *_LOST), _lost, "lost RDMA packets during the run")


def _lost(growth: Growth) -> dict[str, int]:
    stalls, lost = ({name: growth.errors[name] for name in some if name in growth.errors} for some in (_STALLS, _LOST))
    packets = (growth.sent + growth.received) / _PACKET
    count = sum(lost.values())
    return {**stalls, **lost} if stalls or (count >= _FEW and count * _PER_PACKETS >= packets) else {}
