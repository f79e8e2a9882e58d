"""The lines that drain bad nodes, split as a shell splits them."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace

from ncheck.model.finding import Finding, Severity
from ncheck.model.report import BadNode, NodeSummary, Report
from ncheck.report import show

LINK = BadNode("node02", "NC402 ib-port-polling: mlx5_3", ("NC402", "NC710"))
LOST = BadNode("node04", "not reached: refused", (), reached=False)
DARK = BadNode("node03", "NC501 gpu-count-differs unknown: $(reboot)\nreboot", ("NC501",), unknown=True)


def read(report: Report) -> tuple[list[list[str]], list[str]]:
    """Return the commands, each as its words, and the comments."""
    stream = io.StringIO()
    assert show(report, "slurm", stream, {}) == report.exit_code
    lines = stream.getvalue().splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    return [command for command in commands if command], [line for line in lines if line.startswith("#")]


def sick(report: Report, *bad: BadNode) -> Report:
    named = {"NC402": "ib-port-polling", "NC710": "node-slow"}
    findings = tuple(Finding(code, name, Severity.ERROR, ("node02",), "m", (), "") for code, name in named.items())
    return replace(report, bad=bad, findings=findings)


def test_a_line_per_reason_in_one_word_each(reports: dict[str, Report]) -> None:
    commands, comments = read(sick(reports["healthy"], replace(LINK, node="node01"), LINK, LOST))
    assert commands == [
        ["scontrol", "update", "nodename=node[01-02]", "state=drain",
         "reason=ncheck: NC402 ib-port-polling, NC710 node-slow"],
        ["scontrol", "update", "nodename=node04", "state=drain", "reason=ncheck: not reached"],
    ]  # fmt: skip
    assert len(comments) == 2


def test_a_healthy_cluster_loses_nobody(reports: dict[str, Report]) -> None:
    assert read(reports["healthy"])[0] == []


def test_a_node_is_not_drained_because_a_check_could_not_run_and_its_words_stay_a_comment(
    reports: dict[str, Report],
) -> None:
    commands, comments = read(sick(reports["healthy"], DARK))
    assert commands == []
    assert comments[2] == "# not drained, node03 is unknown: NC501 gpu-count-differs unknown: $(reboot) reboot"


def test_where_every_node_is_bad_nothing_is_ready_to_run(reports: dict[str, Report]) -> None:
    every = tuple(replace(LOST, node=node.name) for node in reports["healthy"].nodes)
    commands, comments = read(sick(reports["healthy"], *every))
    assert (commands, comments[2:]) == ([], [
        "# Every node is bad: look for one cause before you drain them all.",
        "# scontrol update 'nodename=node[01-04]' state=drain 'reason=ncheck: not reached'",
    ])  # fmt: skip


def test_a_node_by_itself_can_be_drained(reports: dict[str, Report]) -> None:
    alone = replace(sick(reports["healthy"], LINK), nodes=(NodeSummary("node02", reached=True),))
    assert len(read(alone)[0]) == 1
