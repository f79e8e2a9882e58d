"""What a hostile node answers can crash no check, steer no terminal, and come to stand in no line but in quotes.

Each recorded answer of a healthy cluster is made hostile in several ways, all chosen by a seed, and judged: a third of
them each day.
"""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ncheck.facts.hardware_errors import HARDWARE_ERRORS
from ncheck.fleet.recording import load
from ncheck.launchers import LAUNCHERS
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report import show
from ncheck.settings import FORMATS, Settings

from tests.ncheck.within import at, places, put
from tests.turns import REPEAT, TURN

pytestmark = pytest.mark.slow

Nodes = tuple[Evidence, ...]

FIXTURES = Path(__file__).parents[2] / "fixtures"
CLUSTERS = ("healthy-4x8-h100", "names-that-differ", "one-way-and-hole")
TRIES = 3  # of each answer, one a day
NUMBER = TURN % TRIES
AT_ONCE = 6  # answers in one replay: it costs more than they do
FORMS = ("console", "json")  # of each report; a page is the dearest form, and one of each answer is enough

# Each is a name, path, address or value in which a shell, a terminal or a program would find what to do.
HOSTILE = (
    "$(PWNED)", "`PWNED`", "eth0;PWNED", "--PWNED", "-oProxyCommand=PWNED", "a\nPWNED", "a\r\nPWNED\n",
    "\x1b]0;PWNED\x07", "\x1b[2J", "eth0 PWNED", "eth0'PWNED", 'eth0"PWNED', "eth0\\PWNED", "\u202ePWNED",
    "\u2028PWNED", "é", "", " ", "*", "=eth0", "^eth0", "x" * 300, "../../PWNED", "\x00", "\x7f\x9b2J",
    "10.0.0.1;PWNED", "10.20.0.0/24 PWNED", "fe80::1%$(PWNED)", "fe80::1%\nPWNED", "::", "inf", "nan", "1e999",
    "²", "&PWNED", "|PWNED", ">PWNED", "#PWNED", "{PWNED,b}",
)  # fmt: skip
NO_TEXT: tuple[Any, ...] = (
    None, True, -1, 0, 65536, 2**63, 10**400, 1.5, 1e308, [], {}, [None], [[]], {"": {}}, {"error": "$(PWNED)"},
    {"error": []}, "x" * 2**20, [[[[[[[[]]]]]]]], [{}] * 70000,
)  # fmt: skip

# What a shell would obey, where it stands in neither quotes nor a comment.
ALIVE = ("$(PWNED", "`PWNED", ";PWNED", "\nPWNED", "&PWNED", "|PWNED", ">PWNED", "{PWNED", " PWNED", "\u2028", "\u202e")

KEYS = {
    cluster: [key for key, reply in load(FIXTURES / cluster)[1].replies.items() if reply.status is Status.OK]
    for cluster in CLUSTERS
}
TOGETHER = [
    (cluster, keys[place : place + AT_ONCE]) for cluster, keys in KEYS.items() for place in range(0, len(keys), AT_ONCE)
]


def renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {renamed(key, old, new): renamed(held, old, new) for key, held in value.items()}
    if isinstance(value, list):
        return [renamed(held, old, new) for held in value]
    if isinstance(value, str):
        return value.replace(old, new) if len(old) > 2 else new if value == old else value
    return value


def hostile(nodes: Nodes, key: str, chance: Random) -> Nodes:
    """Change one value of one node's answer; or, everywhere on one node or on all, one word of it."""
    reply = nodes[1].replies[key]
    if reply.value is None or chance.random() < 0.5:
        said = reply.stdout.split() if reply.value is None else list(words(reply.value))
        old = chance.choice(said or ["x"])
        new = chance.choice((*HOSTILE, old + chance.choice(HOSTILE)))
        which = chance.choice((range(1, 2), range(len(nodes))))
        return tuple(everywhere(node, old, new) if place in which else node for place, node in enumerate(nodes))
    place = chance.choice(list(places(reply.value)))
    changed = replace(reply, value=put(reply.value, place, chance.choice((*HOSTILE, *NO_TEXT))))
    return (nodes[0], replace(nodes[1], replies={**nodes[1].replies, key: changed}), *nodes[2:])


def words(value: Any) -> Iterator[str]:
    for place in places(value):
        for word in (at(value, place), *place[-1:]):
            if isinstance(word, str) and word:
                yield word


def everywhere(node: Evidence, old: str, new: str) -> Evidence:
    def told(reply: Reply) -> Reply:
        return replace(reply, value=renamed(reply.value, old, new), stdout=renamed(reply.stdout, old, new))

    return replace(node, replies={key: told(reply) for key, reply in node.replies.items()})


