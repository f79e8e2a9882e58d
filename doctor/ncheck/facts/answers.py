"""What the agent answers, as the types that its sources declare."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from ncheck.decode import MisfitError, decoded
from ncheck.facts.definition import called, no_answer
from ncheck.model.evidence import Answer, Evidence, Reply
from ncheck.model.fact import Absent, Read, Unread

A = TypeVar("A")
T = TypeVar("T")

Failed: TypeAlias = Callable[[Answer, Reply], Unread | Absent | None]


def answer_of(source: Answer, evidence: Evidence, failed: Failed = no_answer, shape: object = None) -> Any:  # noqa: ANN401
    """Return what the agent answered, as the type that its source declares; or why it did not, as `failed` returns it.

    Raises MisfitError, which makes the fact Unread.
    """
    reply = evidence.reply(source)
    if why := failed(source, reply):
        return why
    declared = shape or source.shape
    if (source.key, declared) not in evidence.read:
        try:
            evidence.read[source.key, declared] = decoded(reply.value, declared)
        except MisfitError as wrong:
            raise MisfitError(f"{called(source)} cannot be read: {wrong}") from None
    return evidence.read[source.key, declared]


def reading(
    source: Answer, failed: Failed = no_answer
) -> Callable[[Callable[[A], Read[T]]], Callable[[Evidence], Read[T]]]:
    """Make a function of an answer a parser of evidence.

    `failed` returns why there is no answer.
    """

    def decorated(read: Callable[[A], Read[T]]) -> Callable[[Evidence], Read[T]]:
        @wraps(read)
        def parse(evidence: Evidence) -> Read[T]:
            answer = answer_of(source, evidence, failed)
            return answer if isinstance(answer, (Unread, Absent)) else read(answer)

        return parse

    return decorated
