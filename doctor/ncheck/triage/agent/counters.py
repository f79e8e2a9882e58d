"""What the kernel counts of network traffic, read twice two seconds apart: interfaces, HCA ports, TCP.

Interfaces and TCP are those of each network namespace that ranks are in; HCAs have no namespace.
"""

import time

from ncheck.agent.answers import WATCHED
from ncheck.agent.traffic import ports
from ncheck.triage.agent.net_namespaces import folders, interfaces, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

READS = (
    "/proc/PID/net/{dev,snmp} of the ranks' namespaces",
    "/sys/class/infiniband/*/ports/*/{state,phys_state,link_layer,counters/*,hw_counters/*}",
)

_ERRORS = (
    "counters/symbol_error", "counters/link_error_recovery", "counters/link_downed", "counters/port_rcv_errors",
    "counters/port_xmit_discards", "counters/local_link_integrity_errors", "counters/excessive_buffer_overrun_errors",
    "hw_counters/local_ack_timeout_err", "hw_counters/packet_seq_err", "hw_counters/out_of_sequence",
    "hw_counters/rnr_nak_retry_err", "hw_counters/req_transport_retries_exceeded",
)  # fmt: skip
# The columns of /proc/net/dev that are sent, by their place.
_COLUMNS = (
    ("received", 0), ("packets_received", 1), ("receive_errors", 2), ("receive_drops", 3), ("sent", 8),
    ("packets_sent", 9), ("send_errors", 10), ("send_drops", 11),
)  # fmt: skip
_MOST = 1024  # interfaces of a namespace


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return both looks. Asked as {"ranks": [processes]}."""
    spaces = folders(arguments["ranks"])
    first = _look(spaces)
    time.sleep(WATCHED)
    return {"looks": [first, _look(spaces)]}


def _look(spaces: "Mapping[str, str]") -> "Dict[str, Any]":
    looks = {name: {"interfaces": _interfaces(folder), "tcp": _tcp(folder)} for name, folder in spaces.items()}
    return {"namespaces": looks, "ports": ports(_ERRORS)}


def _interfaces(folder: str) -> "Dict[str, Dict[str, int]]":
    counted = [(name, figures) for name, figures in interfaces(folder).items() if len(figures) > _COLUMNS[-1][1]]
    return {name: {column: figures[at] for column, at in _COLUMNS} for name, figures in counted[:_MOST]}


def _tcp(folder: str) -> "Dict[str, Optional[int]]":
    """Return the segments that TCP sent, and sent again; null where the kernel does not say it.

    Tcp: RtoAlgorithm RtoMin ... OutSegs RetransSegs InErrs OutRsts InCsumErrors
    Tcp: 1 200 ... 1510 12 0 31 0
    """
    rows = [line.split() for line in lines_of(folder + "/net/snmp") if line.startswith("Tcp:")]
    places = {name: at for at, name in enumerate(rows[0])} if len(rows) == 2 else {}
    return {name: int(rows[1][places[key]]) if key in places else None for name, key in _TCP}


_TCP = (("sent", "OutSegs"), ("resent", "RetransSegs"))
