"""The whole report for people (-v): whole outputs against golden files, and what must hold of every one of them."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import termios
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import Report, RunPart
from ncheck.report import show
from ncheck.report.summary import timeline
from ncheck.report.verbose import print_report

GOLDEN = Path(__file__).parent / "golden"


def printed(report: Report, *, color: bool | None = None, environ: dict[str, str] | None = None) -> str:
    stream = io.StringIO()
    print_report(report, stream, environ or {"COLUMNS": "80"}, color=color)
    return stream.getvalue()


class Utf8(io.StringIO):
    """A stream that can print everything."""

    encoding = "utf-8"


def in_utf8(report: Report) -> str:
    stream = Utf8()
    print_report(report, stream, {"COLUMNS": "80"})
    return stream.getvalue()


def test_each_report_reads_as_its_golden_file_says(named_report: tuple[str, Report]) -> None:
    name, report = named_report
    golden = GOLDEN / f"{name}.verbose.txt"
    if os.environ.get("NCHECK_GOLDEN") == "write":
        golden.write_text(in_utf8(report), encoding="utf-8")
    assert in_utf8(report) == golden.read_text(encoding="utf-8")


def test_no_control_escape_or_invisible_character_of_a_node_reaches_the_terminal(reports: dict[str, Report]) -> None:
    out = in_utf8(reports["hostile"])
    assert [char for char in out if not char.isprintable() and char != "\n"] == []
    assert "echo '[red]safe[/red]'" in out  # what looks like markup is text


def test_nothing_but_paths_and_lines_to_copy_is_wider_than_the_page(named_report: tuple[str, Report]) -> None:
    _, report = named_report
    wide = [line for line in in_utf8(report).splitlines() if len(line) > 80]
    assert [line for line in wide if not re.match(r"mpirun|\s+→|to read more|\s+\S+$", line)] == []


def test_a_line_to_type_is_whole_on_its_own_line_however_long(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    fix = "python3 -m pip install " + " ".join(f"package-{number}==1.0" for number in range(40))
    long = replace(report, findings=(replace(report.findings[0], fix=fix),))
    lines = in_utf8(long).splitlines()
    assert f"  → fix on node04: {fix}" in lines
    assert report.plan.lines["mpirun"] in lines


def test_a_thousand_lost_nodes_do_not_print_a_thousand_lines(reports: dict[str, Report]) -> None:
    assert len(in_utf8(reports["thousand_lost"]).splitlines()) < 50


def test_findings_whose_words_all_differ_are_counted_after_the_third(reports: dict[str, Report]) -> None:
    found = [
        Finding("NC111", "connection-refused", Severity.ERROR, (f"node{n:04d}",), f"refused by 10.0.{n}", (), "true")
        for n in range(1, 201)
    ]
    out = in_utf8(replace(reports["thousand_lost"], findings=tuple(found)))
    assert "  refused by 10.0.3\n" in out
    assert "  refused by 10.0.4\n" not in out
    assert (
        "    and 197 more connection-refused findings on node[0004-0200], with other\n    messages (all in -o json)"
        in out
    )


def test_a_piped_report_has_no_escape_sequence_and_is_80_wide(reports: dict[str, Report]) -> None:
    assert "\x1b" not in printed(reports["mixed_nccl"], environ={"TERM": "xterm-256color", "FORCE_COLOR": "1"})


def test_color_can_be_forced(reports: dict[str, Report]) -> None:
    assert "\x1b[1;31m" in printed(reports["mixed_nccl"], color=True)


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}, {}])
def test_no_color_and_a_dumb_terminal_are_obeyed_on_a_terminal_too(
    reports: dict[str, Report], environ: dict[str, str]
) -> None:
    assert "\x1b" not in on_a_terminal(reports["mixed_nccl"], environ)


def test_a_terminal_gets_colors(reports: dict[str, Report]) -> None:
    assert "\x1b[1;31m" in on_a_terminal(reports["mixed_nccl"], {"TERM": "xterm"})


def test_the_headline_is_also_the_last_line(named_report: tuple[str, Report]) -> None:
    _, report = named_report
    out = in_utf8(report)
    lines = out.splitlines()
    answer = lines[: next(number for number, line in enumerate(lines) if line.startswith("  ncheck "))]
    assert re.match(r"[✗?!✓] (Not ready|Not verified|Ready|Ready, with warnings|Interrupted)(:| after) ", answer[0])
    assert lines[-len(answer) :] == answer


def test_the_report_says_once_how_to_explain_a_finding(reports: dict[str, Report]) -> None:
    assert in_utf8(reports["mixed_nccl"]).count("to read more: ncheck explain NC201; ") == 1
    assert "ncheck explain" not in in_utf8(reports["healthy"])


def test_a_narrow_terminal_is_filled_and_not_overrun(reports: dict[str, Report]) -> None:
    lines = on_a_terminal(reports["mixed_nccl"], {"TERM": "dumb"}, columns=60).splitlines()
    wide = [line for line in lines if len(line) > 60]
    assert [line for line in wide if not re.match(r"\s+→|to read more|\s+\S+$", line)] == []
    assert max(len(line) for line in lines if " " in line.strip()) > 50


END = "that was all"


def on_a_terminal(report: Report, environ: dict[str, str], columns: int = 100) -> str:
    """Print on a pseudo-terminal, and return what came out of its other end."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream, os.fdopen(ours, "rb", buffering=0) as read:
        small = replace(report, findings=report.findings[:1], plan=LaunchPlan())  # fits the pseudo-terminal's buffer
        print_report(small, stream, environ)
        print(END, file=stream, flush=True)
        out = b""
        while END.encode() not in out:  # it comes in pieces where the machine is busy
            out += read.read(65536)
        return out.decode().partition(END)[0]


