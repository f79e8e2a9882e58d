"""Where the seconds of a run went: by a clock that the test moves."""

from __future__ import annotations

from ncheck.facts.definition import ASKING_PEERS, COLLECTING, LISTENING, MEASURING
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.report import RunPart
from ncheck.timeline import JUDGED, START, Stopwatch


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def answer(node: str, login: float = 0.0, **seconds: float) -> Evidence:
    replies = {f"answer:{name}": Reply(Status.OK, seconds=took) for name, took in seconds.items()}
    return Evidence(node, Login(reached=True, seconds=login), replies=replies)


def test_each_part_has_its_seconds_and_the_node_that_answered_last_with_what_took_it_longest() -> None:
    clock = Clock()
    watch = Stopwatch(clock, before=0.25)

    def came(after: float, *evidence: Evidence) -> None:
        for _ in watch.seen(evidence):
            clock.now += after

    clock.now += 0.05
    watch.dial()
    clock.now += 0.2
    watch.lap(START)
    came(0.5, answer("n1", 0.25, nccl=0.3, gpus=0.1), answer("n2", 0.5, nccl=0.4, gpus=0.75))
    watch.lap(COLLECTING)
    came(0.125, answer("n1", listen=0.01))
    watch.lap(LISTENING)
    came(0.25, answer("n2", connect=0.2))
    watch.lap(ASKING_PEERS)
    clock.now += 0.5
    watch.lap(JUDGED)
    assert watch.timeline == (
        RunPart("start", 0.5),
        RunPart("log in", 0.3),
        RunPart("questions", 0.7, "n2", "gpus", 0.75),
        RunPart("between the nodes", 0.375, "n2", "connect", 0.2),
        RunPart("judged", 0.5),
    )
    assert watch.seconds == sum(part.seconds for part in watch.timeline) == 2.375


def test_a_node_that_made_the_others_wait_by_more_than_two_seconds_is_named() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    for node, at in (("n1", 0.5), ("n2", 0.75), ("n3", 2.5), ("n4", 3.0)):
        clock.now = 100 + at
        list(watch.seen([answer(node)]))
    watch.lap(MEASURING)
    assert watch.timeline == (RunPart("measured", 3.0, "n4", late={"n4": 2.25}),)
