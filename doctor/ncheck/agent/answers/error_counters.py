"""What HCA ports and network cards have counted of errors so far. A run asks twice: growth is what matters."""

import os
import time

from ncheck.agent.files import matching, need_sysfs, number_in
from ncheck.agent.traffic import SYS, of_interface, ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

_OF_PORTS = (
    "counters/symbol_error", "counters/link_error_recovery", "counters/link_downed", "counters/port_rcv_errors",
    "counters/local_link_integrity_errors", "counters/excessive_buffer_overrun_errors", "counters/port_xmit_discards",
    "counters/port_xmit_constraint_errors", "hw_counters/out_of_sequence", "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err", "hw_counters/req_transport_retries_exceeded",
    "hw_counters/rx_icrc_encapsulated", "hw_counters/rnr_nak_retry_err", "hw_counters/roce_adp_retrans",
    "hw_counters/roce_slow_restart", "hw_counters/np_cnp_sent", "hw_counters/rp_cnp_handled",
    # Those of AWS's EFA (hw/efa/efa_verbs.c).
    "hw_counters/rx_drops", "hw_counters/retrans_pkts", "hw_counters/retrans_timeout_events",
    "hw_counters/unresponsive_remote_events", "hw_counters/impaired_remote_conn_events",
    "hw_counters/rdma_read_wr_err", "hw_counters/rdma_write_wr_err",
)  # fmt: skip
_OF_CARDS = ("statistics/rx_crc_errors", "statistics/rx_frame_errors", "carrier_down_count")
_MOST = 256  # of each sort: a card can have hundreds of virtual functions

READS = (
    "/sys/class/infiniband/*/ports/*/{counters,hw_counters}: errors, lost packets, congestion, bytes",
    "/sys/class/net/*/{statistics/{rx_crc_errors,rx_frame_errors,tx_bytes,rx_bytes},carrier_down_count} of each card",
)


def answer(sources: object, arguments: object, timeout: float, root: str = SYS) -> "Dict[str, Any]":
    """Return {"at": seconds, "ports": {name: PORT}}: Linux counts its monotonic clock from the start of the node.

    Counters that are 0 are left out, so that the answer of a healthy node is short.
    """
    need_sysfs(root)
    found = {name: _port(one["errors"], one["sent"], one["received"]) for name, one in ports(_OF_PORTS, root).items()}
    for folder in matching(root + "/net/*/device")[:_MOST]:
        name = folder.split("/")[-2]
        read = {os.path.basename(path): number_in(root + "/net/" + name + "/" + path) for path in _OF_CARDS}
        errors = {counter: count for counter, count in read.items() if count is not None}
        found[name] = _port(errors, *of_interface(root + "/net/" + name + "/statistics"))
    return {"at": round(time.monotonic(), 3), "ports": dict(sorted(found.items())[: 2 * _MOST])}


def _port(errors: "Dict[str, int]", sent: "Optional[int]", received: "Optional[int]") -> "Dict[str, object]":
    grown = {name: count for name, count in errors.items() if count}
    return {"read": len(errors), "errors": grown, "sent": sent, "received": received}
