"""Whether a job gets on, from looks at it: figures by hand, no clock and no node."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ncheck.triage.facts.pulse import GpuPulse, PulseFacts, RankPulse
from ncheck.triage.progress import JobProgress, ProgressKind

WINDOW, EVERY = 120.0, 20
MB = 1e6
Rate = Callable[[float], float]  # of a time in seconds, per second


def watched(  # noqa: PLR0913  what may move
    until: float, *, network: Rate = lambda _: 0.0, files: Rate = lambda _: 0.0, gpus: Rate | None = None,
    cpu: Rate = lambda _: 0.5, other_cpu: Rate = lambda _: 0.5,
) -> JobProgress:  # fmt: skip
    """Return what two nodes with a rank each have done, by what the first one moves at each second."""
    progress = JobProgress(WINDOW)
    sums = dict.fromkeys(("network", "files", "cpu", "other"), 0.0)
    for second in range(int(until) + 1):
        if second % EVERY == 0:
            use = None if gpus is None else GpuPulse(100, int(gpus(second)))
            first = PulseFacts(
                second, (RankPulse(7, "R", sums["cpu"], int(sums["files"])),), int(sums["network"]), 0, use
            )
            second_node = PulseFacts(second, (RankPulse(8, "R", sums["other"], 0),), 0, 0, None)
            progress = progress.after(float(second), {"node01": first, "node02": second_node})
        for name, rate in (("network", network), ("files", files), ("cpu", cpu), ("other", other_cpu)):
            sums[name] += rate(second)
    return progress


def until(end: float, rate: float, then: float = 0.0) -> Rate:
    return lambda second: rate if second < end else then


def test_a_job_that_moves_does_not_stand() -> None:
    for kind in ("network", "files"):
        assert watched(900, **{kind: lambda _: 100 * MB}).stands_since is None
    assert watched(900, gpus=lambda _: 40.0).stands_since is None


def test_nothing_is_said_before_a_window_has_passed() -> None:
    assert watched(100).stands_since is None
    assert watched(120).stands_since == 0.0


def test_a_job_stands_since_it_last_moved() -> None:
    assert watched(1000, network=until(800, 100 * MB)).stands_since == 800.0
    assert watched(1000, files=until(800, MB)).stands_since == 800.0
    assert watched(1000, gpus=until(800, 60.0)).stands_since == pytest.approx(800.0, abs=EVERY)


def test_it_stands_only_after_a_whole_window() -> None:
    assert watched(900, network=until(800, 100 * MB)).stands_since is None


def test_what_others_do_on_the_network_hides_no_hang() -> None:
    """Another job's traffic goes on; the GPUs of this one do nothing."""
    assert watched(1000, network=lambda _: 100 * MB, gpus=until(800, 60.0)).stands_since is not None


def test_steps_longer_than_a_look_are_progress() -> None:
    """A gradient is summed once in 80 seconds."""
    assert watched(2000, network=lambda second: 800 * MB if second % 80 == 0 else 0.0).stands_since is None
    assert watched(2000, network=lambda second: 800 * MB if second % 80 == 0 else 0.0).slower is None


def test_a_kind_that_the_job_never_moved_is_not_missed() -> None:
    assert watched(900, network=lambda _: 100 * MB, gpus=lambda _: 0.0).stands_since is None


def test_a_job_that_became_slow_is_slow_since_then_and_not_still() -> None:
    progress = watched(1500, network=until(1000, 100 * MB, 40 * MB))
    assert progress.stands_since is None
    slower = progress.slower
    assert slower is not None
    assert (slower.kind, slower.since) == (ProgressKind.NETWORK, 1000.0)
    assert slower.share == pytest.approx(0.4)


def test_a_job_is_not_slow_for_one_window_of_less() -> None:
    """A validation of 100 seconds."""
    progress = watched(1120, network=lambda second: 0.4 * 100 * MB if 1000 <= second < 1100 else 100 * MB)
    assert progress.slower is None


def test_a_job_that_always_was_so_fast_is_not_slow() -> None:
    assert watched(3000, network=lambda _: 40 * MB).slower is None


def test_the_rank_that_uses_more_of_a_cpu_is_named() -> None:
    progress = watched(
        1500, network=until(1000, 100 * MB, 40 * MB), cpu=until(1000, 0.4, 0.9), other_cpu=until(1000, 0.4, 0.2)
    )
    busier = progress.busier()
    assert list(busier) == [("node01", 7)]
    assert busier["node01", 7][1] == pytest.approx(0.9, abs=0.05)


def test_a_counter_that_was_set_back_moves_nothing() -> None:
    progress = JobProgress(WINDOW)
    for at, sent in ((0.0, 10**12), (20.0, 5), (40.0, 10)):
        progress = progress.after(at, {"node01": PulseFacts(at, (), sent, 0, None)})
    assert progress.looks[-1].moved[ProgressKind.NETWORK] == 5.0


def test_a_node_that_does_not_answer_has_moved_nothing_that_is_known() -> None:
    progress = watched(900, network=lambda _: 100 * MB)
    moved = progress.looks[-1].moved[ProgressKind.NETWORK]
    assert progress.after(920.0, {}).looks[-1].moved[ProgressKind.NETWORK] == moved
