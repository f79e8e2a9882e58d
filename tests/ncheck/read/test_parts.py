"""A text with several captures is divided into them."""

from __future__ import annotations

import pytest
from ncheck.read.parts import Part, parts_of

KINDS = {"nvidia-smi": "smi", "nvidia-smi topo -m": "topo", "ibstat": "ibstat", "ibstat mlx5_1": "ibstat"}


def divided(text: str) -> list[Part]:
    return [
        part for part in parts_of(text, kind_of=lambda command: KINDS.get(command.strip(), "")) if part.text.strip()
    ]


@pytest.mark.parametrize("prompt", [
    "$ ", "# ", "user@gpu01:~$ ", "(base) root@gpu01:/workspace# ", "[me@gpu01 ~]$ ", "> ",
])  # fmt: skip
def test_a_prompt_with_the_command_of_a_tool_begins_a_part(prompt: str) -> None:
    text = f"{prompt}nvidia-smi\na\n{prompt}ls\n{prompt}nvidia-smi topo -m | head\nb\n"
    assert divided(text) == [
        Part("nvidia-smi", f"{prompt}nvidia-smi\na\n{prompt}ls\n"),
        Part("nvidia-smi topo -m | head", f"{prompt}nvidia-smi topo -m | head\nb\n"),
    ]


def test_the_same_tool_again_on_the_same_node_is_one_part() -> None:
    text = "$ ibstat\nCA 'mlx5_0'\n$ ibstat mlx5_1\nCA 'mlx5_1'\n"
    assert divided(text) == [Part("ibstat", text)]
    two = "a@n1:~$ ibstat\nCA 'mlx5_0'\na@n2:~$ ibstat\nCA 'mlx5_0'\n"
    assert [part.name for part in divided(two)] == ["ibstat", "ibstat"]


@pytest.mark.parametrize(("first", "second"), [
    ("gpu01 | CHANGED | rc=0 >>\n", "gpu02 | CHANGED | rc=0 >>\n"),
    ("==> gpu01 <==\n", "==> gpu02 <==\n"),
    ("===== gpu01 =====\n", "===== gpu02 =====\n"),
    ("---------------\ngpu01\n---------------\n", "---------------\ngpu02\n---------------\n"),
])  # fmt: skip
def test_the_headings_of_programs_that_ask_many_nodes(first: str, second: str) -> None:
    text = f"{first}CA 'mlx5_0'\n{second}CA 'mlx5_0'\n"
    assert [part.name for part in divided(text)] == ["gpu01", "gpu02"]


def test_a_heading_within_the_output_of_one_node_divides_nothing() -> None:
    text = "CA 'mlx5_0'\n\tCA type: MT1\n---- mlx5_1 ----\nCA 'mlx5_1'\n"
    assert divided(text) == [Part("", text)]


def test_lines_that_begin_with_their_node_come_in_any_order() -> None:
    text = "gpu01: a\ngpu02: a\ngpu02: b\ngpu01: b\ngpu01: c\ngpu02: c\n"
    assert divided(text) == [Part("gpu01", "a\nb\nc"), Part("gpu02", "a\nb\nc")]


def test_labels_of_a_report_are_no_nodes() -> None:
    text = "OS: Ubuntu\nPython3: 3.10\nOS: Ubuntu\n"
    assert divided(text) == [Part("", text)]


def test_a_second_banner_begins_another_capture() -> None:
    banner = "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |\n"
    assert [part.text for part in divided(banner + "a\n" + banner + "b\n")] == [banner + "a\n", banner + "b\n"]
