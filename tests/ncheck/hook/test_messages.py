"""What ranks send each other: only what is of the declared kind gets in, and other words are made safe."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ncheck.decode import MisfitError
from ncheck.hook.meeting.messages import (
    Alive,
    Came,
    Channel,
    Leave,
    Look,
    Member,
    Message,
    NotMet,
    Open,
    Told,
    Wait,
    Welcome,
    read,
    written,
)  # fmt: skip
from ncheck.hook.meeting.wire import decoded

ZERO = Member(0, 2, None, "host0", "", "machine 0", 1000, "", "0.1.0")
ONE = {
    "rank": 1, "size": 2, "local_rank": None, "host_name": "host1", "node_name": "", "machine": "machine 1",
    "pid": 1001, "version": "0.1.0",
}  # fmt: skip


def came(**fields: Any) -> dict[str, Any]:
    return {"what": "rank", "member": {**ONE, **fields}, "seconds": 30}


@pytest.mark.parametrize(
    "message",
    [
        Came(ZERO, 9.5), Channel("00ff"), Alive((1, 2)), Leave("overran"), Welcome(ZERO), Look((3,)), Wait(),
        Open("00ff"), Told({"stop": False, "env": {"NCCL_IB_HCA": "mlx5_0"}}, (ZERO,)), NotMet("late", "too late"),
        NotMet("ranks", "rank 2 did not come", is_error=True),
    ],
    ids=lambda message: type(message).__name__,
)  # fmt: skip
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert read(json.loads(json.dumps(written(message)))) == message


def test_the_kinds_and_keys_on_the_wire_are_those_of_every_version() -> None:
    assert written(Came(ZERO, 9.5)) == {
        "what": "rank", "seconds": 9.5, "member": {
            "rank": 0, "size": 2, "local_rank": None, "host_name": "host0", "node_name": "", "machine": "machine 0",
            "pid": 1000, "address": "", "version": "0.1.0",
        },
    }  # fmt: skip
    assert [written(one)["what"] for one in (Channel(""), Alive(()), Leave(""), Welcome(ZERO), Look(()))] == [
        "channel", "alive", "leave", "welcome", "look",
    ]  # fmt: skip
    assert [written(Wait()), written(Open("0")), written(Told({}))] == [
        {"what": "wait"}, {"what": "open", "ticket": "0"}, {"what": "verdict", "verdict": {}, "ended": ()},
    ]  # fmt: skip
    assert written(NotMet("late", "x")) == {"what": "no verdict", "kind": "late", "text": "x", "is_error": False}


def test_a_kind_that_this_version_does_not_know_is_none() -> None:
    assert read({"what": "chatter"}) is None


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"7", b"[" * 16000, b'{"a":' * 3000, b"\xff\xfe", b"{}", b'{"what": "rank"}',
        b'{"what": "rank", "member": {"rank": -1}, "seconds": 1}', b'{"what": "rank", "member": [], "seconds": 1}',
        b'{"what": ["rank"], "member": {}, "seconds": null}', b"1" * 16000,
        b'{"what": "verdict", "verdict": 7, "ended": []}', b'{"what": "verdict", "verdict": {}, "ended": [7]}',
        b'{"what": "no verdict", "kind": "delete everything", "text": "", "is_error": true}',
        b'{"what": "no verdict", "kind": "crashed", "text": 7, "is_error": true}', b'{"what": "welcome", "member": 7}',
    ],
)  # fmt: skip
def test_nonsense_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  by JSON, or by its declaration
        read(decoded(text))


@pytest.mark.parametrize("field", ["rank", "size", "pid", "host_name", "machine", "local_rank"])
@pytest.mark.parametrize("value", [True, -1, 1 << 40, 1.5, {"a": []}, ["x"]])
def test_a_member_of_wrong_types_is_refused(field: str, value: object) -> None:
    with pytest.raises(MisfitError, match=f"member.{field}"):
        read(came(**{field: value}))


@pytest.mark.parametrize("seconds", [None, "30", -1, 1e300, [], float("nan")])
def test_a_wrong_time_is_refused(seconds: object) -> None:
    with pytest.raises(MisfitError, match="seconds"):
        read({**came(), "seconds": seconds})


def test_the_words_of_another_process_are_made_safe_for_a_terminal() -> None:
    message = read(came(host_name="\x1b[2J" * 10, machine="m" * 999))
    assert isinstance(message, Came)
    assert (message.member.host_name, len(message.member.machine)) == ("?[2J" * 10, 255)
    assert read({"what": "no verdict", "kind": "crashed", "text": "\x1b[2J"}) == NotMet("crashed", "?[2J")
