"""The job's file systems, from the answer to the fact; what is asked of the nodes; and what is no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.storage import FACTS, STORAGE, FileSystem, JobFolder, MountState, StorageFacts, dead
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread
from ncheck.model.node import Node
from ncheck.settings import RunContext, Settings

Answered = Callable[[Mapping[Any, Reply]], Evidence]

MOUNT: dict[str, JsonValue] = {
    "point": "/data", "type": "nfs4", "source": "fs01:/export", "root": "/sub", "options": "rw,relatime",
    "network": True, "super_options": "rw,vers=4.2,rsize=1048576,hard,clientaddr=10.0.0.3,addr=10.0.0.1",
}  # fmt: skip
STATE: dict[str, JsonValue] = {
    "error": "", "real": "/data", "exists": True, "readable": True, "writable": False, "size": 9,
    "free": 7, "files_free": None, "inode": 2, "changed": 1,
}  # fmt: skip
FOLDER: dict[str, JsonValue] = {"path": "/data", "named_by": "--data", "on": MOUNT, "state": STATE}
DATA = FileSystem("/data", "nfs4", "fs01:/export/sub", ("hard", "rw", "vers=4.2"), network=True)


def answer(**changed: JsonValue) -> JsonValue:
    usual: dict[str, JsonValue] = {
        "folders": [FOLDER], "mounts": [], "forced": [], "root": False,
    }  # fmt: skip
    return {**usual, **changed}


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({STORAGE: Reply(Status.OK, value=value)}), [StorageFacts])[StorageFacts]


def test_folders_and_mounts_are_read_with_their_state(answered: Answered) -> None:
    disk = {**MOUNT, "type": "ext4", "source": "/dev/sda1", "point": "/x", "super_options": "ro", "network": False}
    facts = read(answered, answer(mounts=[{**MOUNT, "state": None}], forced=[disk]))
    assert facts == StorageFacts(
        (JobFolder("/data", "--data", DATA, writable=False, size=9, free=7, inode=2, changed=1),),
        (MountState(DATA, hangs=True),),
        (FileSystem("/x", "ext4", "/dev/sda1", ("ro",)),),
    )


def test_what_hangs_and_what_is_dead_is_told_from_what_this_user_may_not_see(answered: Answered) -> None:
    states: dict[str, JsonValue] = {
        "/a": None,
        "/b": {"error": "Stale file handle", "code": "ESTALE"},
        "/c": {"error": "Permission denied", "code": "EACCES"},
        "/d": STATE,
    }
    facts = read(answered, answer(folders=[{**FOLDER, "path": path, "state": state} for path, state in states.items()]))
    assert isinstance(facts, StorageFacts)
    assert [dead(one) for one in facts.folders] == ["does not answer", "fails: Stale file handle", "", ""]
    assert [one.seen for one in facts.folders] == [False, False, False, True]


@pytest.mark.parametrize(
    "wrong",
    [
        {"folders": []},
        {"folders": None},
        {"folders": [{**FOLDER, "path": "data"}]},
        {"folders": [{**FOLDER, "path": "/a\nb"}]},
        {"folders": [{**FOLDER, "named_by": "X;reboot"}]},
        {"folders": [{**FOLDER, "state": {**STATE, "free": -1}}]},
        {"folders": [{**FOLDER, "state": {**STATE, "writable": "yes"}}]},
        {"mounts": [MOUNT]},
        {"root": "3"},
    ],
)
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, answer(**wrong)), Unread)


def test_every_node_is_asked_about_the_data_and_about_the_folder_in_which_ncheck_was_started() -> None:
    (fact,) = FACTS
    assert fact.questions
    cluster = Cluster((Node("n1"),), {"n1": {}})
    for settings, folders in (
        (Settings(), []),
        (
            Settings(data=("/a", "/b"), run=RunContext(started_in="/home/me")),
            [["--data", "/a"], ["--data", "/b"], ["current folder", "/home/me"]],
        ),
    ):
        (question,) = fact.questions(cluster, settings, 10.0)["n1"]
        assert question == STORAGE
        assert question.arguments == {"folders": folders}
