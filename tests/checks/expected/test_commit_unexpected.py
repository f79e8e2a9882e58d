"""NC906: the expected commit, and nothing changed since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.code import CodeFacts
from ncheck.facts.expected import ExpectedFacts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.expected.commit_unexpected import commit_unexpected as check

from tests.checks.expected.nodes import said

CODE = CodeFacts("/code", commit="97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d", branch="main")
DIRTY = replace(CODE, changed={"train.py": "11", "lib.py": ""})
UNASKED = replace(CODE, unasked="no git on PATH")


def test_code_at_another_commit_is_an_error() -> None:
    node = {"n1": {ExpectedFacts: ExpectedFacts(commit="cf30153"), CodeFacts: replace(CODE, folder="/my code")}}
    assert judge([check], node).findings == [
        Finding("NC906", "commit-unexpected", Severity.ERROR, ("n1",),
                "/my code: 97ff6cfd9c86 (main), expected cf30153", (), "git -C '/my code' status --short --branch",
                kind="look", summary="unexpected commit"),
    ]  # fmt: skip


def test_changed_files_are_named() -> None:
    node = {"n1": {ExpectedFacts: ExpectedFacts(commit="97ff6cf"), CodeFacts: DIRTY}}
    assert said(judge([check], node)) == (
        "failed", ["/code is at 97ff6cfd9c86 (main), with 2 changed files: lib.py, train.py"],
    )  # fmt: skip


def test_it_is_silent_at_the_expected_commit() -> None:
    node = {"n1": {ExpectedFacts: ExpectedFacts(commit="97ff6cf"), CodeFacts: CODE}}
    assert said(judge([check], node)) == ("passed", [""])


@pytest.mark.parametrize(
    ("expected", "code", "outcome", "words"),
    [
        ("97ff6cf", CodeFacts("/code"), "failed", "/code: no git commit, expected 97ff6cf"),
        ("97ff6cf", UNASKED, "unknown", "whether files were changed since 97ff6cf is unknown: no git on PATH"),
        ("97ff6cf", replace(UNASKED, commit=""), "unknown", "the commit is unknown: no git on PATH"),
        ("97ff6cf", Unread("it hangs"), "unknown", "it hangs"),
        ("97ff6cf", Absent("no --workdir"), "unknown", "no --workdir"),
        ("97ff6cf", CodeFacts("/code", exists=False), "skipped", "/code does not exist: see NC223"),
        (None, DIRTY, "skipped", "no commit is expected: --expect commit=abc1234"),
    ],
)
def test_the_commit_is_compared(
    expected: str | None, code: CodeFacts | Absent | Unread, outcome: str, words: str
) -> None:
    node = {"n1": {ExpectedFacts: ExpectedFacts(commit=expected), CodeFacts: code}}
    assert said(judge([check], node)) == (outcome, [words])