def bare(line: str) -> str:
    """Return what a shell reads of a line outside of single quotes; in double ones, what it obeys there."""
    found: list[str] = []
    quote, escaped = "", False
    for char in line:
        if escaped or (char == "\\" and quote != "'"):
            escaped = not escaped
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif not quote or (quote == '"' and (char in "$`" or "".join(found)[-1:] in ("$", "`", "("))):
            found.append(char)
    assert not quote, line
    return "".join(found)


def lines(report: Report) -> Iterator[str]:
    yield from (finding.fix for finding in report.findings if finding.fix)
    yield from (line for launcher, line in report.plan.lines.items() if launcher != "nccl.conf")


def hold_lines(held: list[str]) -> None:
    """Hold lines to type to what they may be, also those that ssh hands on to a second shell."""
    for line in held:
        assert all(char.isprintable() or char == "\n" for char in line), line
        alive = bare(line)
        assert not [word for word in ALIVE if word in alive], line
        told = shlex.split(line, comments=True)
        assert not [word for word in told if word.startswith(("--PWNED", "-oProxy"))], line
        if told[:1] == ["ssh"] and len(told) > 2:
            assert not [word for word in ALIVE if word in bare(" ".join(told[2:]))], line
    told_all = "\n".join(f"check() {{\n:\n{line}\n}}" for line in held)
    assert subprocess.run(["bash", "-n"], input=told_all.encode(), check=False).returncode == 0


@pytest.fixture(autouse=True)
def repeat() -> None:
    """Say with a failure how to have it again."""
    sys.stdout.write(REPEAT)


@pytest.mark.parametrize(("cluster", "keys"), TOGETHER)
def test_an_answer_made_hostile_harms_nothing(cluster: str, keys: list[str]) -> None:
    chance, sick = Random(f"{cluster} {keys[0]} {NUMBER}"), load(FIXTURES / cluster)  # noqa: S311  the same in every run
    for key in keys:
        sick = hostile(sick, key, chance)
    hold_lines(judged(sick, forms=FORMS if NUMBER else (*FORMS, "html")))


def test_a_node_whose_devices_are_all_broken_fills_no_report() -> None:
    first, sick, *others = load(FIXTURES / "healthy-4x8-h100")
    lost = {"class": "0x010802", "vendor": "0x10de", "fatal": {"SDES": 1}}
    answer: Any = {"pcie": {"read": 4096, "devices": {f"{number:04x}:00:00.0": lost for number in range(4096)}},
                   "memory": None}  # fmt: skip
    replies = {**sick.replies, HARDWARE_ERRORS.key: Reply(Status.OK, value=answer)}
    report = judge_again((first, replace(sick, replies=replies), *others), Settings(), Silent())
    found = [one for one in report.findings if one.code == "NC550"]
    assert [one.nodes for one in found] == [(sick.node,)] * 65
    assert found[-1].message == "64 findings of this check are listed, and 4032 more were found"
    assert [one.nodes for one in report.verdicts if (one.code, one.outcome.value) == ("NC550", "failed")] == [
        (sick.node,)
    ]


@pytest.mark.parametrize("old", ["eno1", "gpu02", "10.20.0.12"])
def test_a_name_or_address_that_steers_the_plan_may_be_anything(old: str) -> None:
    nodes = load(FIXTURES / "docker0-and-veth")
    held: list[str] = []
    for number in range(NUMBER, len(HOSTILE), TRIES):
        new = HOSTILE[number]
        sick = tuple(everywhere(node, old, new) for node in nodes)
        forms = FORMATS if number % 8 == 0 else FORMS
        held += judged(sick, tuple(LAUNCHERS)[number % len(LAUNCHERS)], forms)
    hold_lines(held)


def judged(nodes: Nodes, launcher: str | None = None, forms: tuple[str, ...] = FORMS) -> list[str]:
    """Judge them, hold what is printed to what a terminal may get, and return the lines to type."""
    report = judge_again(nodes, Settings(launcher=launcher, program=("python", "train.py")), Silent())
    assert [verdict for verdict in report.verdicts if verdict.outcome.value == "crashed"] == []
    assert all(row.isprintable() for row in report.plan.lines.get("nccl.conf", "").split("\n"))
    assert all(len(finding.message) < 10000 for finding in report.findings)
    for form in forms:
        page = io.StringIO()
        show(report, form, page, {"COLUMNS": "120"}, color=False)
        assert page.getvalue().replace("\n", "").isprintable()
    return list(lines(report))
