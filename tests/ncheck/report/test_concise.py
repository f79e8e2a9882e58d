"""One line per finding, never wrapped: for grep, an editor, a chat."""

from __future__ import annotations

import io
from dataclasses import replace

from ncheck.model.report import Report
from ncheck.report import show

from .test_html import evil


def lines_of(report: Report) -> list[str]:
    stream = io.StringIO()
    show(report, "concise", stream, {"COLUMNS": "40"})
    return stream.getvalue().splitlines()


def test_each_finding_is_a_line_and_the_answer_the_last(reports: dict[str, Report]) -> None:
    assert lines_of(reports["host_key_changed"]) == [
        (
            "node01: NC118 host-key-changed: node01 shows another host key than ~/.ssh/known_hosts line 12 has: "
            "reinstalled, or not the host it says it is [error, look]"
        ),
        "node01: NC001 node-not-reached: node01 was not reached: host-key-changed [consequence, fix]",
        "1 error, 0 warnings, 1 consequence; 1 with a fix, 1 with a command that shows more; -o console shows them",
        "ncheck 0.1.0 · 4 nodes: node[01-04], 3 reached",
        "Not ready: node01: host key changed; launch plan usable once this is fixed",
    ]


def test_a_set_of_nodes_is_whole_however_long_it_is(reports: dict[str, Report]) -> None:
    odd = ",".join(f"n{number}x" for number in range(60))
    (finding,) = reports["mixed_nccl"].findings[:1]
    nodes = tuple(odd.split(","))
    first = lines_of(replace(reports["mixed_nccl"], findings=(replace(finding, nodes=nodes),)))[0]
    assert first.startswith(f"n[0-59]x: {finding.code} ")


def test_a_healthy_cluster_is_its_origin_and_the_answer(reports: dict[str, Report]) -> None:
    (_, line) = lines_of(reports["healthy"])
    assert line.startswith("Ready: ")


def test_what_was_not_checked_is_said(reports: dict[str, Report]) -> None:
    lines = lines_of(reports["all_unknown"])
    assert lines[0] == "not checked: node[01-04] not reached (deadline): 10 checks not run"


def test_what_a_node_wrote_adds_no_line(reports: dict[str, Report]) -> None:
    for report in (reports["hostile"], evil(reports["healthy"])):
        lines = lines_of(report)
        assert all(line.isprintable() for line in lines)
        assert [line.partition(":")[0] for line in lines[:-3]] in (["node02", "node01"], ["node01", "not checked"])
