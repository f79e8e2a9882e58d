"""An answer becomes the record that declares it, and what is not of the declared type is named with its place."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, make_dataclass
from threading import Barrier
from typing import Annotated, Any, Literal, get_type_hints

import pytest
from ncheck.decode import OPTIONAL, Count, Device, HowMany, Ip, Key, Maybe, MisfitError, Null, OrEmpty, decoded
from ncheck.facts.learning import definition_of
from ncheck.model.evidence import Answer, Cause
from ncheck.model.fact import Absent, Unread
from ncheck.text import LONGEST_MESSAGE

from tests.every_fact import every_fact


@dataclass(frozen=True)
class Inner:
    size: Count


def _hexadecimal(text: str) -> int:
    return int(text, 16)


@dataclass(frozen=True)
class Said:
    name: str
    index: int
    speed: Maybe[float] = None
    inner: Annotated[Inner | Unread | None, OPTIONAL] = None
    kind: Maybe[Literal["a", "b"]] = None
    vendor: Annotated[int, Key("class"), OPTIONAL, _hexadecimal] = 0
    libraries: Annotated[str | Absent, OPTIONAL, Null(Absent("nothing needs it"))] = ""
    rows: Annotated[tuple[tuple[int, str], ...], OPTIONAL] = ()
    text: OrEmpty = ""
    cause: Maybe[Cause] = None
    beneath: Annotated[Mapping[Device, Said], OPTIONAL] = field(default_factory=dict)


WHOLE: dict[str, Any] = {"name": "a", "index": 0}


def test_an_answer_becomes_its_record() -> None:
    beneath = {"eth0": {**WHOLE, "libraries": None, "text": None}, "eth1": {**WHOLE, "inner": {"error": "denied"}}}
    more = {"speed": 1, "inner": {"size": 2}, "kind": "b", "class": "0x1f", "rows": [[1, "x"]], "cause": "closed"}
    assert decoded({**WHOLE, **more, "beneath": beneath, "unknown": []}, Said) == Said(
        "a", 0, 1, Inner(2), "b", 31, "", ((1, "x"),), "", Cause.CLOSED,
        {"eth0": Said("a", 0, libraries=Absent("nothing needs it")), "eth1": Said("a", 0, inner=Unread("denied"))},
    )  # fmt: skip
    shared = {"path": "/srv", "error": "Stale file handle"}
    assert decoded({**WHOLE, "inner": shared}, Said).inner == Unread("/srv: Stale file handle")
    assert decoded({**WHOLE, "inner": {"size": 1, "error": ""}}, Said).inner == Inner(1)


@pytest.mark.parametrize(
    ("value", "declared", "wrong"),
    [
        ({"index": 0}, Said, "name: missing"),
        ({**WHOLE, "name": None}, Said, "name: not text"),
        ({**WHOLE, "index": "0"}, Said, "index: not an integer"),
        ({**WHOLE, "index": True}, Said, "index: not an integer"),
        ({**WHOLE, "index": 2**64}, Said, "index: a number out of range"),
        ({**WHOLE, "speed": float("nan")}, Said, "speed: not a finite number"),
        ({**WHOLE, "speed": 10**400}, Said, "speed: a number out of range"),
        ({**WHOLE, "inner": {"size": -1}}, Said, "inner.size: a number is out of range"),
        (-1, HowMany, "a number is out of range"),
        (65537, HowMany, "a number is out of range"),
        ({**WHOLE, "inner": {"error": 7}}, Said, "inner.error: not text"),
        ({**WHOLE, "inner": {"path": "tmp", "error": "no"}}, Said, "inner: 'tmp' is not an absolute path"),
        ({**WHOLE, "kind": "c"}, Said, "kind: not a value that it can have"),
        ({**WHOLE, "class": "0xg"}, Said, "class: invalid literal for int() with base 16: '0xg'"),
        ({**WHOLE, "rows": [[1, "x"], [1]]}, Said, "rows[1]: not 2 values"),
        ({**WHOLE, "rows": [[1, "x"], [1, 2]]}, Said, "rows[1][1]: not text"),
        ({**WHOLE, "cause": "no"}, Said, "cause: 'no' is not a valid Cause"),
        ({**WHOLE, "beneath": {"--flush": WHOLE}}, Said,
         "beneath['--flush']: '--flush' is not an interface name, nor an adapter's"),
        ({**WHOLE, "beneath": {"a\n": WHOLE}}, Said, "beneath['a?']: 'a?' is not an interface name, nor an adapter's"),
        ({**WHOLE, "beneath": {"a": {"name": "b"}}}, Said, "beneath['a'].index: missing"),
        ([WHOLE], Said, "not a mapping"),
        (None, Said, "not a mapping"),
        ([0, "1"], tuple[int, ...], "[1]: not an integer"),
        ("01", tuple[str, ...], "not a list"),
        ([0] * 65537, tuple[int, ...], "65537 items"),
        ({str(key): 0 for key in range(65537)}, Mapping[str, int], "65537 items"),
        ({"a": [None]}, Mapping[str, frozenset[str]], "['a'][0]: not text"),
        (float("inf"), float, "not a finite number"),
        ("x" * 2**20, Ip, repr("x" * 2**20)[:LONGEST_MESSAGE]),
    ],
)  # fmt: skip
def test_what_is_not_of_the_declared_type_is_named_with_its_place(value: object, declared: object, wrong: str) -> None:
    with pytest.raises(MisfitError) as raised:
        decoded(value, declared)
    assert str(raised.value) == wrong


def test_each_function_of_an_answer_takes_what_its_source_declares() -> None:
    for fact in every_fact():
        definition = definition_of(fact)
        read = inspect.unwrap(definition.parse) if definition and definition.parse else None
        if definition and read and read is not definition.parse:  # it was made a parser by `reading`
            taken = next(iter(get_type_hints(read, include_extras=True).values()))
            assert taken in [source.shape for source in definition.sources if isinstance(source, Answer)], fact


_MET = Barrier(2)


def _int_for_both() -> type[int]:
    _MET.wait(60.0)
    return int


def test_a_record_that_two_threads_read_first_at_the_same_time_is_whole() -> None:
    pair = make_dataclass("Pair", [("one", "int"), ("other", "_int_for_both()")])
    pair.__module__ = __name__
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: decoded({"one": 1, "other": 2}, pair), range(2))) == [pair(1, 2), pair(1, 2)]
