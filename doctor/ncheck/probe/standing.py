"""Whether a bandwidth is low, and traffic odd: decided here, once, for the checks, the console and the HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.model.report import Share, Standing, Traffic
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.probe.rails import loopback_share, rail_of
from ncheck.probe.results import Collective, by_op, limited_by_links
from ncheck.probe.search import PairResult, over_sockets, searched

# Shares of the expected bandwidth. Healthy systems reach 0.93 to 1.0 of it.
LOW, FAR_TOO_LOW = 0.85, 0.75
PEERS_LOW = 0.85  # of what is usual inside nodes of one GPU model, which differ by a few percent
LOOPBACK = "lo"
ALIKE = 0.85  # of the median of the planned devices: one that carried less is odd
LEAST_CARRIED = 1_000_000  # bytes: less is not measurement data
SOME = 0.01  # of the planned devices' traffic: less by another device is ssh and the like
_BAD = (Standing.FAILED, Standing.FAR_TOO_LOW, Standing.LOW)


def of_share(share: float | None, method: Method) -> Standing:
    """Return the standing of a bandwidth by its share of the expected one.

    Plain sockets are never far too low: a busy machine easily halves their bandwidth.
    """
    if share is None:
        return Standing.UNKNOWN
    if share >= LOW:
        return Standing.OK
    return Standing.FAR_TOO_LOW if share < FAR_TOO_LOW and method is not Method.TCP else Standing.LOW


def standings(
    ran: Sequence[Collective],
    expect: Callable[[Collective], float | None],
    infiniband: Mapping[str, InfinibandFacts],
    kinds: Mapping[str, str],
) -> dict[Step, Standing]:
    """Return the standing of every step. `kinds` are the nodes' GPU models; unlike kinds are not compared."""
    peers = beside_peers(ran, expect, kinds)
    met: dict[tuple[int, tuple[str, ...]], PairResult] = {
        (meeting.round, meeting.nodes): meeting
        for own in by_op(ran).values()
        for meeting in searched(own, expect).meetings
    }
    return {
        one.step: _standing(one, expect(one), infiniband, met.get((one.step.round, one.step.group)), peers)
        for one in ran
    }


def _standing(
    one: Collective,
    expected: float | None,
    infiniband: Mapping[str, InfinibandFacts],
    meeting: PairResult | None,
    peers: Mapping[Step, BesidePeers],
) -> Standing:
    if one.busbw is None:
        return Standing.FAILED
    if one.step.method is Method.LOOPBACK:
        share = loopback_share(one, infiniband)
        return Standing.UNKNOWN if share is None else Standing.OK if share >= 1 else Standing.LOW
    if one.step.stage is Stage.RAIL:
        rail = rail_of(one.step, one.results, infiniband)
        known = rail is not None and rail.gbits is not None and rail.rate is not None
        return Standing.UNKNOWN if rail is None or not known else Standing.LOW if rail.slow else Standing.OK
    by_links = of_share(one.busbw / expected if expected else None, one.step.method)
    if one.step in peers:
        return Standing.LOW if peers[one.step].low else Standing.OK
    return _worse(by_links, of_meeting(meeting, one.step)) if one.step.stage is Stage.PAIR else by_links


def with_shares(traffic: Sequence[Traffic], *, together: bool) -> tuple[Traffic, ...]:
    """Return the traffic, each with its share of the data.

    If the nodes did not all run `together`, each had its own steps, so that less traffic is not odd.
    """
    if max((one.sent for one in traffic), default=0) < LEAST_CARRIED:
        return tuple(traffic)
    planned = [one.sent for one in traffic if one.planned]
    usual = median(planned) if planned else 0.0
    least = usual * ALIKE if together else 0.0
    others = sum(not one.planned and one.device != LOOPBACK for one in traffic)

    def share(one: Traffic) -> Share:
        if one.planned:
            return Share.USUAL if one.sent >= least else Share.LESS
        if one.device == LOOPBACK:
            return Share.INSIDE if one.sent > SOME * usual else Share.LITTLE
        return Share.STRAY if one.sent > SOME * sum(planned) / others else Share.LITTLE

    return tuple(replace(one, share=share(one)) for one in traffic)


def of_meeting(meeting: PairResult | None, step: Step) -> Standing:
    """Return the standing of a pair beside the other pairs, as the search for slow nodes sees it."""
    if meeting is None or meeting.share is None:
        return Standing.UNKNOWN
    if not meeting.slow:
        return Standing.OK
    severe = meeting.share < FAR_TOO_LOW and not over_sockets(step)
    return Standing.FAR_TOO_LOW if severe else Standing.LOW


def _worse(one: Standing, other: Standing) -> Standing:
    order = (*_BAD, Standing.OK, Standing.UNKNOWN)
    return min(one, other, key=order.index)


@dataclass(frozen=True)
class BesidePeers:
    """What a node reached inside, and what its peers usually do: GB/s at the largest size that all of them measured."""

    busbw: float
    usual: float

    @property
    def share(self) -> float:
        return self.busbw / self.usual

    @property
    def low(self) -> bool:
        return self.share < PEERS_LOW


def beside_peers(
    ran: Iterable[Collective], expect: Callable[[Collective], float | None], kinds: Mapping[str, str]
) -> dict[Step, BesidePeers]:
    """Compare nodes of the same kind by what ran inside them without an expectation; a node without a peer is left out.

    Usual is the median of those that are not far below the best. `kinds` are the nodes' GPU models: unlike nodes are
    not compared.
    """
    groups: dict[tuple[int, Method, Op, str], list[Collective]] = {}
    for one in ran:
        measured = one.step.world > 1 and one.busbw is not None and limited_by_links(one)
        if one.step.stage is Stage.INSIDE and measured and expect(one) is None:
            kind = kinds.get(one.step.group[0], "")
            groups.setdefault((one.step.world, one.step.method, one.step.op, kind), []).append(one)
    found: dict[Step, BesidePeers] = {}
    for alike in (alike for alike in groups.values() if len(alike) > 1):
        common = set.intersection(*({row.size for row in one.rows} for one in alike))
        reached = {one.step: one.busbw_at(max(common)) or 0.0 for one in alike} if common else {}
        most = max(reached.values(), default=0.0)
        usual = median([busbw for busbw in reached.values() if busbw >= PEERS_LOW * most] or [0.0])
        found |= {step: BesidePeers(busbw, usual) for step, busbw in reached.items() if usual}
    return found
