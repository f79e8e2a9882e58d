"""Connections that failed: the address may show a wrong interface, otherwise the error shows the cause."""

from __future__ import annotations

import re
from dataclasses import replace

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.signature import LineClue, Signature, row

_LOOPBACK = expression(r"(?:::ffff:)?127\.|::1$|localhost$")

# the default networks of Docker and libvirt, and link-local addresses
_BRIDGE = expression(r"(?:::ffff:)?(?:172\.17\.|192\.168\.122\.|169\.254\.)|fe80:", re.IGNORECASE)

# a netmask, or no address
_NO_ADDRESS = expression(r"(?:::ffff:)?(?:255\.|0\.0\.0\.0)")

# 1234, which resolvers read as 0.0.4.210
_OF_DIGITS = expression(r"\d{1,10}$|(?:::ffff:)?0\.(?!0\.0\.0$)\d{1,3}\.\d{1,3}\.\d{1,3}$")
_DIGITS_ALONE = LineClue("numeric_hostname", Grade.LIKELY, ("rendezvous_misconfig",), "connect")

_LOOPBACK_ADDRESS = LineClue(
    "wrong_nic",
    Grade.LIKELY,
    ("hostname_loopback",),
    "connect",
    meaning="a rank gave the other ranks a loopback address",
)

_BRIDGE_ADDRESS = LineClue(
    "wrong_nic",
    Grade.LIKELY,
    ("container_isolation", "routing"),
    "connect",
    meaning="a rank gave the other ranks a bridge or link-local address, which they cannot reach",
)

_INVALID_ADDRESS = LineClue(
    "rendezvous_misconfig",
    Grade.CERTAIN,
    (),
    "connect",
    meaning="the rendezvous address is not a valid address of a node",
)

_BLOCKED = LineClue(
    "firewall",
    Grade.LIKELY,
    ("routing",),
    "connect",
    meaning="the other node is reachable and rejects the connection",
)

_NO_ROUTE = LineClue("routing", Grade.LIKELY, ("wrong_nic",), "connect")

_TIMED_OUT = LineClue(
    "firewall",
    Grade.LIKELY,
    ("routing", "wrong_nic"),
    "connect",
    meaning="connections to the other node time out: a firewall drops them, or the interface is the wrong one",
)

_REFUSED = LineClue(
    "rank_crashed",
    Grade.POSSIBLE,
    ("firewall", "wrong_nic"),
    "connect",
    meaning="nothing listens at the address that a rank gave: it died, or gave a wrong address",
)

_OTHER_ERROR = LineClue("firewall", Grade.POSSIBLE, ("wrong_nic", "routing"), "connect")

_ERRORS = (
    (expression(r"No route to"), _BLOCKED),
    (expression(r"unreachable"), _NO_ROUTE),
    (expression(r"timed out|[Tt]imeout"), _TIMED_OUT),
    (expression(r"refused"), _REFUSED),
)


def _by_address(match: re.Match[str]) -> LineClue:
    """Return the clue of a line with an address and, after it, an error."""
    address, error = match["address"].strip("[]"), match["error"]
    if _OF_DIGITS.match(address):
        return _DIGITS_ALONE
    if _NO_ADDRESS.match(address):
        return _INVALID_ADDRESS
    if _LOOPBACK.match(address):
        return _LOOPBACK_ADDRESS
    return _BRIDGE_ADDRESS if _BRIDGE.match(address) else _by_error(error)


def _by_error(error: str) -> LineClue:
    return next((clue for pattern, clue in _ERRORS if pattern.search(error)), _OTHER_ERROR)


def _by_error_only(match: re.Match[str]) -> LineClue:
    return _by_error(match["error"])


def _by_retry(match: re.Match[str]) -> LineClue:
    """Return the clue of a retry: the first ones show only that the other rank has not started yet."""
    grade = Grade.POSSIBLE if int(match["tries"] or 0) >= _OFTEN else Grade.ECHO
    return replace(_by_error(match["error"]), grade=grade, passing=True)


_OFTEN = 10  # tries, the last of them a second apart: by then every rank should have started


