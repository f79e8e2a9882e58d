"""Nothing that reads a text takes more than linear time, whatever a node, a log or a file holds."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from types import ModuleType

import ncheck
import ncheck_checks
import pytest
from ncheck.expression import Uncompiled
from ncheck.facts.definition import Fact
from ncheck.facts.learning import definition_of, facts_of
from ncheck.fleet.recording import load
from ncheck.model.evidence import Command, Evidence, File, Login, Reply, Source, Status, Tree
from ncheck.read.text import read_text

from tests.every_fact import every_fact

FIXTURES = Path(__file__).parents[2] / "fixtures"

LENGTH = 4000  # characters: a run of a squared pattern takes ten times the limit and more, a linear one a tenth
PART = 4  # a text that is shorter by this is tried first: a linear pattern needs no more

MOST = 0.03  # seconds of this process
TRIES = 4  # a linear one comes beneath it in one of them, however busy the machine is

# What is repeated: each class of characters, alone and in mixtures that patterns take for separators.
RUNS = (
    *" \t\n\r\x00\x1b0aA_é-.,:;/\\|#*%@=+()[]{}<>\"'&!$~",
    "a ", "0 ", "0.", "0,", "a:", "a=", "a@", " :", " : ", "--a ", "[0]", "a.b/", "a\n", " \n", "0x", "ab,", "{}",
    "| ", "- ", "a1 ,.[]()\t:;/-\"'{}=|",
)  # fmt: skip


def held(value: object, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of a constant: alone, or in tuples, mappings and records."""
    if isinstance(value, Uncompiled):
        yield value.compiled()
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    inner: list[object] = []
    if isinstance(value, (tuple, list, frozenset)):
        inner = list(value)
    elif isinstance(value, dict):
        inner = [*value, *value.values()]
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        inner = [getattr(value, name, None) for name in value.__dataclass_fields__]
    if depth < 4:
        for one in inner:
            yield from held(one, depth + 1)


_METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")


def patterns_of(module: ModuleType) -> dict[re.Pattern[str], tuple[str, bool]]:
    """Return each pattern of a module with its place, and whether it is tried at the start of a text only."""
    found: dict[re.Pattern[str], tuple[str, bool]] = {}
    methods: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            first = node.args[0]
            if ast.unparse(node.func.value) == "re" and node.func.attr in _METHODS and isinstance(first, ast.Constant):
                anchored = node.func.attr in ("match", "fullmatch")
                found[re.compile(str(first.value))] = (f"{module.__name__}:{node.lineno}", anchored)
    everything = set().union(*methods.values())
    for name, value in vars(module).items():
        used = methods.get(name, everything) & set(_METHODS) or everything & set(_METHODS)
        for pattern in held(value):
            anchored = bool(used) and used <= {"match", "fullmatch"}
            place = found.get(pattern, (f"{module.__name__}.{name}", anchored))
            found[pattern] = (place[0], place[1] and anchored)
    return found


