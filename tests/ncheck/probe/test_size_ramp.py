"""How fast the largest size should be is read off how time grows with size, and published ramps hold it to that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.probe.expected import Expected, expected
from ncheck.probe.node_result import Row, Stage
from ncheck.probe.results import Collective

from tests.ncheck.probe.machines import B200, GIB, H100, board, places, rails, ran, with_rails

HGX = board(H100, 8)


def curve(run: Collective, *points: tuple[int, float]) -> Collective:
    """Return the run with these sizes in MiB and milliseconds."""
    rows = tuple(
        Row(size << 20, in_place=False, seconds=ms / 1e3, fastest=ms / 1e3, slowest=ms / 1e3) for size, ms in points
    )
    return replace(run, rows=rows)


def test_at_small_sizes_the_start_up_is_taken_into_account() -> None:
    """At 25 GB/s, 256 MiB and 64 MiB with 2 ms of start-up each: the line is met, though busbw is 21 GB/s."""
    held = dict.fromkeys(["n1", "n2"], with_rails(HGX, *rails(1, 200)))
    run = curve(ran(Stage.PAIR, ["n1", "n2"], 1, planned=places(1)), (64, 4.684), (256, 12.737))
    found = expected(run, held)
    assert found.busbw == pytest.approx(run.busbw, rel=0.01)
    assert found.limited_by == "one NIC: 1 x 200 Gb/s; at 256 MiB, with 2 ms of start-up"


def test_a_slow_link_is_slow_at_small_sizes_too() -> None:
    held = dict.fromkeys(["n1", "n2"], with_rails(HGX, *rails(1, 200)))
    run = curve(ran(Stage.PAIR, ["n1", "n2"], 1, planned=places(1)), (64, 7.37), (256, 23.47))
    found = expected(run, held)
    assert run.busbw is not None
    assert found.busbw is not None
    assert run.busbw / found.busbw < 0.6


def in_place(run: Collective) -> tuple[Row, ...]:
    return tuple(replace(row, in_place=True) for row in run.rows)


def test_sums_that_are_all_in_place_tell_their_start_up_as_well() -> None:
    held = dict.fromkeys(["n1", "n2"], with_rails(HGX, *rails(1, 200)))
    run = curve(ran(Stage.PAIR, ["n1", "n2"], 1, planned=places(1)), (64, 4.684), (256, 12.737))
    alone = replace(run, rows=in_place(run))
    slower = tuple(replace(row, seconds=9.0) for row in in_place(run))
    assert expected(alone, held) == expected(run, held)
    assert expected(replace(run, rows=(*slower, *run.rows)), held) == expected(run, held)


@pytest.mark.parametrize("points", [
    ((256, 0.9),), ((64, 0.828), (256, 2.271)), ((1, 30.0), (256, 31.0)), ((64, 20.0), (256, 20.0)),
])  # fmt: skip
def test_sizes_that_are_too_small_to_judge_by_expect_nothing(points: tuple[tuple[int, float], ...]) -> None:
    held = dict.fromkeys(["n1", "n2", "n3", "n4"], with_rails(board(B200, 8), *rails(8)))
    found = expected(curve(ran(Stage.ALL, list(held), 8, planned=places(8)), *points), held)
    assert found == Expected(
        None, unknown=("the bandwidth of messages of 256 MiB: too small to judge these links (--sizes 1G)",)
    )


def test_published_curves_are_not_judged_unfairly_at_any_size() -> None:
    """Four nodes of 8 B200: healthy at every size of the published ramp."""
    held = dict.fromkeys(["n1", "n2", "n3", "n4"], with_rails(board(B200, 8), *rails(8)))
    ramp = {16: 64.0, 64: 157.0, 256: 229.0, 512: 327.0, 1024: 362.0, 16384: 382.0}
    for size in ramp:
        points = [(mib, mib * 1.048576 * 2 * 31 / 32 / ramp[mib]) for mib in ramp if mib <= size]
        run = curve(ran(Stage.ALL, list(held), 8, planned=places(8)), *points)
        found = expected(run, held)
        assert found.busbw is None or (run.busbw or 0.0) / found.busbw > 0.85


def test_a_size_of_a_gibibyte_or_more_needs_no_other() -> None:
    run = ran(Stage.INSIDE, ["n1"], 8, size=8 * GIB)
    assert expected(run, {"n1": HGX}).busbw == expected(ran(Stage.INSIDE, ["n1"], 8), {"n1": HGX}).busbw
