"""The table of sizes as text, Markdown, JSON and an HTML page, with a plot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from html import escape

from ncheck.report.tables import aligned, escaped
from ncheck.report.tables import as_html as html_table
from ncheck.report.tables import as_markdown as markdown_table
from ncheck.speedup.scaling import Scaling
from ncheck.text import printable

_BAR = 30  # cells of an efficiency of 100 %
_HEADS = ("size", "runs", "throughput", "speed-up", "efficiency")


def _cells(scaling: Scaling) -> Iterator[tuple[str, ...]]:
    for row in scaling.rows:
        efficiency = f"{row.efficiency * 100:.0f} %"
        rate = f"{row.throughput:,.0f}" if row.throughput >= 1000 else f"{row.throughput:.4g}"  # noqa: PLR2004
        yield str(row.size), str(row.runs), f"{rate} {scaling.unit}", f"{row.speedup:.2f}", efficiency


def _answer(scaling: Scaling) -> str:
    least = f"{scaling.minimum * 100:.0f} %"
    if scaling.implausible:
        return f"Not plausible: better than ideal at size {', '.join(map(str, scaling.implausible))}"
    if scaling.poor:
        return f"Efficiency below {least} at size {', '.join(map(str, scaling.poor))}"
    return f"Efficiency of at least {least} at every size"


def _next(scaling: Scaling) -> tuple[tuple[str, str], ...]:
    """Return what to type where scaling is poor, or better than it can be, and why."""
    if scaling.implausible:
        return (
            ("ncheck speedup --same-global-batch ...", "if the logs count steps, and all sizes have one global batch"),
            ("ncheck speedup --pattern REGEX ...", "if another number in the logs is the throughput"),
        )
    if not scaling.poor:
        return ()
    return (
        ("ncheck probe nodes.txt", "whether the all-reduce is as fast as the links allow, and which node is slow"),
        ("ncheck nodes.txt", "versions, links, GPUs and settings that differ"),
        ("ncheck triage nodes.txt", "while the job runs: which rank the others wait for"),
    )


def as_text(scaling: Scaling) -> str:
    """Return the table and a bar for each size; the upright is the minimum."""
    lines = aligned((_HEADS, *_cells(scaling)), left=0)
    mark = round(scaling.minimum * _BAR)
    lines[0] += f"  {'':{mark}}|{scaling.minimum * 100:.0f} %"
    for place, row in enumerate(scaling.rows, 1):
        bar = ("#" * min(round(row.efficiency * _BAR), _BAR)).ljust(_BAR)
        lines[place] += f"  {bar[:mark]}|{bar[mark:]}".rstrip()
    notes = [printable(note, 400) for note in scaling.notes]
    following = ["", "next:", *(f"  {line:<24} {why}" for line, why in _next(scaling))] if _next(scaling) else []
    return "\n".join([_answer(scaling), "", *lines, "", *notes, *following]) + "\n"


def as_markdown(scaling: Scaling) -> str:
    table = markdown_table(_HEADS, _cells(scaling), right=True)
    notes = "\n".join(f"- {escaped(printable(note, 400))}" for note in scaling.notes)
    following = "\n\n" + "\n\n".join(f"{why}:\n\n    {line}" for line, why in _next(scaling)) if _next(scaling) else ""
    return f"# {_answer(scaling)}\n\n{table}\n\n{notes}{following}\n"


def as_json(scaling: Scaling) -> str:
    whole = {**asdict(scaling), "poor": scaling.poor, "implausible": scaling.implausible}
    return json.dumps({"schema": "ncheck.speedup/1", **whole}, indent=2) + "\n"


_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 360, 56, 40


def as_html(scaling: Scaling) -> str:
    """Return a page with a plot of speed-up by size; it loads nothing and has no script."""
    largest, base = max(row.size for row in scaling.rows), scaling.rows[0].size
    top = max([largest / base, *(row.speedup for row in scaling.rows)]) * 1.05

    def x(size: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * size / largest

    def y(speedup: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - 16) * speedup / top

    def path(share: float) -> str:
        return f"M{x(base):.1f},{y(share):.1f} L{x(largest):.1f},{y(share * largest / base):.1f}"

    points = " ".join(f"{x(row.size):.1f},{y(row.speedup):.1f}" for row in scaling.rows)
    dots = "".join(
        f'<circle cx="{x(row.size):.1f}" cy="{y(row.speedup):.1f}" r="4"><title>size {row.size}: {row.speedup:.2f}'
        f'</title></circle><text x="{x(row.size):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{row.size}</text>'
        f'<text x="{_LEFT - 8}" y="{y(row.speedup) + 4:.1f}" text-anchor="end">{row.speedup:.2f}</text>'
        for row in scaling.rows
    )
    table = html_table(_HEADS, _cells(scaling))
    notes = "".join(f"<li>{escape(printable(note, 400))}</li>" for note in scaling.notes)
    following = "".join(f"<p>{escape(why)}:</p><pre>{escape(line)}</pre>" for line, why in _next(scaling))
    least = f"{scaling.minimum * 100:.0f} %"
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>ncheck speedup: {_answer(scaling)}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 1.5rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.4rem; }} li {{ overflow-wrap: anywhere; }} p {{ margin: .8rem 0 0; }}
svg {{ width: 100%; height: auto; }} svg text {{ font-size: 13px; fill: currentColor; }}
.ideal {{ stroke: currentColor; opacity: .5; }} .least {{ stroke: #b8321f; stroke-dasharray: 6 5; }}
polyline {{ fill: none; stroke: #1f5fa8; stroke-width: 2.5; }} circle {{ fill: #1f5fa8; }}
table {{ border-collapse: collapse; }} th, td {{ text-align: right; padding: .2rem .6rem .2rem 0; }}
@media (max-width: 30rem) {{ table {{ font-size: .85rem; }} svg text {{ font-size: 20px; }} }}
ul {{ padding-left: 1rem; }}
pre {{ white-space: pre-wrap; margin: .2rem 0; }}
</style></head><body>
<h1>{_answer(scaling)}</h1>
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Speed-up by size">
<path class="ideal" d="{path(1.0)}"/><path class="least" d="{path(scaling.minimum)}"/>
<polyline points="{points}"/>{dots}
<text x="4" y="14">speed-up</text>
<text x="{_WIDTH - 20}" y="{_HEIGHT - 2}" text-anchor="end">size (line: ideal; dashed: {least})</text>
</svg>
{table}
<ul>{notes}</ul>{following}
</body></html>
"""
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


FORMS: Mapping[str, Callable[[Scaling], str]] = {
    "text": as_text, "html": as_html, "markdown": as_markdown, "json": as_json,
}  # fmt: skip
