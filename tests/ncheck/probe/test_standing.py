"""Whether a bandwidth is low: the checks and every picture say the same."""

from __future__ import annotations

import io
from dataclasses import replace

from ncheck.model.cluster import Facts
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Probe, Report, Standing
from ncheck.probe.expected import Expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.measurements import measured_with
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step, Timing
from ncheck.report.measured import print_measured
from ncheck.report.page import Page

GIB = 2**30
RED = "\x1b[1;31m"
NAMES = ("n1", "n2", "n3", "n4")
ROUNDS = ((("n1", "n2"), ("n3", "n4")), (("n2", "n3"), ("n4", "n1")))


def probed(reached: dict[tuple[str, str], float], method: Method = Method.TCP) -> dict[str, ProbeFacts]:
    """Return two rounds of pairs of four nodes; `reached` is in GB/s."""
    results: dict[str, tuple[NodeResult, ...]] = {}
    for number, pairs in enumerate(ROUNDS, 1):
        for pair in pairs:
            seconds = GIB / (reached[pair] * 1e9)
            row = Row(GIB, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds)
            for node in pair:
                step = Step(number, Stage.PAIR, method, pair, (1, 1), (GIB,))
                results[node] = (*results.get(node, ()), NodeResult(step, (row,)))
    return {node: ProbeFacts(own) for node, own in results.items()}


def picture(probed: dict[str, ProbeFacts], should: float | None, report: Report) -> str:
    facts: dict[str, Facts] = {node: {ProbeFacts: own} for node, own in probed.items()}
    measurements, probe = measured_with(facts, lambda _: Expected(should))
    stream = io.StringIO()
    print_measured(Page(stream, {}, color=True), replace(report, measurements=measurements, probe=probe))
    return stream.getvalue()


def report() -> Report:
    return Report(0, (), (), (), LaunchPlan(), (), Probe(ran=False, reason=""), "1.0", 1.0, ("error",))


def test_tcp_pairs_at_sixty_percent_of_the_expectation_are_a_warning_and_not_red() -> None:
    reached = {pair: 0.60 for pairs in ROUNDS for pair in pairs}
    assert RED not in picture(probed(reached), 1.0, report())


def test_socket_pairs_at_seventy_percent_of_their_peers_are_not_odd() -> None:
    reached = {("n1", "n2"): 1.0, ("n3", "n4"): 1.0, ("n2", "n3"): 0.7, ("n4", "n1"): 1.0}
    shown = picture(probed(reached), None, report())
    assert "of that" not in shown
    assert RED not in shown


def judged(means: Method, should: float | None, *reached: float) -> tuple[Standing, ...]:
    """Return the standings of the four pairs, in the order of ROUNDS."""
    names = [pair for pairs in ROUNDS for pair in pairs]
    facts: dict[str, Facts] = {
        node: {ProbeFacts: own} for node, own in probed(dict(zip(names, reached, strict=True)), means).items()
    }
    _, probe = measured_with(facts, lambda _: Expected(should))
    return tuple(pair.standing for pair in probe.pairs)


def test_a_pair_is_compared_with_its_expectation() -> None:
    shares = (1.0, 0.9, 0.8, 0.6)
    ok, low, far = Standing.OK, Standing.LOW, Standing.FAR_TOO_LOW
    assert judged(Method.NCCL, 1.0, *shares) == (ok, ok, low, far)
    assert judged(Method.TCP, 1.0, *shares) == (ok, ok, low, low)


def test_one_fast_repeat_makes_no_bandwidth_better_and_a_slow_one_none_worse() -> None:
    for share, standing in ((0.6, Standing.FAR_TOO_LOW), (0.9, Standing.OK)):
        seconds = GIB / (share * 1e9)
        noisy = Row(GIB, in_place=False, seconds=seconds, fastest=seconds / 2, slowest=seconds * 2, timing=Timing(2, 5))
        step = Step(1, Stage.PAIR, Method.NCCL, ("n1", "n2"), (1, 1), (GIB,))
        facts: dict[str, Facts] = {node: {ProbeFacts: ProbeFacts((NodeResult(step, (noisy,)),))} for node in step.group}
        ((one,), _) = measured_with(facts, lambda _: Expected(1.0))
        assert one.protocol
        assert (one.standing, one.protocol.noisy) == (standing, True)


def test_without_an_expectation_a_pair_is_compared_with_its_peers_as_the_search_does() -> None:
    ok, low, far = Standing.OK, Standing.LOW, Standing.FAR_TOO_LOW
    assert judged(Method.NCCL, None, 1.0, 1.0, 0.82, 1.0) == (ok, ok, ok, ok)
    assert judged(Method.NCCL, None, 1.0, 1.0, 0.78, 1.0) == (ok, ok, low, ok)
    assert judged(Method.NCCL, None, 1.0, 1.0, 0.4, 1.0) == (ok, ok, far, ok)
    assert judged(Method.TCP, None, 1.0, 1.0, 0.4, 1.0) == (ok, ok, low, ok)
