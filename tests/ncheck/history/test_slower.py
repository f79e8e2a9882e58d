"""A run against its own past: what fell, since when, and what changed at that time. bench/slower.py has more seeds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ncheck.history.entry import SETUP, Entry, Figure, Kept
from ncheck.history.slower import FEWEST, Fall, NotCompared, Slower, fall_of, slower
from ncheck.history.store import Span

NODES = ("gpu01", "gpu02")
WHAT = "all all-reduce on 2 nodes, 16 ranks, 1 GiB, nccl"
EVEN = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0, 99.0]  # nine runs


def run(time: int, value: float, nodes: tuple[str, ...] = NODES, what: str = WHAT, unit: str = "GB/s") -> Entry:
    return Entry(time, "check", nodes={"good": nodes}, figures=(Figure(nodes, "", what, value, unit),))


def setup(what: str, value: str, first: float, last: float, fact: str = "GpuFacts") -> Span:
    return Span(Kept("gpu[01-02]", SETUP, what, value, fact), first, last)


def test_a_fall_is_said_with_its_size_and_what_changed_at_that_time() -> None:
    runs = [run(at, value) for at, value in enumerate([*EVEN, 82.0, 80.0])]
    spans = (
        setup("", "GpuFacts", 0, 10), setup("", "MachineFacts", 0, 10, "MachineFacts"),
        setup("GPU driver", "580", 0, 8), setup("GPU driver", "590", 9, 10),
        setup("kernel", "5.15", 0, 5, "MachineFacts"), setup("kernel", "6.8", 6, 10, "MachineFacts"),
        setup("NCCL", "2.21.5", 9, 10, "LoadedNcclFacts"),  # was not read before
    )  # fmt: skip
    ((found,), missed) = slower(runs, spans)
    fall = Fall(9, 100.0, 2, 1 - 81 / 100, slowly=False)
    assert found == Slower(runs[-1].figures[0], fall, 9, (("GPU driver", "580", "590"),))
    assert missed is None
    assert found.how == "80 GB/s, 19 % under the median of the 9 runs before"
    assert found.meanwhile == "GPU driver went from 580 to 590"
    assert slower(runs, ())[0][0].meanwhile == "nothing that the history keeps changed"


def test_a_setting_that_came_went_or_came_back_is_a_change() -> None:
    runs = [run(at, value) for at, value in enumerate([*EVEN, 82.0])]
    read = setup("", "GpuFacts", 0, 9)
    for spans, change in (
        ((setup("variable NCCL_ALGO", "Tree", 9, 9),), ("variable NCCL_ALGO", "none", "Tree")),
        ((setup("variable NCCL_ALGO", "Ring", 0, 8),), ("variable NCCL_ALGO", "Ring", "none")),
        ((setup("GPU driver", "580", 0, 9), setup("GPU driver", "590", 2, 8)), ("GPU driver", "590", "580")),
        ((setup("GPU driver", "580", 0, 9), setup("GPU driver", "590", 9, 9)), ("GPU driver", "580", "590")),
    ):
        assert slower(runs, (read, *spans))[0][0].changed == (change,)


def test_what_is_over_with_the_newest_run_and_what_happened_once_is_not_said() -> None:
    assert fall_of([*EVEN, 80.0]) is not None
    assert fall_of([*EVEN, 80.0, 100.0]) is None
    assert fall_of([*EVEN, 80.0, 81.0, 80.0, 99.0]) is None
    assert fall_of([*EVEN, 120.0]) is None
    assert fall_of([0.0] * 12) is None


def test_other_nodes_and_other_sizes_are_not_compared_and_few_runs_are_too_few() -> None:
    runs = [run(at, value) for at, value in enumerate(EVEN)]
    other = run(20, 40.0, ("gpu01", "gpu03"))
    assert slower([*runs, other], ()) == ((), NotCompared(other.figures[0], 0, ("gpu[01-02]",)))
    larger = run(20, 40.0, what=WHAT.replace("1 GiB", "1 MiB"))
    assert slower([*runs, larger], ()) == ((), NotCompared(larger.figures[0], 0))
    swapped = run(20, 40.0, ("gpu01", "gpu03"), WHAT.replace("all-reduce", "all-to-all"))
    assert slower([*runs, swapped], ()) == ((), NotCompared(swapped.figures[0], 0)), "an all-reduce is no all-to-all"
    few = [*runs[: FEWEST - 1], run(20, 40.0)]
    assert slower(few, ()) == ((), NotCompared(few[-1].figures[0], FEWEST - 1))
    assert slower(runs[:1], ()) == ((), None)
    assert slower([*runs, replace(other, figures=())], ()) == ((), None)


def test_a_time_that_grew_is_slower() -> None:
    runs = [run(at, value, unit="us") for at, value in enumerate([*EVEN, 125.0])]
    assert slower(runs, ())[0][0].fall.share == 1 - 1 / 1.25
    assert slower([*runs[:-1], run(9, 80.0, unit="us")], ())[0] == ()


def test_what_fell_bit_by_bit_names_no_moment() -> None:
    random = Random(4)  # noqa: S311
    drift = [100 - at + random.gauss(0, 1) for at in range(25)]
    step = [(100 if at < 15 else 84) + random.gauss(0, 1) for at in range(25)]
    assert [bool(fall and fall.slowly) for fall in (fall_of(drift), fall_of(step))] == [True, False]


def test_a_step_of_ten_percent_is_found_and_noise_is_not() -> None:
    """2 % of noise after twenty runs: five runs after the step, and one figure of noise in a thousand."""
    random = Random(5)  # noqa: S311
    quiet = [[random.gauss(100, 2) for _ in range(21)] for _ in range(300)]
    steps = [[random.gauss(100, 2) for _ in range(20)] + [random.gauss(90, 2) for _ in range(5)] for _ in range(40)]
    assert sum(fall_of(one) is not None for one in quiet) <= 1
    assert sum(fall_of(one) is not None for one in steps) >= 38
