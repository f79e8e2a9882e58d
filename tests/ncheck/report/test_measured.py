"""What was measured, for people: whole pictures against golden files, and what must hold of every one of them."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.model.report import Pair, Protocol, Report, Standing, Traffic
from ncheck.probe.node_result import Method
from ncheck.probe.standing import of_share, with_shares
from ncheck.report import measured as say
from ncheck.report.measured import TrafficLine, carried, heat, labels, print_measured
from ncheck.report.page import Page
from ncheck.report.verbose import print_report

from .measurements import CALM, HURRIED, MEASURED, RAMP, curve, everywhere, pair, probe, slow_node

GOLDEN = Path(__file__).parent / "golden"


class Utf8(io.StringIO):
    encoding = "utf-8"


class Ascii(io.StringIO):
    encoding = "ascii"


def printed(report: Report, stream: io.StringIO | None = None, *, color: bool | None = None) -> str:
    stream = stream or Utf8()
    print_measured(Page(stream, {"COLUMNS": "80"}, color=color), report)
    return stream.getvalue()


@pytest.fixture(params=sorted(MEASURED))
def named(request: pytest.FixtureRequest, reports: dict[str, Report]) -> tuple[str, Report]:
    """Each report with measurements in turn, with its name."""
    return request.param, MEASURED[request.param](reports["healthy"])


def test_each_picture_is_as_its_golden_file_says(named: tuple[str, Report]) -> None:
    name, report = named
    golden = GOLDEN / f"measured_{name}.txt"
    if os.environ.get("NCHECK_GOLDEN") == "write":
        golden.write_text(printed(report), encoding="utf-8")
    assert printed(report) == golden.read_text(encoding="utf-8")


def test_no_line_of_a_picture_is_wider_than_the_page(named: tuple[str, Report]) -> None:
    assert [line for line in printed(named[1]).splitlines() if len(line) > 80] == []


def test_a_terminal_without_unicode_gets_the_same_picture_in_ascii(named: tuple[str, Report]) -> None:
    plain = printed(named[1], Ascii())
    assert plain.isascii()
    assert len(plain.splitlines()) == len(printed(named[1]).splitlines())


def test_colours_come_only_where_they_are_wanted(reports: dict[str, Report]) -> None:
    report = slow_node(reports["healthy"])
    assert "\x1b" not in printed(report)
    assert "\x1b[1;31m" in printed(report, color=True)


def test_the_whole_report_tells_it_once_and_then_says_nothing_of_no_probe(reports: dict[str, Report]) -> None:
    stream = Utf8()
    print_report(slow_node(reports["healthy"]), stream, {})
    assert stream.getvalue().count("Measured\n") == 1
    assert "no bandwidth was measured" not in stream.getvalue()


def test_a_recorded_measurement_is_said_to_be_recorded(reports: dict[str, Report]) -> None:
    report = replace(slow_node(reports["healthy"]), recorded=True)
    assert "started by ncheck (recorded, not measured now)" in " ".join(printed(report).split())


def test_of_a_long_sweep_ten_sizes_are_shown_the_largest_among_them() -> None:
    points = curve({1 << power: float(power + 1) for power in range(28)})
    shown = say.rows(points)
    assert len(shown) == say.ROWS
    assert (shown[0].size, shown[-1].size) == (1 << 20, 1 << 47)


def test_shares_stand_as_the_limits_of_the_checks_do() -> None:
    standings = [of_share(share, Method.NCCL) for share in (1.02, 0.85, 0.84, 0.75, 0.74, None)]
    assert [say.tone(standing) for standing in standings] == [
        say.WELL, say.WELL, say.WARNED, say.WARNED, say.BAD, say.UNJUDGED,
    ]  # fmt: skip
    assert say.tone(Standing.FAILED) == say.BAD


def test_times_and_rates_are_short() -> None:
    assert [say.time(s) for s in (9e-6, 0.00123, 1.5)] == ["9 us", "1.23 ms", "1.5 s"]
    assert [say.rate(r) for r in (381.4, 47.94, 9.0, 0.012, 4e-5, 0.0)] == [
        "381",
        "47.9",
        "9.0",
        "0.012",
        "<0.01",
        "0.0",
    ]


def test_how_often_it_was_timed_is_one_line_and_doubts_stand_with_the_value() -> None:
    calm, hurried = everywhere(), everywhere(200.0, protocol=HURRIED)
    assert say.verdict(calm) == "381 of 400 GB/s expected (95 %): limited by the 8 x 400 Gb/s NICs"
    doubts = "; 3 of 5 repeats: no time for more; noisy: spread 31 %"
    assert say.verdict(hurried) == f"200 of 400 GB/s expected (50 %): limited by the 8 x 400 Gb/s NICs{doubts}"
    assert say.verdict(replace(hurried, expected=None)) == f"200 GB/s; no expected value{doubts}"
    assert say.protocol([calm, hurried]) == "median of 5 repeats after 2 warm-ups; spread 1 % to 31 %"
    by_program = Protocol("mean", 1, 1)
    assert say.protocol([everywhere(protocol=by_program)]) == "mean of 1 repeat after 1 warm-up"
    assert say.protocol([calm, everywhere(protocol=replace(CALM, spread=0.011))]).endswith("; spread 1 %")
    assert say.protocol([everywhere(protocol=None)]) == ""


def test_the_foremost_measurement_is_of_all_nodes_or_else_the_nearest_to_it() -> None:
    whole, half = everywhere(), everywhere(stage="scaling", ranks=16)
    alone = everywhere(stage="inside", ranks=8)
    assert say.foremost((alone, half, whole)) is whole
    assert say.foremost((alone, half)) is half
    assert say.foremost(()) is None


def test_one_size_and_no_expectation_still_make_a_picture(reports: dict[str, Report]) -> None:
    one = everywhere(expected=None, efficiency=None, curve=curve({1: RAMP[1]}), protocol=None)
    out = printed(replace(reports["healthy"], measurements=(one,), probe=probe((), ())))
    assert out.splitlines()[-1].startswith("           1 MiB   496 us     4.1  █")


def test_columns_are_headed_by_what_parts_the_names_or_by_numbers() -> None:
    assert labels(("gpu01.rack", "gpu02.rack", "gpu11.rack")) == ("01", "02", "11")
    assert labels(("10.0.0.7", "10.0.0.11")) == ("7", "11")
    assert labels(("alpha", "magnolia")) == ("1", "2")


def test_no_picture_is_drawn_of_one_pair_or_of_pairs_that_all_failed() -> None:
    assert heat(probe((Pair(("a", "b"), 1.0),), ()), ()) == ()
    assert heat(probe((Pair(("a", "b"), None), Pair(("a", "c"), None)), ()), ()) == ()


def lines(*traffic: Traffic, together: bool = True) -> tuple[TrafficLine, ...]:
    return carried(with_shares(traffic, together=together))


def test_bytes_that_left_by_another_nic_than_the_plans_are_pointed_at() -> None:
    by_plan = Traffic("n1", "mlx5_0:1", 50_000_000_000, 0, planned=True)
    astray = Traffic("n2", "eno1", 40_000_000_000, 0, planned=False)
    chatter = Traffic("n1", "eno1", 1_000_000, 0, planned=False)
    assert lines(by_plan, chatter) == (TrafficLine("sent by mlx5_0:1 on n1: 50 GB"),)
    assert lines(by_plan, astray) == (
        TrafficLine("sent by mlx5_0:1 on n1: 50 GB"),
        TrafficLine("sent by eno1 on n2: 40 GB (not in the plan)", odd=True),
    )


def test_what_ranks_of_one_node_send_each_other_by_loopback_left_by_no_nic() -> None:
    by_plan = tuple(Traffic(name, "eth0", 33_200_000, 0, planned=True) for name in ("n1", "n2"))
    inside = tuple(Traffic(name, "lo", 33_200_100, 0, planned=False) for name in ("n1", "n2"))
    assert lines(*by_plan, *inside) == (
        TrafficLine("sent by eth0 on n[1-2]: 33.2 MB each"),
        TrafficLine("sent inside the node, by lo on n[1-2]: 33.2 MB each"),
    )
    assert lines(*by_plan, replace(inside[0], sent=500)) == (TrafficLine("sent by eth0 on n[1-2]: 33.2 MB each"),)


def test_who_had_fewer_steps_is_not_odd_where_the_nodes_never_ran_together() -> None:
    busy, idle = (Traffic(name, "eth0", sent, 0, planned=True) for name, sent in (("n1", 66_400_000), ("n2", 100)))
    assert lines(busy, idle, together=False) == (TrafficLine("sent by eth0 on n[1-2]: 100 B to 66.4 MB each"),)
    assert lines(busy, replace(idle, sent=10_000_000))[-1].odd
    assert lines(replace(busy, sent=900), idle) == ()


def test_more_than_all_is_kept_only_where_the_links_are_known() -> None:
    assert say.kept(everywhere(efficiency=1.02)) == "102 %"
    assert say.kept(everywhere(efficiency=1.39, expected=None)) == ""
    assert say.kept(everywhere(efficiency=0.7, expected=None)) == "70 %"
    assert say.kept(everywhere(efficiency=None)) == ""


def test_what_a_node_calls_its_devices_cannot_steer_the_terminal(reports: dict[str, Report]) -> None:
    hostile = (Traffic("n1", "\x1b[2Jeth0\r\n\u202e", 5_000_000_000, 0, planned=True),)
    failed = everywhere(measured=None, curve=(), failed="gpu01: \x1b]0;owned\x07 no")
    out = printed(replace(reports["healthy"], measurements=(failed,), probe=probe((), hostile)))
    assert [char for char in out if not char.isprintable() and char != "\n"] == []


def test_usual_between_nodes_is_what_they_reach_at_their_best() -> None:
    slow_of_four = (pair(("a", "b"), 18.0, 19.0), pair(("c", "a"), 5.0, 19.0), pair(("c", "b"), 5.0, 19.0),
                    pair(("c", "d"), 4.0, 19.0), pair(("a", "d"), 19.0, 19.0))  # fmt: skip
    (drawn,) = heat(probe(slow_of_four, ()), ())
    assert (drawn.usual, [pair.nodes[0] for pair in drawn.odd]) == (19.0, ["c", "c", "c"])
