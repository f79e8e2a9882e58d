"""Addresses that lead to no other node: dialled by ranks, or named by daemons and by Ray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine
from ncheck.triage.nccl_network import Role, network_uses
from ncheck.triage.signature import Detected, Detector, LineClue

LOOPBACK = ("127.", "::1")
LINK_LOCAL = ("169.254.", "fe80:")

# With the default networks of Docker and libvirt.
LOCAL = (*LOOPBACK, *LINK_LOCAL, "172.17.", "192.168.122.")

_IPV4 = r"\d{1,3}(?:\.\d{1,3}){3}"

# mpirun -np 4 -H 10.1.0.1:2,10.1.0.2:2 python train.py | mpiexec -hosts 10.1.0.1,10.1.0.2 | --host=10.1.0.1
# torchrun --master_addr 10.1.0.1 | export MASTER_ADDR=10.1.0.1 | --rdzv_endpoint=10.1.0.1:29500 | tcp://10.1.0.1:29500
_GIVEN = expression(
    rf"(?:\s-H|--?hosts?)[ =](?P<hosts>{_IPV4}[\d.,: ]{{0,2000}})"
    rf"|(?i:master[-_]addr(?:ess)?|rdzv[-_]endpoint|dist-init-addr|init_method|coordinator_address)\W{{1,5}}"
    rf"(?:tcp://)?(?P<master>{_IPV4})"
)

# connect() to 192.168.118.0 failed | Connect to 10.1.0.3<40113> failed | dest_addr=10.1.0.3:37423) failed
# SO_ERROR: Connection refused, remote=[10.1.0.3]:14215 | connect [10.1.0.3]:19033: Connection refused
_DIALLED = expression(
    rf"connect\(\) to (?P<mpi>{_IPV4})(?::\d+)? failed|[Cc]onnect to (?P<nccl>{_IPV4})<\d+> (?:failed|returned)"
    rf"|dest_addr=(?P<ucx>{_IPV4}):\d+\) failed|SO_ERROR: .{{0,80}}remote=\[(?P<gloo>{_IPV4})\]"
    rf"|connect \[(?P<pair>{_IPV4})\]:\d+: "
)
_ADDRESSES = expression(_IPV4)

_OTHER_NETWORK = LineClue("wrong_nic", Grade.LIKELY, ("routing", "container_isolation", "firewall"), lasting=True,
                          explains=frozenset({"connect", "gloo", "waits", "gone", "stall", "system"}))  # fmt: skip


def dials_another_network(lines: Sequence[LogLine]) -> Detected:
    """Yield the lines in which a connection fails to an address of a network in which no address of the job is.

    The job's addresses are those of its launch line, of its master, and of NCCL's bootstrap.
    """
    given: dict[str, LogLine] = {}
    for line in lines:
        addresses = [use.address for use in network_uses([line.text]) if use.role is Role.BOOTSTRAP]
        for named in _GIVEN.finditer(line.text):
            addresses += _ADDRESSES.findall(named["hosts"] or named["master"])
        for address in addresses:
            if not address.startswith(LOCAL):
                given.setdefault(_network(address), line)
    dialled = [(next(filter(None, match.groups())), line) for line in lines if (match := _DIALLED.search(line.text))]
    foreign = [(address, line) for address, line in dialled
               if not address.startswith(LOCAL) and _network(address) not in given]  # fmt: skip
    if given and foreign:
        meaning = f"a rank dials {foreign[0][0]}, an address of another network than those that the job was given"
        shown = {line.order: line for _, line in (*foreign[:3], ("", next(iter(given.values()))))}
        yield replace(_OTHER_NETWORK, meaning=meaning), tuple(shown.values())


def _network(address: str) -> str:
    """Return the first half of an address: what two nodes of one network nearly always share."""
    return ".".join(address.split(".")[:2])


# 2844262400.0;tcp://172.17.0.2,192.168.122.1:56711
_DAEMON_AT = expression(rf"\b\d{{6,12}}\.\d{{1,6}};tcp://({_IPV4}(?:,{_IPV4}){{0,20}}):\d")

_DAEMON_IN_CONTAINER = LineClue(
    "container_isolation", Grade.LIKELY, ("wrong_nic", "firewall"), context=True,
    explains=frozenset({"launch", "gone", "connect"}),
    meaning="mpirun's daemon has only addresses that no other machine reaches: those of a container or a bridge",
)  # fmt: skip


def daemon_in_a_container(lines: Sequence[LogLine]) -> Detected:
    """Yield the lines in which mpirun's daemon names only addresses of bridges."""
    named = [(match[1].split(","), line) for line in lines if (match := _DAEMON_AT.search(line.text))]
    local = tuple(line for addresses, line in named if all(address.startswith(LOCAL) for address in addresses))
    if local:
        yield _DAEMON_IN_CONTAINER, local


# Error: No available node types can fulfill resource request {'CPU': 1.0, 'node:192.168.1.10': 0.001}
# Waiting for creating a placement group of specs for 10 seconds. specs=[{'node:192.168.1.10': 0.001, 'GPU': 1.0}
_RAY_WANTS = expression(r"(?:node types can fulfill|placement group).{0,300}'node:(?P<node>[\w.:-]{1,255}?)'")

# Connecting to existing Ray cluster at address: 10.1.0.1:6379...
# Local node IP: 10.1.0.1
_RAY_HAS = expression(rf"(?:Ray cluster at address|Local node IP): ({_IPV4})")

_RAY_ADDRESS = LineClue("wrong_nic", Grade.LIKELY, ("launcher_mismatch",), lasting=True, look="ray status",
                        meaning="Ray looks for a node by an address of another network"
                        " than that of its cluster")  # fmt: skip

_RAY_NAME = LineClue("rendezvous_misconfig", Grade.LIKELY, ("launcher_mismatch", "dns_failure"), lasting=True,
                     look="ray status", meaning="Ray looks for a node by a name, and knows its nodes by their"
                     " addresses: VLLM_HOST_IP must be an address")  # fmt: skip


def ray_addresses_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield that a task of Ray asks for a node by a name, or by an address of a network in which its cluster is not."""
    has = [(_network(match[1]), line) for line in lines if (match := _RAY_HAS.search(line.text))]
    for line in lines:
        match = _RAY_WANTS.search(line.text)
        if match is None or match["node"].startswith("__"):  # a resource of Ray's own, as __internal_head__
            continue
        if not _ADDRESSES.fullmatch(match["node"]):
            yield _RAY_NAME, (line, *(line for _, line in has[:1]))
            return
        if has and _network(match["node"]) not in {network for network, _ in has}:
            yield _RAY_ADDRESS, (line, has[0][1])
            return


DETECTORS: tuple[Detector, ...] = (dials_another_network, daemon_in_a_container, ray_addresses_differ)
WORDS = (
    "bootstrap", "mpirun", "mpiexec", "horovodrun", "torchrun", "--host", "master_addr", "master-addr", "endpoint",
    "init-addr", "init_method", "coordinator_address", "connect() to ", "connect to ", "dest_addr=", "so_error: ",
    "connect [", ";tcp://", "node types can fulfill", "placement group", "ray cluster at address", "local node ip",
)  # fmt: skip
