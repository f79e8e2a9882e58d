"""The job's environment is entered on real nodes: --python, --setup, --enter, --rsh."""

from __future__ import annotations

from .command import Run
from .hosts import Lab
from .promises import examined


def test_python_names_the_interpreter_that_is_asked(lab: Lab) -> None:
    for node in lab.nodes[:2]:
        node.sh("python3 -m venv --without-pip --system-site-packages /opt/job")

    run = examined(lab, "--python", "/opt/job/bin/python3", nodes=lab.names[:2])

    assert run.exit_code == 0, run.failed()
    assert {n["interpreter"] for n in run.report["nodes"]} == {"/opt/job/bin/python3 3.11.2 (--python)"}


def test_an_interpreter_that_one_node_lacks_is_named_there(lab: Lab) -> None:
    for node in lab.nodes[1:]:
        node.sh("python3 -m venv --without-pip --system-site-packages /opt/job")

    run = examined(lab, "--python", "/opt/job/bin/python3")

    assert run.exit_code == 1
    assert {node for nodes in run.failed().values() for node in nodes} == {"node01"}, run.failed()


def test_setup_runs_before_all_else_and_what_it_sets_counts(lab: Lab) -> None:
    for node in lab.nodes[:2]:
        node.sh("python3 -m venv --without-pip --system-site-packages /opt/job")

    run = examined(lab, "--setup", "source /opt/job/bin/activate; echo loaded", nodes=lab.names[:2])

    assert run.exit_code == 0, run.failed()
    assert {n["interpreter"] for n in run.report["nodes"]} == {"/opt/job/bin/python3 3.11.2 (active venv)"}


def test_a_setup_that_fails_on_one_node_is_named(lab: Lab) -> None:
    lab.nodes[1].sh("touch /opt/broken")

    run = examined(lab, "--setup", "test ! -e /opt/broken", nodes=lab.names[:2])

    assert run.failed() == {"NC126": {"node02"}}, run.told("node02")


def test_enter_goes_into_the_container_on_every_node(lab: Lab) -> None:
    run = examined(lab, "--enter", "unshare --uts -- env HOSTNAME=inside", nodes=lab.names[:2])

    assert run.exit_code == 0, run.failed()


def test_enter_that_cannot_be_run_is_named_and_the_login_still_counts(lab: Lab) -> None:
    run = examined(lab, "--enter", "docker exec -i train")

    assert run.failed() == {"NC126": set(lab.names)}
    assert [n["reached"] for n in run.report["nodes"]] == [True] * 4


# As kubectl exec does: it runs the words that it is given on the node, whatever is in them.
EXEC = """#!/bin/bash
node=$1
shift
exec ssh -q -p 10001 "$node" "${*@Q}"
"""


def test_rsh_stands_in_for_ssh(lab: Lab, healthy: Run) -> None:
    with lab.file_on_head("root/exec", EXEC, 0o755):
        run = examined(lab, "--rsh", "/root/exec {node}")

    told = run.verdicts()
    unasked = {pair for pair, outcome in told.items() if outcome == "skipped"} - set(_skipped(healthy))
    of_ssh = {f"NC{number}" for number in (*range(110, 124), 134, 136, 137)}
    assert {code for code, _ in unasked} == of_ssh, "no SSH, so none is healthy"
    by_ssh = {pair: outcome for pair, outcome in healthy.verdicts().items() if pair not in unasked}
    # mpirun is taken to be started on the first node, whose logins to the others count then.
    assert {pair: told[pair] for pair in told.keys() - unasked} == {**by_ssh, ("NC131", "node01"): "passed"}
    assert {n["transport"] for n in run.report["nodes"]} == {"rsh"}


def _skipped(run: Run) -> list[tuple[str, str]]:
    return [pair for pair, outcome in run.verdicts().items() if outcome == "skipped"]
