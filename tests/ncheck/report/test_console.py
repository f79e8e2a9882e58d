"""The report on a terminal: whole outputs against golden files, and what must hold of every one of them."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import struct
import termios
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TextIO

import pytest
from ncheck.model.evidence import INTERRUPTED
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.plan import Blocker, Setting
from ncheck.model.report import MeshSample, Report, Standing, State
from ncheck.report import quiet
from ncheck.report.console import print_report
from ncheck.report.html import as_html
from ncheck.report.json import as_json
from ncheck.report.measured import foremost
from ncheck.report.page import Sheet
from ncheck.report.text import fold_findings
from ncheck.report.topics import topic_lines
from ncheck.report.verbose import print_report as print_verbose

from .conftest import PLAN, names, node, report
from .measurements import MEASURED, slow_node

GOLDEN = Path(__file__).parent / "golden"


class Screen(Sheet):
    """A screen that can print everything."""

    encoding = "utf-8"


class Pipe(io.StringIO):
    """A pipe that can carry everything."""

    encoding = "utf-8"


def in_utf8(report: Report) -> str:
    stream = Screen(80)
    print_report(report, stream, {})
    return stream.getvalue()


def on_a_terminal(report: Report, columns: int, rows: int = 24) -> list[str]:
    """Return the lines that a terminal of this size gets."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream, os.fdopen(ours, "rb", buffering=0) as read:
        writer = Thread(target=_written, args=(report, stream))
        writer.start()
        out = b""
        while not out.endswith(b"None\r\n"):  # it comes in pieces, and the terminal has no room for all of it
            out += read.read(65536)
        writer.join()
    return out.decode().removesuffix("None\r\n").replace("\r\n", "\n").splitlines()


def _written(report: Report, stream: TextIO) -> None:
    print_report(report, stream, {"TERM": "dumb"})
    print("None", file=stream, flush=True)


def in_a_pipe(report: Report) -> list[str]:
    stream = Pipe()
    print_report(report, stream, {})
    return stream.getvalue().splitlines()


def test_each_report_reads_as_its_golden_file_says(named_report: tuple[str, Report]) -> None:
    name, made = named_report
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("NCHECK_GOLDEN") == "write":
        golden.write_text(in_utf8(made), encoding="utf-8")
    assert in_utf8(made) == golden.read_text(encoding="utf-8")


def test_no_control_escape_or_invisible_character_of_a_node_reaches_the_terminal(reports: dict[str, Report]) -> None:
    out = in_utf8(reports["hostile"])
    assert [char for char in out if not char.isprintable() and char != "\n"] == []


def test_nothing_but_lines_to_copy_is_wider_than_the_page(named_report: tuple[str, Report]) -> None:
    wide = [line for line in in_utf8(named_report[1]).splitlines() if len(line) > 80]
    assert [line for line in wide if not re.match(r"mpirun|\s+→|to read more|\s+node\[\S+$", line)] == []


def test_the_first_lines_are_the_answer_and_the_last_lines_are_the_same(named_report: tuple[str, Report]) -> None:
    lines = in_utf8(named_report[1]).splitlines()
    answer = lines[: next(number for number, line in enumerate(lines) if line.startswith("  ncheck "))]
    states = "|".join(one.value for one in State)
    assert re.match(rf"[✗?!✓] ({states})(:| after) ", answer[0])
    assert lines[-len(answer) :] == answer


def test_what_pins_the_pick_of_nccl_is_one_line_to_copy_on_every_page(reports: dict[str, Report]) -> None:
    names = "eno1 on node01, enp3s0 on node02, eth0 on node[03-04], all in 10.20.0.0/24"
    setting = Setting(None, f"not needed, NCCL picks {names}", pin="=eno1,enp3s0,eth0")
    made = replace(reports["healthy"], plan=replace(PLAN, env={"NCCL_SOCKET_IFNAME": setting}))
    line = f"NCCL_SOCKET_IFNAME: not needed, NCCL picks {names}; to pin it: NCCL_SOCKET_IFNAME==eno1,enp3s0,eth0"
    stream = Pipe()
    print_verbose(made, stream, {}, color=False)
    assert [f"  {line}" in page.splitlines() for page in (in_utf8(made), stream.getvalue())] == [True, True]
    assert f'<p class="aside">{line}</p>' in as_html(made)
    assert json.loads(as_json(made))["plan"]["env"]["NCCL_SOCKET_IFNAME"]["pin"] == "=eno1,enp3s0,eth0"


