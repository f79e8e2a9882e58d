"""What perftest or ibverbs-utils measured between pairs of HCA ports: which fail, which are slow, and which end it is.

ib_write_bw writes from host memory here. Its limits are those of published acceptance tests without GPUDirect.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from ncheck.expression import expression
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.tools import ToolFacts
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.network.logins import Login, by_ssh
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Row, Step, StepFailure
from ncheck.probe.results import Collective, results_by_step
from ncheck.text import printable

GATE = 0.9  # of the port's rate: 180 of 200, 360 of 400 Gb/s
GATE_FROM_HOST = {200.0: 0.875}  # HDR from host memory: 175 of 200
REACH = "ibv_rc_pingpong"
MET_BY_TCP = "connect"  # the step of a failure before the two programs had a TCP connection
Port = tuple[str, str]  # node and "mlx5_0:1"


@dataclass(frozen=True)
class Rail:
    """One pair of ports. `gbits` is None if it failed, or if the program shows only that it works.

    `rate` is the lower rate of the two ports in Gb/s, None if one is unknown. `met`: the two programs connected by TCP.
    """

    ports: tuple[Port, Port]
    gbits: float | None
    rate: float | None
    failure: StepFailure | None
    met: bool = True

    @property
    def slow(self) -> bool:
        """Whether it stays below the limit for its rate."""
        return self.gbits is not None and self.rate is not None and self.gbits < gate(self.rate)

    @property
    def bad(self) -> bool:
        """Whether one of its ends is at fault. Without a TCP connection nothing is known about RDMA."""
        return self.slow or (self.failure is not None and self.met)

    @property
    def nodes(self) -> tuple[str, str]:
        return self.ports[0][0], self.ports[1][0]

    @property
    def ends(self) -> str:
        """Its two ends as text."""
        return " and ".join(f"{node} {port}" for node, port in self.ports)


def gate(rate: float) -> float:
    """Return the Gb/s that a healthy port of this rate reaches from host memory."""
    return rate * GATE_FROM_HOST.get(rate, GATE)


def rails(probed: Mapping[str, ProbeFacts], infiniband: Mapping[str, InfinibandFacts]) -> tuple[Rail, ...]:
    """Return every tested pair of ports, in the order of the rounds."""
    tried = {step: results for step, results in results_by_step(probed).items() if step.method is Method.RDMA}
    found = (rail_of(step, results, infiniband) for step, results in tried.items())
    return tuple(rail for rail in found if rail is not None)


def rail_of(step: Step, results: Mapping[str, NodeResult], infiniband: Mapping[str, InfinibandFacts]) -> Rail | None:
    """Return what the two nodes of a step measured; None if one of them reported nothing."""
    if not len(step.group) == len(results) > 1 or not all(result.planned for result in results.values()):
        return None
    server, client = (results[node] for node in step.group)
    ends = (step.group[0], server.planned[0]), (step.group[1], client.planned[0])
    failures = [result.failure for result in (client, server) if result.failure]
    failure = next((one for one in failures if one.step != MET_BY_TCP), failures[0] if failures else None)
    row = next(iter((*client.rows, *server.rows)), None)
    if failure is None and row is None:
        failure = StepFailure("", "neither end reported anything")
    rates = [rate for end in ends if (rate := _rate(infiniband, end)) is not None]
    rate = min(rates) if len(rates) == len(ends) else None
    proves = client.version == REACH or failure is not None or row is None
    met = failure is None or (failure.step != MET_BY_TCP and bool(failure.step))
    return Rail(ends, None if proves or row is None else gbits(row), rate, failure, met)


def loopback_share(one: Collective, infiniband: Mapping[str, InfinibandFacts]) -> float | None:
    """Return what a port writes to itself over what a healthy one does; None where one of both is unknown."""
    (node,) = one.step.group
    result = one.results.get(node)
    rate = _rate(infiniband, (node, result.planned[0])) if result and result.planned else None
    return gbits(one.largest) / gate(rate) if one.whole and one.largest and rate else None


def gbits(row: Row) -> float:
    """Return the Gb/s of one size."""
    return row.size * 8 / row.seconds / 1e9


def _rate(infiniband: Mapping[str, InfinibandFacts], end: Port) -> float | None:
    node, name = end
    ports = infiniband[node].ports if node in infiniband else ()
    return next((port.rate for port in ports if port.name == name), None)


def second_partners(bad: Sequence[tuple[str, str]], good: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return disjoint pairs that test each node of a bad pair again: with a node of a good pair, or of another bad one.

    A node that is also in a good pair needs no second partner.
    """
    well = list(dict.fromkeys(node for pair in good for node in pair))
    suspects = [node for node in dict.fromkeys(node for pair in bad for node in pair) if node not in well]
    met = {frozenset(pair) for pair in bad}
    found: list[tuple[str, str]] = []
    while suspects:
        node = suspects.pop(0)
        others = (other for other in (*well, *suspects) if frozenset((node, other)) not in met)
        if (partner := next(others, None)) is not None:
            (well if partner in well else suspects).remove(partner)
            found.append((node, partner))
    return tuple(found)


@dataclass(frozen=True)
class Suspects:
    """Ports that were in bad pairs only, with these pairs."""

    ports: tuple[Port, ...]
    shown: tuple[Rail, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for node, _ in self.ports))


