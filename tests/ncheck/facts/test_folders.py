"""The folders, from the answer to the fact; and what is no folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.folders import FOLDERS, Folder, FolderFacts
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

STATE: dict[str, JsonValue] = {
    "named_by": "", "exists": True, "writable": True, "read_only": False, "free": 7, "files_free": None,
}  # fmt: skip


def answer(**changed: JsonValue) -> JsonValue:
    usual: dict[str, JsonValue] = {name: {**STATE, "path": f"/{name}"} for name in ("home", "shm", "root")}
    return {**usual, "temporary": [{**STATE, "path": "/scratch", "named_by": "TMPDIR", "files_free": 3}], **changed}


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({FOLDERS: Reply(Status.OK, value=value)}), [FolderFacts])[FolderFacts]


def test_each_folder_is_read_with_its_state(answered: Answered) -> None:
    home, shm, root = (Folder(f"/{name}", free=7) for name in ("home", "shm", "root"))
    temporary = Folder("/scratch", "TMPDIR", free=7, files_free=3)
    assert read(answered, answer()) == FolderFacts((temporary,), home, shm, root)
    assert temporary.label == "/scratch (TMPDIR)"


def test_a_folder_that_could_not_be_asked_is_unread_alone(answered: Answered) -> None:
    facts = read(answered, answer(home={"path": "/home/me", "named_by": "", "error": "Stale file handle"}))
    assert isinstance(facts, FolderFacts)
    assert facts.home == Unread("/home/me: Stale file handle")


@pytest.mark.parametrize(
    "wrong",
    [
        {"temporary": []},
        {"temporary": None},
        {"home": None},
        {"home": {**STATE, "path": "home"}},
        {"home": {**STATE, "path": "/a\nb"}},
        {"home": {**STATE, "path": "/a", "named_by": "TMPDIR;reboot"}},
        {"home": {**STATE, "path": "/a", "free": -1}},
        {"home": {**STATE, "path": "/a", "writable": "yes"}},
        {"home": {**STATE, "path": "/a", "error": 7}},
    ],
)
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, answer(**wrong)), Unread)
