"""What a node says, its greeting and its frames, as records: it is not trusted to send what it should."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from ncheck.model.evidence import Answer, Command, File, Greeting, Reply, Source, Status, Tree, too_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ncheck.model.evidence import JsonValue


DEEPEST = 32  # levels of lists and mappings in an answer; the deepest of ours has five


_LONGEST_NUMBER = 10  # digits of a user's number


_LONGEST = 1e9  # seconds; and no exit status, signal or port is larger either


_KINDS = {Command: "command", File: "file", Tree: "tree", Answer: "answer"}


def on_the_wire(source: Source) -> dict[str, JsonValue]:
    """Return a source as the agent reads it: its kind, its key and its fields."""
    fields: dict[str, JsonValue] = {"kind": _KINDS[type(source)], "key": source.key}
    for name, value in vars(source).items():
        fields[name] = list(value) if isinstance(value, tuple) else value
    return fields


def greeting_from(told: Mapping[str, str], noise: str) -> Greeting:
    """Return the greeting as its marked lines tell it, first word to rest."""
    user = told.get("uid", "").strip()
    return Greeting(
        host_name=told.get("host", ""),
        boot_id=told.get("boot", ""),
        network_namespace=told.get("net", ""),
        user_id=int(user) if user.isascii() and user.isdigit() and len(user) <= _LONGEST_NUMBER else None,
        noise=noise,
    )


def reply_from(said: object, asked: JsonValue = None) -> Reply:
    """Return the node's reply to what was asked; one of the wrong shape is a failed reply that says so."""
    if not isinstance(said, dict):
        return Reply(Status.FAILED, reason="the node sent no reply but something else", asked=asked)
    wrong = sorted(str(name) for name in said if name not in _SHAPE or not _SHAPE[name](said[name]))
    if wrong or "status" not in said:
        what = ", ".join(wrong)[:200] or "no status"
        return Reply(Status.FAILED, reason=f"the node sent a reply of the wrong shape: {what}", asked=asked)
    fields = dict(said, status=Status(said["status"]), asked=asked)
    return Reply(**cast("dict[str, str]", fields))  # type: ignore[arg-type]


def _text(value: object) -> bool:
    return isinstance(value, str)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LONGEST


def _seconds(value: object) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value) and abs(value) < _LONGEST)


_NODES_OWN = frozenset(status.value for status in Status) - {Status.NOT_ASKED.value}  # that one is the head's word


_SHAPE: dict[str, Callable[[object], bool]] = {
    "status": lambda value: isinstance(value, str) and value in _NODES_OWN,
    "reason": _text,
    "exit_status": lambda value: value is None or _whole(value),
    "stdout": _text,
    "stderr": _text,
    "value": lambda value: not too_deep(value, DEEPEST),  # any JSON else: each parser knows its own
    "seconds": _seconds,
    "truncated": lambda value: isinstance(value, bool),
}