def very_sick(number: int) -> Report:
    """Return a cluster in which much is wrong: on some nodes a fault of their own, on all of them several."""
    nodes = names(number)
    long = "what was found is described here by as many words as a check may need to describe it, and by a few more"
    own = [
        Finding(f"NC4{place:02d}", "ib-port-polling", Severity.ERROR, (one,), f"{one}: {long}",
                tuple(f"line {line} of {one}" for line in range(9)), f"sudo ibstat mlx5_{place}", summary="no link")
        for place, one in enumerate(nodes[: number // 2])
    ]  # fmt: skip
    shared = [
        Finding(f"NC3{place:02d}", "mtu-differs", severity, nodes, f"{place}: {long}", (long,) * 5, f"ip link {place}")
        for place, severity in enumerate((Severity.ERROR, Severity.WARNING, Severity.WARNING, Severity.INFO) * 4)
    ]
    hosts = ",".join(f"{name}:8" for name in nodes)
    line = f"mpirun -np {8 * number} -H {hosts} --bind-to none --mca btl_tcp_if_include 10.20.0.0/24 python train.py"
    made = report([node(one) for one in nodes], [*own, *shared], ())
    return replace(made, plan=replace(PLAN, lines={"mpirun": line}))


@pytest.mark.parametrize("number", [4, 64])
def test_a_window_wraps_the_report_and_leaves_nothing_out_and_a_pipe_has_a_line_for_each_sentence(
    number: int,
) -> None:
    made, pipe = very_sick(number), in_a_pipe(very_sick(number))
    for columns, rows in ((60, 10), (80, 24), (120, 50)):
        assert "\n".join(on_a_terminal(made, columns, rows)).split() == "\n".join(pipe).split()
    messages = [f"  {one.message}" for one in fold_findings(made.findings) if one.severity is not Severity.INFO]
    assert [line for line in pipe if line in messages] == sorted(messages, key=pipe.index)
    assert len([line for line in pipe if line.startswith("  → ")]) == len(messages)


def test_of_the_evidence_at_most_three_rows_are_shown_and_the_fix_is_whole() -> None:
    lines = in_utf8(replace(very_sick(4), findings=very_sick(4).findings[:1])).splitlines()
    assert lines[lines.index("✗ error NC400 ib-port-polling  node01") + 3 :][:4] == [
        "    line 0 of node01",
        "    line 1 of node01",
        "    line 2 of node01",
        "  → fix on node01: sudo ibstat mlx5_0",
    ]


def test_the_headline_names_the_culprits_with_their_causes_and_says_whether_the_plan_can_be_used(
    reports: dict[str, Report],
) -> None:
    sick = reports["mixed_nccl"]
    assert in_utf8(sick).splitlines()[0] == (
        "✗ Not ready: node04: nccl version differs; 1 warning; launch plan usable once"
    )
    titled = replace(sick.findings[0], title="The NCCL version differs between nodes")
    assert in_a_pipe(replace(sick, findings=(titled,)))[0] == (
        "✗ Not ready: node04: the NCCL version differs between nodes; launch plan usable once this is fixed"
    )
    blocked = replace(sick, plan=replace(sick.plan, blockers=(Blocker("NC201 ...", ("node04",), "true", "NC201"),)))
    assert in_utf8(blocked).splitlines()[0].endswith("; launch plan not usable")
    assert "launch with mpirun (not usable: fix NC201 first):" in in_utf8(blocked).splitlines()
    only_warning = replace(sick, findings=sick.findings[1:])
    assert in_utf8(only_warning).splitlines()[0] == (
        "! Ready, with warnings: node02: mlx5_3 has no link; launch plan usable"
    )


def test_a_node_with_two_causes_is_named_once_and_many_culprits_are_counted() -> None:
    nodes = names(9)
    found = [
        Finding(f"NC1{place:02d}", "fault", Severity.ERROR, (one,), "", (), "true", summary=f"fault {place}")
        for place, one in enumerate([nodes[0], nodes[0], nodes[0], *nodes[1:]])
    ]
    assert in_utf8(report([node(one) for one in nodes], found, ())).splitlines()[:2] == [
        "✗ Not ready: node01: fault 0, fault 1 and 1 more; node02: fault 3; node03: fault",
        "  4; node04: fault 5; 5 more; launch plan usable once this is fixed",
    ]


def test_without_a_gpu_the_headline_says_that_only_cpu_checks_ran(reports: dict[str, Report]) -> None:
    first = in_utf8(replace(reports["healthy"], cpus_only=True)).splitlines()[:2]
    assert " ".join(line.strip() for line in first) == (
        "✓ Ready: 9 checks passed, 1 skipped; no GPU on any node, so only CPU checks ran; launch plan usable"
    )


def test_a_consequence_is_a_line_under_its_cause_and_neither_a_culprit_nor_counted_as_an_error() -> None:
    nodes = names(4)
    slow = Finding("NC710", "node-slow", Severity.ERROR, ("node03",), "slow with all", (), "true", summary="slow")
    low = Finding(
        "NC721", "bandwidth-far-too-low", Severity.ERROR, nodes, "164 of 350 GB/s", (), "true", see=("NC710",)
    )
    lines = in_utf8(report([node(one) for one in nodes], [slow, low], ())).splitlines()
    assert lines[0] == "✗ Not ready: node03: slow; launch plan usable once this is fixed"
    at = lines.index("✗ error NC710 node-slow  node03")
    assert lines[at + 3] == "    so also NC721 bandwidth-far-too-low  node[01-04]  164 of 350 GB/s"
    assert "  node03  NC710 slow" in lines
    assert "  the other 3 nodes are fine" in lines
    assert [line for line in lines if line.startswith("1 error, 0 warnings, 1 consequence · ")]


def test_a_consequence_of_a_consequence_is_a_line_under_the_first_cause() -> None:
    nodes = names(4)
    down = Finding("NC529", "nvlink-down", Severity.ERROR, ("node03",), "17 of 18", (), "true")
    fewer = replace(down, code="NC509", check="nvlinks-fewer", see=("NC529",))
    differs = replace(down, code="NC504", check="topology-differs", nodes=nodes, see=("NC509", "NC529"))
    lines = in_utf8(report([node(one) for one in nodes], [differs, fewer, down], ())).splitlines()
    at = lines.index("✗ error NC529 nvlink-down  node03")
    assert lines[at + 3] == "    so also NC504 topology-differs  node[01-04]  17 of 18"


def test_what_only_says_again_that_a_node_is_unreachable_is_not_printed(reports: dict[str, Report]) -> None:
    out = in_utf8(reports["one_down"])
    assert "NC001" not in out
    assert "  node04  NC112 connection filtered, unreachable, no other check ran\n" in out


def test_an_unknown_check_on_a_reached_node_is_a_line_with_its_reason(reports: dict[str, Report]) -> None:
    first, *others = reports["healthy"].verdicts
    unknown = replace(first, outcome=Outcome.UNKNOWN, reason="nvidia-smi ended with exit status 9")
    lines = in_utf8(replace(reports["healthy"], verdicts=(unknown, *others), exit_code=1)).splitlines()
    assert lines[0] == "? Not verified: 1 check unknown on node01; launch plan usable"
    assert "? node-not-reached unknown on node01: nvidia-smi ended with exit status 9" in lines
    assert "  node01  1 check unknown" in lines


def test_a_clean_run_says_what_was_looked_at(reports: dict[str, Report]) -> None:
    lines = in_a_pipe(MEASURED["healthy"](reports["healthy"]))
    assert [line for line in lines if line[:2] in ("✓ ", "- ")][1:-1] == [
        "✓ ssh         4 nodes reached, port 22, as ada",
        "✓ versions    the same on 4 nodes: NCCL 2.21.5, Open MPI 4.1.6",
        "✓ network     NCCL takes bond0",
        "✓ InfiniBand  32 ports Active at 400 Gb/s",
        "✓ GPUs        the same on 4 nodes: 8 x NVIDIA H100 80GB HBM3, driver 550.54.15",
        (
            "✓ measured    all-reduce on 4 nodes, 32 ranks, by NCCL 2.21.5: 381 of 400 GB/s expected (95 %): "
            "limited by the 8 x 400 Gb/s NICs"
        ),
    ]


def test_an_interrupted_run_is_one_line_with_what_was_found_so_far(reports: dict[str, Report]) -> None:
    healthy, sick = reports["healthy"], reports["mixed_nccl"]
    unknown = tuple(replace(one, outcome=Outcome.UNKNOWN, reason=INTERRUPTED) for one in healthy.verdicts)
    nodes = (*healthy.nodes[:2], *(replace(one, reached=False, cause="not-tried") for one in healthy.nodes[2:]))
    stopped = replace(healthy, nodes=nodes, verdicts=unknown, interrupted=True, exit_code=130)
    answer = "? Interrupted after 3.2 s: 2 of 4 nodes answered"
    assert in_a_pipe(stopped) == [
        answer, "  ncheck 0.1.0 · 4 nodes: node[01-04], 2 reached", "",
        "0 errors, 0 warnings · 3.2 s · -v shows all", "exit code 130: interrupted", answer,
    ]  # fmt: skip
    found = in_a_pipe(replace(stopped, findings=sick.findings[:1]))
    assert found[0] == f"{answer}; found so far: node04: nccl version differs"
    assert "✗ error NC201 nccl-version-differs  node04" in found


def test_where_to_read_more_and_how_to_let_a_finding_pass_are_printed_once(reports: dict[str, Report]) -> None:
    more = "to read more: ncheck explain NC201; to let it pass: --ignore NC201=node04"
    assert in_a_pipe(reports["mixed_nccl"]).count(more) == 1
    assert [line for line in in_a_pipe(reports["healthy"]) if "--ignore" in line or "ncheck explain" in line] == []


def test_what_was_measured_is_one_sentence(reports: dict[str, Report]) -> None:
    out = " ".join(in_utf8(slow_node(reports["healthy"])).split())
    assert " measured all-reduce on 4 nodes, 32 ranks, by NCCL 2.21.5: " in out


def test_time_place_user_and_command_are_below_the_answer(reports: dict[str, Report]) -> None:
    made = replace(
        reports["healthy"],
        time="2026-11-22T13:04:05+01:00",
        host="head",
        user="ada",
        command="ncheck nodes.txt -p 2222",
    )
    assert in_utf8(made).splitlines()[1:3] == [
        "  ncheck 0.1.0 · 4 nodes: node[01-04] · 2026-11-22 13:04:05+01:00 · ada@head:",
        "  ncheck nodes.txt -p 2222",
    ]


def test_a_fix_says_whether_it_mends_or_shows_and_where_to_type_it(reports: dict[str, Report]) -> None:
    assert "  → look on node02: ibstat mlx5_3\n" in in_utf8(reports["mixed_nccl"])
    assert "  → look on node01: cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -\n" in in_utf8(
        reports["host_key_changed"]
    )
    elsewhere = replace(reports["mixed_nccl"].findings[0], where="node01")
    assert "  → fix on node01: python3 -m pip" in in_utf8(replace(reports["mixed_nccl"], findings=(elsewhere,)))


def test_quiet_prints_the_headline_only(named_report: tuple[str, Report]) -> None:
    _, made = named_report
    stream = Screen(80)
    quiet.print_report(made, stream, {})
    answer = stream.getvalue()
    assert in_utf8(made).startswith(answer)
    assert in_utf8(made).endswith(answer)


def test_what_was_not_judged_has_no_tick(reports: dict[str, Report]) -> None:
    blind = in_a_pipe(replace(reports["healthy"], name_python="ncheck nodes.txt --python PATH"))
    assert [line for line in blind if line[2:].startswith("versions ")] == [
        (
            "? versions    the same on 4 nodes: NCCL 2.21.5, Open MPI 4.1.6; not judged: the Python of the job "
            "(here: ncheck nodes.txt --python PATH)"
        ),
    ]
    measured = MEASURED["healthy"](reports["healthy"])
    first = foremost(measured.measurements)
    assert first is not None
    assert first.protocol is not None
    unsure = replace(first, expected=None, standing=Standing.OK, protocol=replace(first.protocol, spread=0.27))
    for spread, mark in ((0.27, "·"), (0.02, "✓")):
        one = replace(unsure, protocol=replace(first.protocol, spread=spread))
        lines = in_a_pipe(replace(measured, measurements=(one,)))
        assert [line[0] for line in lines if line[2:].startswith("measured ")] == [mark]


def test_where_all_was_skipped_nothing_is_called_clean(reports: dict[str, Report]) -> None:
    skipped = tuple(replace(one, outcome=Outcome.SKIPPED, reason="none") for one in reports["healthy"].verdicts)
    lines = in_a_pipe(replace(reports["healthy"], verdicts=skipped))
    assert lines[-2:] == [
        "exit code 0: nothing failed, and no check passed", "? Not verified: no check passed; launch plan usable",
    ]  # fmt: skip


def test_of_many_nodes_it_says_which_share_of_the_links_was_tried(reports: dict[str, Report]) -> None:
    sampled = replace(reports["healthy"], mesh=MeshSample(39, 4095))
    (line,) = [line for line in topic_lines(sampled, ()) if line.topic == "network"]
    assert "each node dialled about 39 of 4,095 others" in line.text
