"""The job's code on real nodes, each with its own clone, and what a person's shell finds there."""

from __future__ import annotations

from .hosts import Lab
from .promises import examined

CLONE = """
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
git init -q -b main /opt/code
echo 'print(1)' > /opt/code/train.py
git -C /opt/code add .
git -C /opt/code commit -q -m first
"""


def test_equal_clones_are_the_same_code_and_their_commit_can_be_expected(lab: Lab) -> None:
    for node in lab.nodes[:2]:
        node.sh(CLONE)
    (commit,) = {node.sh("git -C /opt/code rev-parse HEAD").stdout.strip() for node in lab.nodes[:2]}

    asked = ("--workdir", "/opt/code", "--expect", f"commit={commit[:7]}", "--select", "NC2,NC9")
    run = examined(lab, *asked, nodes=lab.names[:2])

    assert (run.exit_code, run.failed()) == (0, {})
    assert {commit} == {system["commit"] for system in run.report["systems"]}


def test_an_edit_another_commit_and_a_missing_folder_are_named_on_their_nodes(lab: Lab) -> None:
    for node in lab.nodes[:3]:
        node.sh(CLONE)
    lab.nodes[0].sh("echo 'print(2)' > /opt/code/train.py")

    run = examined(lab, "--workdir", "/opt/code", "--select", "NC220,NC223")

    assert run.failed() == {"NC220": {"node01"}, "NC223": {"node04"}}, run.not_passed("node01")
    (found,) = [one for one in run.report["findings"] if one["code"] == "NC220"]
    assert found["message"].endswith(": train.py")


def test_a_copy_without_git_is_compared_with_clones(lab: Lab) -> None:
    for node in lab.nodes[:3]:
        node.sh(CLONE)
    lab.nodes[2].sh("rm -r /opt/code/.git")
    assert examined(lab, "--workdir", "/opt/code", "--select", "NC220", nodes=lab.names[:3]).exit_code == 0

    lab.nodes[2].sh("echo 'print(3)' > /opt/code/train.py")
    run = examined(lab, "--workdir", "/opt/code", "--select", "NC220", nodes=lab.names[:3])
    assert run.failed() == {"NC220": {"node03"}}
