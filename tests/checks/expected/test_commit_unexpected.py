"""NC906: the expected commit, and nothing changed since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.code import CodeFacts
from ncheck.facts.expected import ExpectedFacts
from ncheck.judge import judge
from ncheck.model.fact import Absent, Unread
from ncheck_checks.expected.commit_unexpected import commit_unexpected as check

from tests.checks.expected.nodes import said

CODE = CodeFacts("/code", commit="97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d", branch="main")
DIRTY = replace(CODE, changed={"train.py": "11", "lib.py": ""})
UNASKED = replace(CODE, unasked="no git on PATH")


@pytest.mark.parametrize(
    ("expected", "code", "outcome", "words"),
    [
        ("cf30153", CODE, "failed", "/code: 97ff6cfd9c86 (main), expected cf30153"),
        ("97ff6cf", CodeFacts("/code"), "failed", "/code: no git commit, expected 97ff6cf"),
        ("97ff6cf", DIRTY, "failed", "/code is at 97ff6cfd9c86 (main), with 2 changed files: lib.py, train.py"),
        ("97ff6cf", UNASKED, "unknown", "whether files were changed since 97ff6cf is unknown: no git on PATH"),
        ("97ff6cf", Unread("it hangs"), "unknown", "it hangs"),
        ("97ff6cf", Absent("no --workdir"), "unknown", "no --workdir"),
        ("97ff6cf", CodeFacts("/code", exists=False), "skipped", "/code does not exist: see NC223"),
        ("97ff6cf", CODE, "passed", ""),
        (None, DIRTY, "skipped", "no commit is expected: --expect commit=abc1234"),
    ],
)
def test_the_commit_is_compared(
    expected: str | None, code: CodeFacts | Absent | Unread, outcome: str, words: str
) -> None:
    node = {"n1": {ExpectedFacts: ExpectedFacts(commit=expected), CodeFacts: code}}
    assert said(judge([check], node)) == (outcome, [words])