def _load_server(match: re.Match[str]) -> LineClue:
    """Return the clue of OneFlow's retry: the first ones show only that the other process has not started yet."""
    if "DNS" in match["error"]:
        return LineClue("dns_failure", Grade.LIKELY, ("rendezvous_misconfig",), "connect", passing=True)
    if _LOOPBACK.match(match["address"]):  # right on one machine, where a proxy variable is a reason not to reach it
        return replace(_LOOPBACK_ADDRESS, grade=Grade.POSSIBLE, others=("rendezvous_misconfig", "hostname_loopback"),
                       passing=True)  # fmt: skip
    clue = replace(_by_address(match), passing=True)
    return clue if int(match["tries"]) > 1 else replace(clue, grade=Grade.ECHO)


def _rendezvous(match: re.Match[str]) -> LineClue:
    """Return the clue of a store that cannot be reached at the address of MASTER_ADDR or the endpoint."""
    address = match["address"].strip("[]")
    if _OF_DIGITS.match(address):
        return replace(_DIGITS_ALONE, tag="store")
    return _INVALID_ADDRESS if _NO_ADDRESS.match(address) else _STORE


def _rendezvous_by_retry(match: re.Match[str]) -> LineClue:
    clue = _rendezvous(match)
    return clue if clue is _INVALID_ADDRESS else replace(clue, passing=True)


_STORE = LineClue(
    "rendezvous_misconfig",
    Grade.POSSIBLE,
    ("firewall", "hostname_loopback", "dns_failure"),
    "store",
    meaning="no answer from the rendezvous address",
)


def _advertised(match: re.Match[str]) -> LineClue | None:
    """Return the clue of an address that a process tells the others: no fault on one machine, or by itself."""
    address = match["address"]
    if not (_LOOPBACK.match(address) or _BRIDGE.match(address)):
        return None
    clue = _LOOPBACK_ADDRESS if _LOOPBACK.match(address) else _BRIDGE_ADDRESS
    return replace(clue, tag="", context=True, explains=frozenset({"connect", "waits", "gone", "store", "stall"}))


