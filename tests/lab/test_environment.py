"""The job's environment is entered on real nodes: --python, --setup, --enter, --rsh."""

from __future__ import annotations

from .command import Run, Running, listing
from .hosts import Lab
from .layers import PACKAGES, ROOT
from .promises import HANGS, PATIENT, examined

OF_PYTHON = ("--select", "NC0,NC12,NC2")


def test_python_names_the_interpreter_that_is_asked_and_a_node_that_lacks_it_is_named(lab: Lab) -> None:
    for node in lab.nodes[1:3]:
        node.sh("python3 -m venv --without-pip --system-site-packages /opt/job")

    run = examined(lab, "--python", "/opt/job/bin/python3", *OF_PYTHON, nodes=lab.names[:3])

    assert run.exit_code == 1
    assert {node for nodes in run.failed().values() for node in nodes} == {"node01"}, run.failed()
    asked = {node["name"]: node["interpreter"] for node in run.report["nodes"] if node["name"] != "node01"}
    assert asked == dict.fromkeys(lab.names[1:3], "/opt/job/bin/python3 3.11.2 (--python)")
    assert [run.unknown(name) for name in asked] == [set()] * 2


TRAIN = "/opt/train"  # where torch lies, and nowhere else


def test_torch_outside_the_logins_python_is_found_where_this_shell_has_it(lab: Lab) -> None:
    for node in lab.nodes:
        node.sh(f"python3 -m venv --without-pip {TRAIN}; mv /{PACKAGES}/* {TRAIN}/lib/python3.11/site-packages/")

    def ran(*argv: str, active: bool) -> Run:
        environment = (f"VIRTUAL_ENV={TRAIN}",) if active else ()
        return Running(lab, ("nodes.txt", "--probe", "none", *PATIENT, *OF_PYTHON, *argv), ROOT, "", environment).wait(
            HANGS
        )

    listing(lab, lab.names[:2])
    unnamed = ran("-o", "json", active=False)
    assert (unnamed.exit_code, unnamed.failed(), unnamed.unknown("node01")) == (0, {}, set()), unnamed.not_passed(
        "node01"
    )
    assert unnamed.report["name_python"] == "ncheck nodes.txt --python PATH"
    assert unnamed.report["plan"]["blockers"] == []

    found = ran("-o", "json", active=True)
    assert (found.exit_code, found.failed(), found.outcomes()["unknown"]) == (0, {}, 0)
    assert found.report["name_python"] == ""
    assert {n["interpreter"] for n in found.report["nodes"]} == {f"{TRAIN}/bin/python3 3.11.2 (active venv)"}

    listing(lab, lab.names)
    _, old, home, bare = lab.nodes
    old.write("/opt/old/socket.py", "from past import socket\n")
    old.write("/root/.bashrc", "export PYTHONPATH=/opt/old\n")
    home.write("/root/.bashrc", "export PYTHONHOME=/nonexistent\n")
    bare.sh(f"mv {TRAIN} /opt/elsewhere")
    differing = ran("-o", "json", active=True)
    assert differing.exit_code == 1
    lacks = {code: {"node04"} for code in ("NC201", "NC206", "NC207")}
    assert differing.failed() == {**lacks, "NC224": {"node02", "node03"}}
    broken, missing = f"{TRAIN}/bin/python3 does not work with", "ModuleNotFoundError: No module named"
    assert [f["message"] for f in differing.report["findings"] if f["code"] == "NC224"] == [
        f"{broken} PYTHONPATH=/opt/old: {missing} 'past'",
        f"{broken} PYTHONHOME=/nonexistent: {missing} 'encodings'",
    ]
    assert {"NC206", "NC224"} <= {blocker["code"] for blocker in differing.report["plan"]["blockers"]}
    assert differing.unknown("node02") == differing.unknown("node03") == set()


def test_setup_runs_before_all_else_and_what_it_sets_counts_and_where_it_fails_the_node_is_named(lab: Lab) -> None:
    for node in lab.nodes[:3]:
        node.sh("python3 -m venv --without-pip --system-site-packages /opt/job")
    lab.nodes[1].sh("touch /opt/broken")

    setup = "source /opt/job/bin/activate; echo loaded; test ! -e /opt/broken"
    run = examined(lab, "--setup", setup, *OF_PYTHON, nodes=lab.names[:3])

    assert run.failed() == {"NC126": {"node02"}}, run.not_passed("node02")
    entered = {node["name"]: node["interpreter"] for node in run.report["nodes"] if node["name"] != "node02"}
    assert entered == dict.fromkeys(("node01", "node03"), "/opt/job/bin/python3 3.11.2 (active venv)")
    assert run.unknown("node01") == run.unknown("node03") == set()


def test_enter_goes_into_the_container_on_every_node(lab: Lab) -> None:
    run = examined(lab, "--enter", "unshare --uts -- env HOSTNAME=inside", *OF_PYTHON, nodes=lab.names[:2])

    assert run.exit_code == 0, run.failed()


def test_enter_that_cannot_be_run_is_named_and_the_login_still_counts(lab: Lab) -> None:
    run = examined(lab, "--enter", "docker exec -i train", nodes=lab.names[:2])

    assert run.failed() == {"NC126": set(lab.names[:2])}
    assert [n["reached"] for n in run.report["nodes"]] == [True] * 2


# As kubectl exec does: it runs the words that it is given on the node, whatever is in them.
EXEC = """#!/bin/bash
node=$1
shift
exec ssh -q -p 10001 "$node" "${*@Q}"
"""


def test_rsh_stands_in_for_ssh(lab: Lab, healthy: Run) -> None:
    with lab.file_on_head("root/exec", EXEC, 0o755):
        run = examined(lab, "--rsh", "/root/exec {node}", nodes=lab.names[:2])

    told = run.verdicts()
    unasked = {pair for pair, outcome in told.items() if outcome == "skipped"} - set(_skipped(healthy))
    of_ssh = {f"NC{number}" for number in (*range(110, 124), 134, 136, 137, 140, 190, 191, 229)}
    assert {code for code, _ in unasked} == of_ssh, "no SSH, so none is healthy"
    by_ssh = {pair: outcome for pair, outcome in healthy.verdicts(*lab.names[:2]).items() if pair not in unasked}
    # mpirun is taken to be started on the first node, whose logins to the others count then.
    assert {pair: told[pair] for pair in told.keys() - unasked} == {**by_ssh, ("NC131", "node01"): "passed"}
    assert {n["transport"] for n in run.report["nodes"]} == {"rsh"}


def _skipped(run: Run) -> list[tuple[str, str]]:
    return [pair for pair, outcome in run.verdicts().items() if outcome == "skipped"]
