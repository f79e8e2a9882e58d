"""A cluster of which it is known who is slow: what its pairs would measure, round by round, as the head gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step, StepFailure
from ncheck.probe.results import Collective, collectives
from ncheck.probe.schedule import pair_rounds
from ncheck.probe.search import Expect, SlowSearch, no_expectation, searched

SIZE = 2**30
Pair = tuple[str, str]


@dataclass
class Cluster:
    """`slow` maps a node to the share of the usual speed that it has, `links` a pair to that of the way between."""

    names: tuple[str, ...]
    slow: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[Pair, float] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    cut: frozenset[Pair] = frozenset()
    noise: float = 0.05  # standard deviation
    usual: float = 24.0  # GB/s
    method: Method = Method.NCCL
    net: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  no secret: the same noise for the same seed
        self.probed: dict[str, tuple[NodeResult, ...]] = {}
        self.rounds: list[tuple[Pair, ...]] = []

    @property
    def done(self) -> tuple[Collective, ...]:
        """Return what was measured so far."""
        return collectives({name: ProbeFacts(results) for name, results in self.probed.items()})

    def search(self, expect: Expect = no_expectation) -> SlowSearch:
        """Run rounds until there is nothing more to find, and say what was found."""
        while pairs := pair_rounds(self.names, self.done, expect):
            self.measure(pairs)
        return searched(self.done, expect)

    def measure(self, pairs: tuple[Pair, ...]) -> None:
        """Run a round."""
        self.rounds.append(pairs)
        for pair in pairs:
            self._meet(pair, len(self.rounds))

    def _meet(self, pair: Pair, round_: int) -> None:
        step = Step(round_, Stage.PAIR, self.method, pair, (1, 1), (SIZE,), net=self.net)
        result = self._result(step, pair)
        for node in pair:
            self.probed[node] = (*self.probed.get(node, ()), result)

    def _result(self, step: Step, pair: Pair) -> NodeResult:
        if self.dead.intersection(pair) or self.cut.intersection((pair, pair[::-1])):
            return NodeResult(step, (), failure=StepFailure("init", "connection refused"))
        driver = self.links.get(pair, self.links.get(pair[::-1], 1.0))
        share = min(driver, *(self.slow.get(node, 1.0) for node in pair)) * max(self.random.gauss(1.0, self.noise), 0.1)
        seconds = SIZE / (share * self.usual * 1e9)
        return NodeResult(step, (Row(SIZE, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds),))


def nodes(count: int) -> tuple[str, ...]:
    """Return so many names: n00, n01 ..."""
    return tuple(f"n{number:02}" for number in range(count))
