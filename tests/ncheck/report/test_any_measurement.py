"""Whatever was measured, and whatever nodes call their devices: every form shows it, small, and steers nobody."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from random import Random

import pytest
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Measurement, NodeSummary, Pair, Point, Probe, Report, Share, Traffic
from ncheck.report import show
from ncheck.settings import FORMATS

from tests.report_schema import validator

from .measurements import healthy

RATES = (None, 1.0, 400.0, 1e-14, 1e-9, 1e12, 3e19)
TEXTS = (
    "", "\x1b[2J", "<script>alert(1)</script>", "</svg><img src=x onerror=1>", "\"'>&", "a\nb", "x" * 1000, "\u202e",
    "\x00", "é", "[red]x[/red]", "%s {0}", "eth0", "mlx5_0:1", "lo",
)  # fmt: skip
STAGES = ("inside", "nics", "pair", "rail", "scaling", "all", "")
SIZES = (0, 8, 2**20, 2**30, 2**64)
COUNTS = (0, 1, 2, 3, 17)
EMPTY = Report(0, (), (), (), LaunchPlan(), (), Probe(ran=False, reason=""), "1.0", 1.0, ("error",))
LARGEST = 2_000_000  # characters of a page


class Tags(HTMLParser):
    """What a browser would take for tags and for what they do."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def any_report(chance: Random) -> Report:
    """Return a healthy cluster's report with anything at all for measurements, pairs, traffic and notes."""
    form = chance.choice(("gpu{:03d}", "node-" + "x" * 50 + "{}", "h{}.example.org"))
    nodes = tuple(form.format(number) for number in range(chance.choice(COUNTS)))
    some = tuple(chance.sample(nodes, chance.randrange(len(nodes) + 1)))
    pairs = {tuple(sorted(chance.sample(nodes, 2))) for _ in range(chance.choice(COUNTS))} if len(nodes) > 1 else set()
    devices = [(node, chance.choice(TEXTS)) for node in some for _ in range(3)]
    probe = Probe(
        ran=chance.random() < 0.9, reason=chance.choice(TEXTS), means=chance.choice(("nccl", "tcp", "")),
        version=chance.choice(TEXTS), pairs=tuple(Pair((a, b), chance.choice(RATES)) for a, b in sorted(pairs)),
        traffic=tuple(
            Traffic(node, device, chance.choice((0, 1, 2**64)), 2**63, chance.random() < 0.5, chance.choice([*Share]))
            for node, device in devices
        ),
        notes=tuple(chance.choices(TEXTS, k=3)),
    )  # fmt: skip
    made = tuple(any_measurement(chance, some) for _ in range(chance.randrange(5)))
    summaries = tuple(NodeSummary(name, reached=True) for name in nodes)
    return replace(EMPTY, measurements=made, probe=probe, nodes=summaries)


def any_measurement(chance: Random, nodes: tuple[str, ...]) -> Measurement:
    curve = tuple(
        Point(chance.choice(SIZES), chance.random() < 0.5, chance.choice((1e-9, 1.0, 1e6)), 1.0,
              chance.choice(RATES) or 1.0, chance.choice((None, 0, 2**64)))
        for _ in range(chance.choice((0, 1, 2, 8, 64)))
    )  # fmt: skip
    return Measurement(
        chance.choice(TEXTS), chance.choice(RATES), chance.choice(RATES), "GB/s", chance.choice(TEXTS), nodes,
        chance.choice(TEXTS), chance.choice(STAGES), chance.choice((0, 2**20)),
        tuple(chance.choices(TEXTS, k=2)), tuple(chance.choices(TEXTS, k=2)), curve, chance.choice(TEXTS),
        chance.choice(RATES),
    )  # fmt: skip


def shown(report: Report, form: str) -> str:
    page = io.StringIO()
    show(report, form, page, {"COLUMNS": "80"}, color=False)
    assert all(char.isprintable() or char == "\n" for char in page.getvalue())
    assert len(page.getvalue()) < LARGEST
    return page.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_any_measurement_is_shown_in_every_form(seed: int) -> None:
    report = any_report(Random(seed))  # noqa: S311  the same in every run
    pages = {form: shown(report, form) for form in FORMATS}
    told = json.loads(pages["json"], parse_constant=pytest.fail)
    validator().validate(told)
    page, tags = pages["html"], Tags()
    tags.feed(page)
    assert (tags.handlers, "img" in tags.tags, "<script>alert" in page) == ([], False, False)
    assert re.search(r'="[^"]*\b(?:nan|inf)\b', page) is None


def test_a_picture_of_five_hundred_nodes_stays_small() -> None:
    nodes = tuple(f"n{number:03d}" for number in range(500))
    pairs = tuple(Pair((a, b), 20.0 + place % 7) for place, (a, b) in enumerate(pairwise(nodes)))
    whole = healthy(EMPTY)
    report = replace(whole, probe=replace(whole.probe, pairs=pairs))
    assert max(len(shown(report, form)) for form in ("console", "html")) < LARGEST // 10