def test_a_stream_that_knows_ascii_alone_gets_plain_signs(reports: dict[str, Report]) -> None:
    out = printed(reports["mixed_nccl"])
    assert out.isascii()
    assert "x error NC201 nccl-version-differs  node04\n" in out
    assert "  -> fix on node04: python3 -m pip install nvidia-nccl-cu12==2.21.5\n" in out


def test_nothing_told_is_not_called_ready(reports: dict[str, Report]) -> None:
    skipped = tuple(replace(one, outcome=Outcome.SKIPPED, reason="none") for one in reports["healthy"].verdicts)
    out = in_utf8(replace(reports["healthy"], verdicts=skipped))
    assert "? Not verified: no check passed; launch plan usable\n" in out
    assert "No problems" not in out


def test_one_unknown_verdict_is_not_called_ready(reports: dict[str, Report]) -> None:
    first, *others = reports["healthy"].verdicts
    unknown = replace(first, outcome=Outcome.UNKNOWN, reason="nvidia-smi ended with exit status 9")
    out = in_utf8(replace(reports["healthy"], verdicts=(unknown, *others), exit_code=1))
    assert "? Not verified: 1 check unknown on node01; launch plan usable\n" in out
    assert "exit code 1: unknown results count as failures (--fail-on error,unknown)\n" in out


def test_what_is_only_worth_knowing_is_no_headline_unless_it_counts(reports: dict[str, Report]) -> None:
    docker0 = Finding("NC356", "bridge-address-shared", Severity.INFO, ("node01",), "docker0", (), "ip -br address")
    printed_lines = in_utf8(replace(reports["healthy"], findings=(docker0,))).splitlines()
    assert printed_lines[0].startswith("✓ Ready: ")
    assert [line for line in printed_lines if line.startswith("0 errors, 0 warnings, 1 info finding · ")]
    counting = replace(reports["healthy"], findings=(docker0,), fail_on=("error", "info"), exit_code=1)
    assert in_utf8(counting).splitlines()[0] == "! Ready, with warnings: node01: docker0; launch plan usable"


def test_what_was_skipped_is_told_with_the_reasons_that_spare_more_than_one_check(reports: dict[str, Report]) -> None:
    absent = {"NC402": "no InfiniBand", "NC404": "no InfiniBand", "NC501": "no GPU"}
    skipped = tuple(Verdict(f"of-{code}", code, ("node01",), Outcome.SKIPPED, why) for code, why in absent.items())
    passed = reports["healthy"].verdicts
    out = in_utf8(replace(reports["healthy"], verdicts=(*passed, *skipped)))
    assert "- 3 checks skipped on node01: no InfiniBand (2); other reasons (1)\n" in out
    out = in_utf8(replace(reports["healthy"], verdicts=(*passed, *skipped[1:])))
    assert "- 2 checks skipped on node01 (reasons in -o json)\n" in out


def test_in_containers_root_is_needed_on_the_host_and_sudo_is_not_proposed(reports: dict[str, Report]) -> None:
    healthy = reports["healthy"]
    out = in_utf8(replace(healthy, nodes=tuple(replace(node, container="docker") for node in healthy.nodes)))
    assert "- 1 check needs root on node[01-04] (on the host, outside of the container):" in out
    assert "(4 need root: on the host, outside of the container)" in " ".join(out.split())
    assert "--sudo" not in out


def test_a_reader_who_goes_away_costs_neither_words_nor_the_exit_code(reports: dict[str, Report]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        assert show(reports["tie"], "console", stream, {}) == 1
        assert show(reports["tie"], "json", stream, {}) == 1


def test_a_value_of_each_nodes_own_stands_beside_its_nodes_and_what_is_not_decided_says_so(
    reports: dict[str, Report],
) -> None:
    own = {name: {"NCCL_SOCKET_IFNAME": Setting(value, "why")} for name, value in (("n1", "=eno1"), ("n2", "=eth0"))}
    undecided = Setting(None, "no one index is right", decided=False)
    plan = LaunchPlan(
        {"NCCL_SOCKET_IFNAME": Setting(None, "they differ"), "NCCL_IB_GID_INDEX": undecided}, per_node=own
    )
    lines = in_utf8(replace(reports["healthy"], plan=plan)).splitlines()
    first = lines.index("Launch plan") + 1
    assert lines[first : first + 5] == [
        "  export NCCL_SOCKET_IFNAME='=eno1'  # on n1",
        "  export NCCL_SOCKET_IFNAME='=eth0'  # on n2",
        "      they differ",
        "  NCCL_IB_GID_INDEX: undecided",
        "      no one index is right",
    ]


def test_the_line_for_people_leaves_out_what_took_no_time(reports: dict[str, Report]) -> None:
    parts = (
        RunPart("start", 0.31),
        RunPart("log in", 0.04),
        RunPart("questions", 0.7, "n2", "nccl", 0.3),
        RunPart("between the nodes", 4.0, "n9", "ssh-peers", 3.4, {"n8": 3.0, "n9": 3.25}),
        RunPart("measured", 0.4, "n1", "step#3", 0.01),
    )
    report = replace(reports["healthy"], seconds=5.45, timeline=parts)
    assert timeline(report) == (
        "5.5 s: start 0.3, questions 0.7 (slowest: nccl 0.3 s on n2), between the nodes 4.0 "
        "(slowest: ssh-peers 3.4 s on n9; n[8-9] made the others wait 3.2 s), measured 0.4"
    )
    assert not timeline(reports["healthy"])
