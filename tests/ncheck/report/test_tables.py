"""One printer of tables: columns stay aligned whatever the width of a character, and a cell stays one cell."""

from __future__ import annotations

from ncheck.report.tables import aligned, as_html, as_markdown, folded

ROWS = [("节点", "状态"), ("gpu01", "good")]


def test_a_character_of_two_cells_is_counted_as_two() -> None:
    assert aligned(ROWS) == ["节点   状态", "gpu01  good"]
    assert aligned([("", "样本/s"), ("节点", "1"), ("gpu01", "1234567")], left=1) == [
        "        样本/s",
        "节点         1",
        "gpu01  1234567",
    ]


def test_a_table_is_no_wider_than_the_terminal_and_keeps_every_word() -> None:
    lines = folded([("gpu01", "one two three four five six")], 24, ("node", "what"))
    assert lines == ["node   what", "gpu01  one two three", "       four five six"]
    assert folded([("[bold]no markup[/]",)], 40) == ["[bold]no markup[/]"]


def test_no_text_of_a_cell_ends_it_in_markdown_or_in_html() -> None:
    rows = [("a|b", "<b>\n- x")]
    assert as_markdown(("left", "right"), rows) == "| left | right |\n| --- | --- |\n| a\\|b | \\<b\\> - x |"
    assert as_markdown(("1",), [("2",)], right=True) == "| 1 |\n| ---: |\n| 2 |"
    assert as_html(("left", "right"), rows) == (
        "<table><thead><tr><th>left</th><th>right</th></tr></thead>"
        "<tbody><tr><td>a|b</td><td>&lt;b&gt; - x</td></tr></tbody></table>"
    )
