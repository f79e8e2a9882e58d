"""The lines that drain bad nodes, split as a shell splits them."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.report import BadNode, NodeSummary, Report
from ncheck.report import show

LINK = BadNode("node02", "NC402 ib-port-polling: mlx5_3", ("NC402", "NC220", "NC710"), proved=True)
LOST = BadNode("node04", "not reached: refused", (), reached=False, proved=True)
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
    drain = tuple(one.node for one in bad if one.proved)
    findings = tuple(
        Finding(code, name, Severity.ERROR, ("node02",), "m", (), "", hardware=True) for code, name in named.items()
    )
    return replace(report, bad=bad, findings=findings, drain=drain if len(drain) < len(report.nodes) else ())


def drains(report: Report) -> tuple[list[list[str]], list[str]]:
    commands, comments = read(report)
    return [
        command for command in commands if command[:2] == ["scontrol", "update"] and "state=drain" in command
    ], comments


def test_a_line_per_reason_in_one_word_each(reports: dict[str, Report]) -> None:
    commands, comments = drains(sick(reports["healthy"], replace(LINK, node="node01"), LINK, LOST))
    assert commands == [
        ["scontrol", "update", "nodename=node[01-02]", "state=drain",
         "reason=ncheck: NC402 ib-port-polling, NC710 node-slow"],
        ["scontrol", "update", "nodename=node04", "state=drain", "reason=ncheck: not reached"],
    ]  # fmt: skip
    assert comments[2:] == ["# Give back what ncheck drained before, and what passes now:"]


def test_a_healthy_cluster_loses_nobody(reports: dict[str, Report]) -> None:
    assert drains(reports["healthy"])[0] == []


def test_a_node_is_not_drained_because_a_check_could_not_run(reports: dict[str, Report]) -> None:
    commands, comments = drains(sick(reports["healthy"], DARK))
    assert commands == []
    assert comments[2] == "# not drained, unknown: node03: NC501"


@pytest.mark.parametrize("form", ["slurm", "kubernetes"])
@pytest.mark.parametrize("bad", [(LINK, LOST), (LINK, DARK), (DARK,)])
def test_no_word_of_a_node_is_run_or_printed_where_a_shell_has_no_comments(
    form: str, bad: tuple[BadNode, ...], reports: dict[str, Report], tmp_path: Path
) -> None:
    """An interactive zsh, and bash with this option, take `#` for a command, and what follows a semicolon for one."""
    word = "no ' ; touch RAN; $(touch RAN) `touch RAN` \n touch RAN\n&& touch RAN | touch RAN > RAN #"
    report = sick(reports["healthy"], *(replace(one, reason=word) for one in bad))
    findings = tuple(replace(one, message=word, summary=word, evidence=(word,), fix=word) for one in report.findings)
    report = replace(report, findings=findings, dropped={"node09": word}, news=(word,))
    stream = io.StringIO()
    show(report, form, stream, {})
    assert "RAN" not in stream.getvalue()
    assert not set("';|&$`<>(){}!*?~\"\\").intersection(
        *[line for line in stream.getvalue().splitlines() if line[0] == "#"]
    )
    subprocess.run(
        ["bash", "--norc", "--noprofile", "-i", "+O", "interactive_comments"], input=stream.getvalue(), text=True,
        env={"PATH": os.environ["PATH"]}, cwd=tmp_path, capture_output=True, check=False, start_new_session=True,
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_proved_to_be_the_fault_of_the_node_is_a_comment(reports: dict[str, Report]) -> None:
    key = BadNode("node01", "not reached: host-key-unknown", ("NC117",), reached=False)
    folder = BadNode("node03", "NC223 workdir-missing", ("NC223", "NC316"))
    commands, comments = drains(sick(reports["healthy"], key, LINK, folder))
    assert [command[2] for command in commands] == ["nodename=node02"]
    assert comments[2:4] == [
        "# not drained, no fault of the node is proved: node01: NC117",
        "# not drained, no fault of the node is proved: node03: NC223, NC316",
    ]


@pytest.mark.parametrize(("by_peers", "words"), [
    (True, "not reached from here, but other nodes reach it"),
    (None, "not reached from here, and no other node was asked"),
])  # fmt: skip
def test_a_node_that_may_only_be_cut_off_from_here_is_held_back(
    by_peers: bool | None,  # noqa: FBT001
    words: str,
    reports: dict[str, Report],
) -> None:
    report = sick(reports["healthy"], replace(LOST, proved=False))
    lost = replace(report.nodes[3], reached=False, cause="filtered", peers_reach=by_peers)
    commands, comments = drains(replace(report, nodes=(*report.nodes[:3], lost)))
    assert (commands, comments[2]) == ([], f"# not drained, no fault of the node is proved: node04: {words}")


def test_where_every_node_is_bad_nothing_is_ready_to_run(reports: dict[str, Report]) -> None:
    every = tuple(replace(LOST, node=node.name) for node in reports["healthy"].nodes)
    commands, comments = drains(sick(reports["healthy"], *every))
    assert (commands, comments[2:]) == ([], ["# Every node is bad: look for one cause before you drain them all."])


def test_a_node_by_itself_can_be_drained(reports: dict[str, Report]) -> None:
    alone = replace(sick(reports["healthy"], LINK), nodes=(NodeSummary("node02", reached=True),))
    assert len(drains(alone)[0]) == 1


def test_the_brake_says_who_is_held_back(reports: dict[str, Report]) -> None:
    report = replace(sick(reports["healthy"], LINK, LOST), drain=("node02",))
    commands, comments = drains(report)
    assert [command[2] for command in commands] == ["nodename=node02"]
    assert comments[2] == "# held back, bad too: node04, --max-drain allows 1 of 4 nodes"


@pytest.mark.parametrize("select", [(), ("NC4",)])
@pytest.mark.parametrize("form", ["slurm", "kubernetes"])
def test_a_node_is_given_back_that_ncheck_drained_and_that_passed_those_checks(
    form: str, select: tuple[str, ...], reports: dict[str, Report], tmp_path: Path
) -> None:
    """The script is run, with programs that answer as Slurm's and Kubernetes' do, and that write down what they do.

    After a run of some checks, that a node is reached does not give it back.
    """
    verdicts = (
        Verdict("ib-port-polling", "NC402", ("node01", "node02", "node03"), Outcome.PASSED),
        Verdict("node-slow", "NC710", ("node01",), Outcome.PASSED),
        Verdict("node-slow", "NC710", ("node02", "node03"), Outcome.SKIPPED, "not measured"),
    )
    report = replace(
        sick(reports["healthy"], LOST), verdicts=verdicts, drain=(), select=select,
        nodes=(*reports["healthy"].nodes, *(NodeSummary(f"node{number:02}", reached=True) for number in (5, 6, 7))),
    )  # fmt: skip
    drained = {
        "node01": "NC402 ib-port-polling, NC710 node-slow", "node02": "NC402 ib-port-polling, NC710 node-slow",
        "node03": "NC402 ib-port-polling", "node05": "not reached", "node06": "X12 fan-slow",
        "node07": "",
    }  # fmt: skip
    for node, reason in drained.items():
        (tmp_path / node).write_text(
            f"NodeName={node} State=IDLE+DRAIN Reason=ncheck: {reason} [root@2026-11-26T10:00:00]\n" if form == "slurm"
            else ".".join(word for word in reason.split() if word == "reached" or word[-1].isdecimal())
        )  # fmt: skip
    (tmp_path / "node03").write_text("Reason=disk [anna@2026-11-26T10:00:00]\n" if form == "slurm" else "")
    programs = {
        "scontrol": f"case $1$2$3 in -oshownode) cat {tmp_path}/$4 ;; showhostnamesnode01) echo node01 ;; "
        "showhostnamesnode*02-03*) echo node02; echo node03 ;; showhostnamesnode*05-07*) "
        "echo node05; echo node06; echo node07 ;; "
        f"*) echo $* >> {tmp_path}/done ;; esac",
        "kubectl": f"case $1 in get) cat {tmp_path}/$3 ;; *) echo $* >> {tmp_path}/done ;; esac",
    }
    for name, text in programs.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    stream = io.StringIO()
    show(report, form, stream, {})
    done = subprocess.run(
        ["/bin/sh"], input=stream.getvalue(), env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True, text=True,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert done.stderr == ("node07: not given back: its reason names no check\n" if form == "slurm" else "")
    assert (tmp_path / "done").read_text().splitlines() == [
        line
        for node in (*(() if select else ("node05",)), "node01")
        for line in {
            "slurm": [f"update nodename={node} state=resume"],
            "kubernetes": [f"uncordon {node}", f"label node {node} ncheck-drained-"],
        }[form]
    ]


def test_bad_nodes_are_cordoned_with_their_codes(reports: dict[str, Report]) -> None:
    stream = io.StringIO()
    show(sick(reports["healthy"], LINK, LOST), "kubernetes", stream, {})
    commands = [line for line in stream.getvalue().splitlines() if line.startswith("kubectl")]
    assert commands == [
        "kubectl cordon node02", "kubectl label --overwrite node node02 ncheck-drained=NC402.NC710",
        "kubectl cordon node04", "kubectl label --overwrite node node04 ncheck-drained=reached",
    ]  # fmt: skip