def failing(tried: tuple[Rail, ...]) -> Iterator[Suspects]:
    """Yield the ports that fail: one port, or both ends of a pair. Pairs without a TCP connection do not count."""
    bad = tuple(rail for rail in tried if rail.failure and rail.met)
    yield from _suspects(bad, {end for rail in tried if rail.failure is None for end in rail.ports})


def slow(tried: tuple[Rail, ...]) -> Iterator[Suspects]:
    """Yield the ports that are slow with every partner."""
    bad = tuple(rail for rail in tried if rail.slow)
    yield from _suspects(bad, {end for rail in tried if rail.gbits is not None and not rail.slow for end in rail.ports})


def unmet(tried: tuple[Rail, ...]) -> Iterator[tuple[str, str]]:
    """Yield (node, reason) for pairs without a TCP connection, unless another pair showed that the port works."""
    proved = {end for rail in tried if rail.failure is None for end in rail.ports}
    for rail in tried:
        if rail.failure and not rail.met:
            for node, port in rail.ports:
                if (node, port) not in proved:
                    yield node, f"{port}: no TCP connection between the two nodes: {printable(rail.failure.words)}"


def _suspects(bad: tuple[Rail, ...], good: set[Port]) -> Iterator[Suspects]:
    """Group bad pairs by their ends that are not in a good pair.

    If both ends are in good pairs, both are named: the fault is between them.
    """
    found: dict[tuple[Port, ...], list[Rail]] = {}
    for rail in bad:
        left = tuple(end for end in rail.ports if end not in good) or rail.ports
        found.setdefault(left, []).append(rail)
    often = {end for ends, shown in found.items() if len(ends) == 1 or len(shown) > 1 for end in ends}
    for ends, shown in found.items():
        if len(ends) == 1 or not often & set(ends):
            yield Suspects(ends, tuple(shown))


_TOOLS = {"ib_write_bw", "ibv_rc_pingpong"}
_DEVICE = expression(r"([A-Za-z0-9_.-]{1,64}):(\d{1,3})$")  # mlx5_0:1


def failure_message(found: Suspects) -> str:
    """Return which ports fail, and with which partners."""
    first = found.shown[0]
    words = printable(first.failure.words) if first.failure else ""
    if len(found.ports) == 1:
        return f"RDMA fails at {_name(found.ports[0])} with {_partners(found)}: {words}"
    return f"RDMA fails between {first.ends}: {words}"


def slow_message(found: Suspects) -> str:
    """Return how fast the ports are, and how fast they should be."""
    worst = min(found.shown, key=lambda rail: rail.gbits or 0.0)
    measured = f"{worst.gbits or 0.0:.0f} of {worst.rate or 0.0:.0f} Gb/s (minimum {gate(worst.rate or 0.0):.0f})"
    if len(found.ports) == 1:
        return f"RDMA is slow at {_name(found.ports[0])} with {_partners(found)}: {measured}"
    return f"RDMA is slow between {worst.ends}: {measured}"


def line_to_repeat(rail: Rail, logins: Mapping[str, LoginFacts]) -> str:
    """Return the command that repeats the test of a pair: the server in the background, then the client."""
    (server, one), (client, other) = rail.ports
    devices = [_DEVICE.match(name) for name in (one, other)]
    if not all(devices):
        return "ibv_devinfo -v"
    ends = [f"ib_write_bw -d {device[1]} -i {int(device[2])} -F --report_gbits" for device in devices if device]
    to_server, to_client = (
        by_ssh(shlex.quote(node), logins[node].login if node in logins else Login(reached=False))
        for node in (server, client)
    )
    return f"{to_server} timeout 20 {ends[0]} & sleep 2; {to_client} timeout 20 {ends[1]} {shlex.quote(server)}"


def not_tested(
    tried: tuple[Rail, ...], probed: Mapping[str, ProbeFacts], tools: Mapping[str, ToolFacts]
) -> dict[str, tuple[str, ...]]:
    """Return why no rail of a node was tested, with the nodes."""
    there = {node for rail in tried for node, _ in rail.ports}
    found: dict[str, tuple[str, ...]] = {}
    for node in probed:
        if node not in there:
            held = tools.get(node)
            has = held is not None and held.tools.keys() & _TOOLS
            why = "its HCA ports were not tested" if has else _NO_TOOL
            found[why] = (*found.get(why, ()), node)
    return found


_NO_TOOL = "neither ib_write_bw (package perftest) nor ibv_rc_pingpong is on the PATH: RDMA was not tested"


def unjudged(
    tried: tuple[Rail, ...], probed: Mapping[str, ProbeFacts], tools: Mapping[str, ToolFacts]
) -> dict[str, tuple[str, ...]]:
    """Return why the bandwidth of a node's rails is unknown, with the nodes."""
    measured = {node for rail in tried if rail.gbits is not None and rail.rate is not None for node, _ in rail.ports}
    why = dict(not_tested(tried, probed, tools))
    known = {node for nodes in why.values() for node in nodes}
    rest = tuple(node for node in probed if node not in measured | known)
    return {**why, **({"the bandwidth of its rails was not measured": rest} if rest else {})}


def _name(port: Port) -> str:
    return f"{port[0]} {port[1]}"


def _partners(found: Suspects) -> str:
    return fold(node for rail in found.shown for node, port in rail.ports if (node, port) not in found.ports)
