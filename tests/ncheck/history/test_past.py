"""What the history says of each node: incidents, parts that were replaced or moved, counters, and who stands out."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ncheck.history.entry import Entry, Kept, Seen
from ncheck.history.lemons import chance_of, lemons
from ncheck.history.past import Grown, Incident, NodePast, Replaced, past_of
from ncheck.history.store import Span

XID, POLLING, MEMLOCK = (
    Seen("NC506", "gpu-xid-reported", "error", ("b",), "Xid 79 of a GPU", hardware=True),
    Seen("NC402", "ib-port-polling", "error", ("b",), "no link", hardware=True),
    Seen("NC602", "memlock-limited", "error", ("b",), "memlock is 64 KiB"),
)
NODES = ("a", "b", "c")
ALL = ("NC402", "NC506", "NC602")


def run(
    time: float,
    *found: Seen,
    unreached: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
    checks: tuple[str, ...] = ALL,
) -> Entry:
    bad = tuple(dict.fromkeys(node for one in found for node in one.nodes))
    left = tuple(node for node in NODES if node not in (*bad, *unreached, *unknown))
    states = {"good": left, "bad": bad, "unknown": unknown, "unreached": unreached}
    return Entry(time, "check", nodes=states, checks=checks, findings=found)


def test_a_run_of_some_checks_makes_no_node_good_again() -> None:
    part = replace(run(2, checks=("NC602",)), kind="part")
    past = past_of([run(1, POLLING), part], ())
    assert [(one.node, one.state, one.flaps, one.tried) for one in past.nodes if one.bad] == [("b", "bad", 0, 2)]
    again = past_of([run(1, POLLING), part, run(3, POLLING)], ())
    assert [one.flaps for one in again.nodes if one.bad] == [0]
    assert {one.state for one in past_of([run(1, POLLING), run(2)], ()).nodes} == {"good"}


def test_a_fault_that_lasts_is_one_incident_and_ends_where_its_check_no_longer_finds_it() -> None:
    runs = [
        run(1), run(2, XID), run(3, XID),
        run(4, checks=("NC402",)),  # NC506 was not looked for
        run(5, unknown=("b",)), run(6, unreached=("b",)),
        run(7), run(8, XID), run(9, MEMLOCK),
    ]  # fmt: skip
    past = past_of(runs, ()).of("b")
    assert past is not None
    assert past.incidents == (Incident(XID, 2, ended=7), Incident(XID, 8, ended=9), Incident(MEMLOCK, 9))
    assert (past.runs, past.bad, past.unreached, past.state, past.examined) == (9, 4, 1, "bad", 9)
    assert past.flaps == 1  # bad again at 8, and 9 is the same time
    healthy = past_of(runs, ()).of("a")
    assert healthy is not None
    assert (healthy.incidents, healthy.state, healthy.flaps) == ((), "good", 0)


def test_what_triage_said_is_a_moment_and_no_examination_of_the_nodes_that_it_names() -> None:
    stopped = Seen("rank_stopped", "triage", "error", ("b", "d"), "a rank is stopped")
    runs = [run(1), run(2, POLLING), run(4)]
    triage = Entry(3, "triage", findings=(stopped,))
    plain, past = past_of(runs, ()), past_of([*runs[:2], triage, runs[2]], ())
    before, after = plain.of("b"), past.of("b")
    assert before is not None
    assert after == replace(before, incidents=(*before.incidents, Incident(stopped, 3, ended=3)))
    assert past.of("d") == NodePast("d", 0, 0, 0, "", 0.0, None, (Incident(stopped, 3, ended=3),))
    assert [one for one in past.nodes if one.node in "ac"] == [one for one in plain.nodes if one.node in "ac"]


def test_a_part_that_was_replaced_and_one_that_moved_are_named() -> None:
    def gpu(node: str, uuid: str, first: float, last: float, kind: str = "gpu") -> Span:
        return Span(Kept(node, kind, "0000:5d:00.0", uuid), first, last)

    spans = (
        gpu("a", "GPU-1", 1, 3), gpu("a", "GPU-2", 4, 9),  # the second was in b before
        gpu("b", "GPU-2", 1, 3), gpu("b", "GPU-3", 4, 9),
        gpu("c", "GPU-4", 1, 9), gpu("other-name-of-c", "GPU-4", 2, 8),  # one machine under two names
        gpu("c", "boot-1", 1, 4, "boot"), gpu("c", "boot-2", 5, 9, "boot"),
    )  # fmt: skip
    past = past_of([run(1), run(9)], spans)
    place = "0000:5d:00.0"
    assert [one.replaced for one in past.nodes] == [
        (Replaced("a", "gpu", place, "GPU-1", "GPU-2", 4, came_from="b"),),
        (Replaced("b", "gpu", place, "GPU-2", "GPU-3", 4),),
        (),
    ]
    assert [one.reboots for one in past.nodes] == [0, 0, 1]


def test_what_a_gpu_did_before_it_was_replaced_does_not_count_against_its_node() -> None:
    """The node has three faults, and so stands out among forty nodes; without those of the old GPU it does not."""
    others = tuple(f"n{number}" for number in range(40))
    runs = []
    for time in range(100):
        found = (XID,) if time in (10, 20, 30) else ()
        states = {"good": others if found else (*others, "b"), "bad": ("b",) if found else ()}
        runs.append(Entry(time, "check", nodes=states, checks=ALL, findings=found))
    old, new = (
        Span(Kept("b", "gpu", "0000:5d:00.0", uuid), *times) for uuid, times in (("x", (0, 40)), ("y", (41, 99)))
    )
    assert [one.node for one in past_of(runs, (old,)).nodes if one.stands_out] == ["b"]
    assert [one.node for one in past_of(runs, (old, new)).nodes if one.stands_out] == []


def test_faults_of_software_and_of_the_job_make_no_node_stand_out() -> None:
    runs = [run(time, *((MEMLOCK,) if time % 2 else ())) for time in range(60)]
    assert not any(one.stands_out for one in past_of(runs, ()).nodes)


def test_counters_that_grew_are_named_and_one_that_was_reset_is_not() -> None:
    def count(name: str, value: int, first: float, last: float) -> Span:
        return Span(Kept("a", "counter", name, str(value)), first, last)

    spans = (
        count("mlx5_0:1 symbol_error", 3, 1, 5), count("mlx5_0:1 symbol_error", 40, 6, 9),
        count("mlx5_1:1 symbol_error", 40, 1, 5), count("mlx5_1:1 symbol_error", 2, 6, 9),
        count("eth0 rx_crc_errors", 7, 1, 9),
    )  # fmt: skip
    past = past_of([run(1), run(9)], spans).of("a")
    assert past is not None
    assert past.grown == (Grown("a", "mlx5_0:1 symbol_error", 3, 40, 4),)


def test_the_binomial_tail_is_exact() -> None:
    assert chance_of(0, 10, 0.3) == 1.0
    assert chance_of(10, 10, 0.5) == 0.5**10
    assert abs(chance_of(2, 3, 0.25) - (3 * 0.25**2 * 0.75 + 0.25**3)) < 1e-12
    assert chance_of(500, 100_000, 0.001) < 1e-100


def test_a_fleet_that_is_alike_is_rarely_accused_and_a_lemon_is_found() -> None:
    """bench/lemons.py has the whole of it."""
    random, accused = Random(7), 0  # noqa: S311  the same fleets each time
    for fleet in range(40):
        counts = {f"n{number}": (200, sum(random.random() < 0.01 for _ in range(200))) for number in range(100)}
        accused += bool(lemons(counts))
        counts["lemon"] = (200, 20 + fleet % 3)
        assert lemons(counts)[0] == "lemon"
    assert accused == 0