SIGNATURES = (
    # NCCL WARN socketStartConnect: Connect to 10.1.0.3<40113> failed : No route to host
    # NCCL WARN socketPollConnect: Connect to 10.1.0.3<40113> returned 113(No route to host) errno 115(...)
    Signature(expression(r"Connect to (?P<address>[\w.:%-]+)<\d+> (?:failed ?:|returned)(?P<error>.*)"), _by_address),
    # NCCL WARN ncclOsSocketPollConnect: connect to 10.1.0.3<40113> returned Connection refused, exceeded error retry
    # NCCL WARN socketPollConnect to 10.1.0.3<40113> failed with error No route to host
    Signature(expression(r"(?:connect|Connect) to (?P<address>[\w.:%-]+)<\d+> (?:returned|failed with error)"
                         r"(?P<error>.*)"), _by_address),
    # NCCL WARN socketPollConnect: connect returned No route to host, exceeded error retry count (34)
    Signature(expression(r"connect returned (?P<error>[\w ]{1,80}), exceeded error retry count"), _by_error_only),
    # NCCL WARN Call to connect timeout : Connection refused
    Signature(expression(r"Call to connect (?:timeout|failed) ?: (?P<error>.*)"), _by_error_only),
    # NCCL WARN socketStartConnect: exceeded timeouts (3)
    row(r"socket\w{4,12}Connect: exceeded (?:connect )?timeouts", "firewall", Grade.POSSIBLE, "wrong_nic", "routing",
        tag="connect", meaning="connections to another rank time out: a firewall drops them, or the interface is the"
        " wrong one"),
    # NCCL WARN socketStartConnect: exceeded retries (20000)
    row(r"socket\w{4,12}Connect: exceeded retries", "rank_crashed", Grade.POSSIBLE, "firewall", "wrong_nic",
        tag="connect", meaning=_REFUSED.meaning),
    # NCCL INFO misc/socket.cc:505 -> 2 (Operation now in progress)
    row(
        r"socket\.cc:\d+ -> 2 \(Operation now in progress\)",
        "firewall",
        Grade.POSSIBLE,
        "wrong_nic",
        "routing",
        tag="connect",
    ),
    # NCCL INFO socketPollConnect: connect returned No route to host, retrying (26/34) after sleep for 2600 msec
    Signature(expression(r"connect returned (?P<error>[\w ]{1,80}), retrying(?: \((?P<tries>\d{1,4})/)?"), _by_retry),
    # [node03][[311,1],5][btl_tcp_endpoint.c:796] connect() to 172.17.0.1 failed: Connection refused (111)
    #   Message:    connect() to 192.168.122.1:1040 failed
    Signature(expression(r"connect\(\) to (?P<address>[\d.]+|[0-9a-f:]+)(?::\d+)? failed(?P<error>.*)"), _by_address),
    # sock.c:268 UCX ERROR connect(fd=61, dest_addr=172.17.0.1:37423) failed: Connection refused
    Signature(expression(r"dest_addr=(?P<address>[\d.]+):\d+\) failed: (?P<error>.*)"), _by_address),
    # [c10d] The client socket has failed to connect to [node01]:29500 (errno: 110 - Connection timed out)
    Signature(expression(r"client socket has failed to connect to \[(?P<address>[^\]]*)\]"), _rendezvous_by_retry),
    # [E socket.cpp:793] [c10d] The client socket has timed out after 60s while trying to connect to (node01, 29500).
    Signature(expression(r"client socket has timed out after \w+ while trying to connect to \(?(?P<address>[^,) ]*)"),
              _rendezvous),
    # DistNetworkError: The client socket has failed to connect to any network address of (node01, 29500)
    Signature(expression(r"(?:failed to connect to any network address of|failed to connect/validate to host) "
                         r"\(?(?P<address>[^,) ]*)"), _rendezvous),
    # RuntimeError: connect() timed out. Original timeout was 1800000 ms.
    row(r"connect\(\) timed out\. Original timeout was|RendezvousConnectionError", "rendezvous_misconfig",
        Grade.POSSIBLE, "firewall", "hostname_loopback", tag="store"),
    # [proxy:0:0@n1] HYDU_sock_connect (sock.c:268): unable to connect from "n1" to "n2" (No route to host)
    row(r"HYDU_sock_connect .*(?:No route to host|Connection timed out)|check for firewalls!", "firewall", Grade.LIKELY,
        "routing"),
    # A process or daemon was unable to complete a TCP connection
    row(r"unable to complete a TCP connection", "firewall", Grade.LIKELY, "wrong_nic", "container_isolation"),
    # Ncat: No route to host.
    row(r"^(?:Ncat|nc|curl|telnet)\b.*No route to host", "firewall", Grade.LIKELY, "routing"),
    # From 10.1.0.3 icmp_seq=1 Destination Host Prohibited
    row(r"Destination Host Prohibited|Packet filtered|\[UFW BLOCK\]|icmp-host-prohibited|FINAL_REJECT:", "firewall",
        Grade.CERTAIN),
    # OSError: [Errno 113] No route to host
    row(r"Errno 113\] No route to host", "firewall", Grade.LIKELY, "routing", tag="connect"),
    # OSError: [Errno 101] Network is unreachable
    row(r"Network is unreachable", "routing", Grade.LIKELY, "wrong_nic", tag="connect"),
    # ping: local error: message too long, mtu=1500
    row(r"[Mm]essage too long|Frag needed and DF set|fragmentation needed", "mtu_mismatch", Grade.CERTAIN),
    # kernel: IPv4: martian source 10.1.0.3 from 10.1.0.4, on dev eth1
    row(r"martian source", "routing", Grade.LIKELY, "wrong_nic", passing=True),
    # ssh: connect to host 1207 port 22: Invalid argument
    row(r"ssh: connect to host (?:\d{1,10}|0(?:\.\d{1,3}){3}) port \d+: ", "numeric_hostname", Grade.LIKELY,
        "ssh_auth"),
    # ssh: connect to host node07 port 22: No route to host
    row(r"ssh: connect to host (?!\d{1,10} |0\.)\S+ port \d+: (?:No route to host|Connection timed out)", "firewall",
        Grade.LIKELY,
        "routing", "ssh_auth"),
    # requests.exceptions.ConnectionError: [Errno 110] Connection timed out
    row(r"Connection timed out|连接超时|[Oo]peration timed out", "firewall", Grade.POSSIBLE, "routing", "wrong_nic",
        tag="connect", passing=True, fallback=True),
    # ConnectionRefusedError: [Errno 111] Connection refused
    row(r"Connection refused|拒绝连接|连接[被遭]拒绝|ECONNREFUSED", "rank_crashed", Grade.POSSIBLE, "firewall",
        "wrong_nic",
        "rendezvous_misconfig", tag="connect", passing=True, fallback=True,
        meaning="nothing listens at an address that a rank connects to"),
    # connect: No route to host
    row(r"No route to host|没有到主机的路由|EHOSTUNREACH", "firewall", Grade.POSSIBLE, "routing", "wrong_nic",
        tag="connect", passing=True, fallback=True),
    # write: Connection reset by peer
    row(r"Connection reset by (?:peer|remote)|连接被对方重设|[Bb]roken pipe|断开的管道|ECONNRESET|EPIPE|"
        r"Connection (?:aborted|was lost)|unexpectedly closed the connection|Transport endpoint is not connected",
        "rank_crashed", Grade.ECHO, "firewall", tag="gone", passing=True, fallback=True),
    # van.cc:291: Bind to role=worker, ip=172.17.0.2, port=41231, is_recovery=0
    Signature(expression(r"(?:Bind to|assign rank=\d+ to node|is connected to others|Node)? ?role=\w{1,12},.{0,40}\bip="
                         r"(?P<address>[\d.]{7,15}|[0-9a-f:]{2,39}), port="), _advertised),
    # LoadServer 172.17.0.2 Failed at 3 times error_code 14 error_message failed to connect to all addresses
    Signature(expression(r"LoadServer {1,3}(?P<address>[\w.:-]{1,255}) Failed at (?P<tries>\d{1,6}) times"
                         r"(?P<error>.{0,300})"), _load_server),
    # Local node IP: 127.0.0.1
    Signature(expression(r"(?:Local node IP|node_ip_address|distributed_init_method|init_method|dist_url|"
        r"Using IP address of)"
                         r"['\"]?[:= ]{1,3}['\"]?(?:tcp://)?(?P<address>[\d.]{7,15})"), _advertised),
    # connect: 网络不可达
    row(r"网络不可达", "routing", Grade.LIKELY, "wrong_nic", tag="connect"),
    # gcs: DNS resolution failed for service: node01:50051
    row(r"DNS resolution failed|nodename nor servname provided|gethostbyname\(.{1,255}\) failed|"
        r"lookup \S{1,255} on \S{1,60}: no such host|"
        r"rendezvous endpoint .{1,255} cannot be resolved", "dns_failure", Grade.LIKELY, "rendezvous_misconfig",
        tag="name", look='getent hosts "$MASTER_ADDR"'),
    # curl: (6) Could not resolve host: node99
    row(r"[Cc]ould not resolve host\b", "dns_failure", Grade.POSSIBLE, "rendezvous_misconfig", tag="name", passing=True,
        look='getent hosts "$MASTER_ADDR"'),
    # ERROR: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use
    row(r"while attempting to bind on address.{0,80}in use|\b[Pp]ort \d{1,5} (?:is )?(?:already )?(?:in use|occupied)"
        r"(?!.{0,60}(?:[Tt]rying|instead|another))|[Ff]ailed to bind to port \d{1,5}|"
        r"\b[Pp]ort \d{1,5} is unavailable", "port_in_use", Grade.LIKELY,
        tag="port", passing=True),
    # OSError: [Errno 19] No such device
    row(r"\[Errno 19\] No such device", "no_interface", Grade.POSSIBLE, "container_isolation", "ib_wrong_hca",
        meaning="an interface or device that the program names does not exist", look="ip -br link"),
)  # fmt: skip