def words_of(pattern: re.Pattern[str]) -> list[str]:
    """Return the literal words of a pattern: a text that repeats one begins a match again and again."""
    return re.findall(r"[A-Za-z][\w :/.-]{2,40}", re.sub(r"\\[a-zA-Z]|\(\?P<\w+>", " ~ ", pattern.pattern))[:12]


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def is_slow(pattern: re.Pattern[str], start: str, run: str, *, anchored: bool) -> bool:
    """Whether it takes too long. Squared time at LENGTH is PART squared times that of a part, which is tried first."""

    def search(length: int) -> float:
        text = start + run * (length // len(run)) + "!"
        return seconds(partial(pattern.match, text) if anchored else partial(pattern.sub, "", text))

    return search(LENGTH // PART) > MOST / PART**2 and all(search(LENGTH) > MOST for _ in range(TRIES))


@cache  # several modules import the same pattern
def slow_texts(pattern: re.Pattern[str], *, anchored: bool) -> tuple[str, ...]:
    chance = Random(pattern.pattern)  # noqa: S311  the same in every run
    words = words_of(pattern)
    return tuple(
        f"{start!r} {run!r}"
        for run in (*RUNS, *words, *(word + chance.choice(RUNS) for word in words))
        for start in {"", chance.choice(["", *words])}
        if is_slow(pattern, start, run, anchored=anchored)
    )


@cache
def every_pattern() -> list[tuple[re.Pattern[str], str, bool]]:
    """Return every pattern of every module, its place, and whether it is tried at the start of a text only."""
    names = [
        module.name
        for package in (ncheck, ncheck_checks)
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        if not module.name.endswith("__main__")
    ]
    return [
        (pattern, *found) for name in names for pattern, found in patterns_of(importlib.import_module(name)).items()
    ]


@pytest.mark.slow
def test_the_patterns_are_found() -> None:
    assert len({pattern for pattern, *_ in every_pattern()}) > 1000


@pytest.mark.slow
def test_no_pattern_takes_long_for_a_run_of_anything() -> None:
    slow = [
        (place, pattern.pattern, slow_texts(pattern, anchored=anchored)) for pattern, place, anchored in every_pattern()
    ]
    assert [found for found in slow if found[-1]] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "run", "slow"),
    [
        (r"\s+$", " ", True),  # each space begins a match that goes to the last one
        (r"(?<!\w)[\d,]*\d+ tokens", "0", True),  # one beginning, and two repetitions that share what they read
        (r"(?:\w+ )*:", "a ", True),
        (r"\btime: (\S+)", "time: ", False),
    ],
)
def test_a_squared_pattern_is_slow_and_a_linear_one_is_not(pattern: str, run: str, *, slow: bool) -> None:
    assert is_slow(re.compile(pattern), "", run, anchored=False) is slow


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["topo", "ibstat", "nics", "versions", "smi", "amd-smi", "log", "nccl-tests"])
def test_twice_the_text_takes_no_more_than_some_twice_the_time(kind: str) -> None:
    for run in (*RUNS, "CA 'mlx5_0'\n", "GPU0 X NV1\n", "GPU 0: a\n", "| 0 a On | 0000:0 |\n", "error fail ", "<div "):
        short, long = (run * (size // len(run)) for size in (7_500, 15_000))
        took = seconds(partial(read_text, kind, long))
        if took > 0.08:
            took = min(took, seconds(partial(read_text, kind, f"{long}\n")))  # of the same text, something is kept
            assert took < 0.08 + 3 * seconds(partial(read_text, kind, short)), repr(run)


SIZE = 1 << 19  # half of what an agent sends of one output at most
SHARE = 8  # so much less is parsed first: a linear reading needs no more


def replies() -> dict[str, Reply]:
    """Return the replies of a healthy node."""
    return dict(load(FIXTURES / "healthy-4x8-h100")[0].replies)


def grown(source: Source, run: str, healthy: Reply | None, size: int) -> Reply | None:
    """Return the reply with so much of this text; None for JSON."""
    text = (run * (size // len(run) + 1))[:size]
    if isinstance(source, Command):
        return Reply(Status.OK, exit_status=0, stdout=text)
    if isinstance(source, File):
        return Reply(Status.OK, value=text)
    if isinstance(source, Tree) and healthy and isinstance(healthy.value, dict):
        return Reply(Status.OK, value=dict.fromkeys(list(healthy.value)[:60], text[: size // 8]))
    return None


def slow_outputs(fact: type[object]) -> list[tuple[str, str]]:
    """Return the sources whose largest output takes a second to parse, with what is repeated in it.

    Squared time at SIZE is SHARE squared times that of a share of it.
    """
    healthy, definition, slow = replies(), definition_of(fact), list[tuple[str, str]]()
    for source in definition.sources if definition else ():
        told = healthy.get(source.key)

        def took(run: str, size: int, source: Source = source, told: Reply | None = told) -> float:
            reply = grown(source, run, told, size)
            evidence = Evidence("n", Login(reached=True), replies={**healthy, **({source.key: reply} if reply else {})})
            return seconds(partial(facts_of, evidence, [fact])) if reply else 0.0

        own = [told.stdout] if told and told.stdout else []
        runs = (*RUNS, *own, "-A INPUT -j DROP\n", "| 0 a On | 0000:0 |\n", "a=b\n", "a: b\n", "1.1.1.1 ")
        shown = (run for run in runs if took(run, SIZE // SHARE) > 1.0 / SHARE**2)
        slow += [(source.key, run) for run in shown if took(run, SIZE) >= 1.0]
    return slow


@pytest.mark.slow
@pytest.mark.parametrize("fact", every_fact(), ids=lambda fact: fact.__name__)
def test_the_largest_output_that_a_node_may_send_is_parsed_in_a_moment(fact: type[object]) -> None:
    assert slow_outputs(fact) == []


@dataclass(frozen=True)
class Squared:
    """A fact whose parser begins a match at each blank, and reads on to the last of them."""

    words: int


def _squared(evidence: Evidence) -> Squared:
    stdout = evidence.replies[UPTIME.key].stdout
    return Squared(len(re.findall(r" +x", stdout[: len(stdout) // 10])))  # all of it would take minutes


UPTIME = Command(("uptime",))
FACTS = (Fact(Squared, (UPTIME,), _squared),)


@pytest.mark.slow
def test_a_parser_that_takes_squared_time_is_found() -> None:
    assert (UPTIME.key, " ") in slow_outputs(Squared)
