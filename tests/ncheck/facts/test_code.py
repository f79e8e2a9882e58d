"""The job's code: the answer of the agent becomes a fact, or a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.code import CODE, CodeFacts, code
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent

Answered = Callable[[Mapping[Source, Reply]], Evidence]
COMMIT = "97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d"
GIT: dict[str, Any] = {"commit": COMMIT, "branch": "main", "changed": {"a.py": "0a"}, "error": ""}
TREE: dict[str, Any] = {"digest": "ab12", "cut": "", "listed": {"a.py": "0a"}}
SAID: dict[str, Any] = {"folder": "/home/ann/code", "exists": True, "git": GIT, "tree": TREE}


def test_a_repository_is_read(answered: Answered) -> None:
    fact = code(answered({CODE: Reply(Status.OK, value=SAID)}))
    assert fact == CodeFacts(
        "/home/ann/code", commit=COMMIT, branch="main", changed={"a.py": "0a"}, digest="ab12", listed={"a.py": "0a"}
    )
    assert (fact.described, fact.clean) == ("97ff6cfd9c86 (main)", False)


def test_a_folder_without_git_and_one_that_is_not_there(answered: Answered) -> None:
    plain, gone = {**SAID, "git": None}, {**SAID, "exists": False, "git": None, "tree": None}
    assert [code(answered({CODE: Reply(Status.OK, value=value)})) for value in (plain, gone)] == [
        CodeFacts("/home/ann/code", digest="ab12", listed={"a.py": "0a"}),
        CodeFacts("/home/ann/code", exists=False),
    ]


def test_a_node_that_was_not_asked_has_no_code(answered: Answered) -> None:
    reply = Reply(Status.NOT_ASKED, reason="no folder of code was named: --workdir DIR")
    assert code(answered({CODE: reply})) == Absent("no folder of code was named: --workdir DIR")


@pytest.mark.parametrize(
    "wrong",
    [
        {"folder": "--flush"},
        {"folder": "/a\nb"},
        {"tree": None},
        {"git": {**GIT, "commit": "$(reboot)"}},
        {"git": {**GIT, "changed": {"a": "x"}}},
        {"tree": {**TREE, "digest": "; ls"}},
        {"tree": {**TREE, "listed": {"a": "-"}}},
    ],
)
def test_what_is_no_path_commit_or_digest_is_no_fact(answered: Answered, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not an absolute path|without a digest|no commit"):
        code(answered({CODE: Reply(Status.OK, value={**SAID, **wrong})}))
