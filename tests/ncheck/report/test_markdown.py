"""Markdown, as markdown-it reads it with GitHub's tables: what nodes wrote is text, and commands are code."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from ncheck.model.report import BadNode, Report
from ncheck.report import show

from . import measurements
from .test_html import HOSTILE, evil

HARMLESS = {
    "heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "fence", "table_open",
    "table_close",
    "thead_open", "thead_close", "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close", "td_open",
    "td_close", "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "text", "text_special",
}  # fmt: skip
MEAN = "![x](http://evil) <b>bold</b> `code` **strong** [l][r] www.evil.example a|b ~~s~~ &amp; https://evil.example #1"


def read(report: Report) -> list[Token]:
    """Return the tokens of the report; none is a link, a picture, HTML or anything else that our words do not have."""
    stream = io.StringIO()
    assert show(report, "markdown", stream, {}) == report.exit_code
    tokens = MarkdownIt("gfm-like", {"linkify": False}).enable("table").parse(stream.getvalue())
    every = [one for token in tokens for one in (token, *(token.children or ()))]
    assert {token.type for token in every} <= HARMLESS
    return tokens


def texts(tokens: list[Token], kind: str) -> list[str]:
    """Return the text in each heading, paragraph or cell of a table."""
    return [
        "".join(child.content for child in inline.children or ())
        for token, inline in pairwise(tokens)
        if token.type == f"{kind}_open" and inline.type == "inline"
    ]


def code(tokens: list[Token]) -> list[str]:
    return [token.content.removesuffix("\n") for token in tokens if token.type == "fence"]


def test_the_answer_is_the_heading_and_commands_are_code(reports: dict[str, Report]) -> None:
    bad = BadNode("node04", "NC201 nccl-version-differs: NCCL differs", ("NC201",))
    tokens = read(replace(reports["mixed_nccl"], bad=(bad,)))
    headings = texts(tokens, "heading")
    assert headings[0].startswith("Not ready: ")
    assert "error NC201 nccl-version-differs: node04" in headings
    assert "python3 -m pip install nvidia-nccl-cu12==2.21.5" in code(tokens)
    assert reports["mixed_nccl"].plan.lines["mpirun"] in code(tokens)
    assert texts(tokens, "td")[:2] == ["node04", "NC201 nccl-version-differs: NCCL differs"]


@pytest.mark.parametrize("name", ["one_down", "all_unknown", "thousand_lost"])
def test_what_could_not_be_checked_is_said(name: str, reports: dict[str, Report]) -> None:
    assert "Not checked" in texts(read(reports[name]), "heading")


def test_measurements_are_a_table(reports: dict[str, Report]) -> None:
    tokens = read(measurements.slow_node(replace(reports["healthy"], systems=())))
    cells = texts(tokens, "td")
    assert "median of 5 repeats after 2 warm-ups; spread 4 % to 31 %" in texts(tokens, "paragraph")
    assert len(cells) == 12
    assert "47 %" not in cells[0]
    assert any("of 350 GB/s expected" in cell for cell in cells)


@pytest.mark.parametrize(
    "text", [HOSTILE, MEAN, "# a", "- a", "1. a", "12) a", "> a", "+ a", "= a", "```", "\\", "_a_ mlx5_0"]
)
def test_what_a_node_wrote_is_text(text: str, reports: dict[str, Report]) -> None:
    report = evil(reports["healthy"])
    (finding,) = report.findings
    evidence = ("```\n# head\n~~~~", text)
    shown = " ".join(text.replace("\u202e", "?").split())
    tokens = read(replace(report, findings=(replace(finding, message=text, evidence=evidence, fix=f"echo {text}"),)))
    assert shown in texts(tokens, "paragraph")
    assert f"```\n# head\n~~~~\n{shown}" in code(tokens)
    read(replace(reports["healthy"], bad=(BadNode(text, text, ()),), host=text, user=text, command=text))
