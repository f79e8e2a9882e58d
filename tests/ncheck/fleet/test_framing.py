"""A node is not trusted to send what it should."""

from __future__ import annotations

import json

import pytest
from ncheck.fleet.framing import on_the_wire, reply_from
from ncheck.model.evidence import Answer, Command, File, Reply, Status, Tree


def test_a_good_reply_comes_as_it_is() -> None:
    said = {"status": "ok", "exit_status": 1, "stdout": "x", "seconds": 0.25, "truncated": True, "value": {}}
    assert reply_from(said) == Reply(Status.OK, exit_status=1, stdout="x", seconds=0.25, truncated=True, value={})


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (None, "not a reply"),
        ([], "not a reply"),
        ({}, "no status"),
        ({"status": "fine"}, "status"),
        ({"status": ["ok"]}, "status"),
        ({"status": "not-asked"}, "status"),
        ({"status": "ok", "stdout": 7}, "stdout"),
        ({"status": "ok", "exit_status": "0"}, "exit_status"),
        ({"status": "ok", "exit_status": True}, "exit_status"),
        ({"status": "ok", "seconds": "1"}, "seconds"),
        ({"status": "ok", "truncated": 0}, "truncated"),
        ({"status": "ok", "surprise": 1}, "surprise"),
        ({"status": "timeout", "seconds": 10**400}, "seconds"),
        ({"status": "timeout", "seconds": float("inf")}, "seconds"),
        ({"status": "ok", "exit_status": -(10**400)}, "exit_status"),
        ({"status": "ok", "value": json.loads("[" * 900 + "]" * 900)}, "value"),
        ({"status": "ok", "value": json.loads('{"a":' * 900 + "1" + "}" * 900)}, "value"),
    ],
)
def test_a_reply_of_the_wrong_shape_is_a_failed_one_that_says_what_is_wrong(said: object, what: str) -> None:
    reply = reply_from(said)
    assert reply.status is Status.FAILED
    assert what in reply.reason


def test_every_source_travels_with_its_kind_and_its_key() -> None:
    assert on_the_wire(Command(("a", "b"), timeout=3.0, root=True)) == {
        "kind": "command", "key": "command:a b", "argv": ["a", "b"], "timeout": 3.0, "root": True, "job": False,
        "tail": False, "holding": "",
    }  # fmt: skip
    assert on_the_wire(File("/f")) == {"kind": "file", "key": "file:/f", "path": "/f"}
    assert on_the_wire(Tree(("/a/*",))) == {"kind": "tree", "key": "tree:/a/*", "patterns": ["/a/*"]}
    assert on_the_wire(Answer("gpus", arguments={"a": 1})) == {
        "kind": "answer", "key": "answer:gpus", "name": "gpus", "timeout": None, "arguments": {"a": 1}, "round": None,
    }  # fmt: skip
