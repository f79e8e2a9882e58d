"""Workflow commands, read by the rules of GitHub's runner."""

from __future__ import annotations

import io
from dataclasses import replace

from ncheck.model.report import Report
from ncheck.report import show

from .test_html import HOSTILE, evil

UNESCAPED = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


def read(report: Report) -> list[tuple[str, str, str]]:
    """Return command, title and message of each line, as the runner parses it; it prints what is no command."""
    stream = io.StringIO()
    assert show(report, "github", stream, {}) == report.exit_code
    commands = []
    for line in stream.getvalue().splitlines():
        assert line.startswith("::")
        head, _, data = line[2:].partition("::")
        name, _, properties = head.partition(" ")
        values = dict(one.split("=", 1) for one in properties.split(","))
        assert list(values) == ["title"]
        commands.append((name, unescaped(values["title"]), unescaped(data)))
    return commands


def unescaped(text: str) -> str:
    for code, sign in UNESCAPED.items():
        text = text.replace(code, sign)
    return text


def test_the_answer_comes_first_and_then_the_worst(reports: dict[str, Report]) -> None:
    first, nccl, ib = read(reports["mixed_nccl"])
    assert first[:2] == ("notice", "ncheck")  # the errors are the causes, and as many
    assert first[2].startswith("Not ready: ")
    path = "/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
    assert nccl == (
        "error", "NC201 nccl-version-differs on node04",
        (
            "NCCL differs: 2.21.5 on node[01-03], 2.18.3 on node04 (3 to 1)\n"
            f"  2.21.5 from {path} on node[01-03]\n  2.18.3 from {path} on node04\n"
            "fix on node04: python3 -m pip install nvidia-nccl-cu12==2.21.5"
        ),
    )  # fmt: skip
    assert ib[:2] == ("warning", "NC402 ib-port-polling on node02")


def test_what_follows_from_a_cause_is_in_its_annotation(reports: dict[str, Report]) -> None:
    _, (command, title, text) = read(reports["one_down"])
    assert (command, title) == ("error", "NC112 connection-filtered on node04")
    assert text.splitlines()[-1].startswith("so also NC001 node-not-reached  node04  ")


def test_what_could_not_be_checked_is_one_line_per_cause(reports: dict[str, Report]) -> None:
    lost = ("error", "Not checked", "node[01-04] not reached (deadline): 10 checks not run")
    assert read(reports["all_unknown"])[1:] == [lost]
    accepted = read(replace(reports["all_unknown"], fail_on=("error",)))
    assert [command for command, *_ in accepted] == ["notice", "warning"]


def test_a_thousand_nodes_are_a_few_lines(reports: dict[str, Report]) -> None:
    assert [command for command, *_ in read(reports["thousand_lost"])] == ["notice", "error"]


def test_what_a_node_wrote_is_no_command(reports: dict[str, Report]) -> None:
    report = evil(reports["healthy"])
    (finding,) = report.findings
    mean = replace(finding, message="a\r\n::add-mask::b 100%0A", nodes=("x,y::z",), evidence=("::stop-commands::x",))
    (_, *found) = read(replace(report, findings=(finding, mean)))
    assert found[0][2].startswith(HOSTILE.replace("\u202e", "?"))
    assert found[1][1] == "NC201 nccl-version-differs on x,y::z"
    assert found[1][2].splitlines()[:2] == ["a ::add-mask::b 100%0A", "  ::stop-commands::x"]
