"""The GPUs that were tested alone: a table with a bar for each, for the console and the HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ncheck.lazy_dataclass import dataclass
from ncheck.model.report import GpuAlone, Report, Standing
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.measured import BAD, STYLES, short_figure, tone
from ncheck.report.page import Page
from ncheck.report.tables import aligned

SHOWN = 16  # GPUs, the worst first
_NOTES = 4
_CELLS = 10  # of a bar
_ORDER = (Standing.FAR_TOO_LOW, Standing.LOW, Standing.UNKNOWN, Standing.OK)


@dataclass(frozen=True)
class GpuRow:
    """One GPU: `cells` as text under the heads, `share` of what is usual at its worst (None: unknown), its style."""

    node: str
    gpu: str
    cells: tuple[str, ...]
    share: float | None
    tone: str
    failed: str


@dataclass(frozen=True)
class GpuTable:
    """`heads` with their units below; `left_out`: how many GPUs are not shown; `notes`: what was not measured."""

    heads: tuple[tuple[str, str], ...]
    rows: tuple[GpuRow, ...]
    left_out: int
    notes: tuple[str, ...]


def gpu_table(report: Report) -> GpuTable | None:
    """Return the table, the worst GPUs first; None where none was tested."""
    if not report.gpus_alone:
        return None
    kinds = dict.fromkeys((figure.what, figure.unit) for gpu in report.gpus_alone for figure in gpu.figures)
    gpus = sorted(report.gpus_alone, key=lambda gpu: (not gpu.failed, _ORDER.index(_worst(gpu)), _share(gpu) or 0.0))
    heads = (*kinds, ("heat", "°C"))
    rows = tuple(_row(gpu, [what for what, _ in kinds]) for gpu in gpus[:SHOWN])
    notes = tuple(dict.fromkeys(note for gpu in gpus for note in gpu.notes))[:_NOTES]
    return GpuTable(heads, rows, max(0, len(gpus) - SHOWN), notes)


def _row(gpu: GpuAlone, kinds: Sequence[str]) -> GpuRow:
    values = {figure.what: short_figure(figure.value) for figure in gpu.figures}
    cells = (*(values.get(what, "") for what in kinds), "" if gpu.temperature is None else str(gpu.temperature))
    style = BAD if gpu.failed else tone(_worst(gpu))
    return GpuRow(gpu.node, gpu.pci, cells, _share(gpu), style, gpu.failed)


def _worst(gpu: GpuAlone) -> Standing:
    judged = (figure.standing for figure in gpu.figures if figure.usual is not None)
    return min(judged, key=_ORDER.index, default=Standing.UNKNOWN)


def _share(gpu: GpuAlone) -> float | None:
    return min((figure.value / figure.usual for figure in gpu.figures if figure.usual), default=None)


def print_gpus(page: Page, report: Report) -> None:
    """Print the table; a wide one is cut at the width of the page."""
    table = gpu_table(report)
    if table is None:
        return
    page.say(tr("GPUs alone"), "  ", style="bold")
    above = (("", *line) for line in zip(*table.heads, strict=True))
    named = ((words.line(f"{row.node} {row.gpu}"), *row.cells) for row in table.rows)
    lines = aligned((*above, *named), left=1)
    for line in lines[: -len(table.rows)]:
        page.verbatim(f"    {line}", style="dim")
    for row, line in zip(table.rows, lines[-len(table.rows) :], strict=True):
        bar = page.signs.parts[-1] * round(_CELLS * min(1.0, row.share or 0.0))
        page.verbatim(Text.assemble(f"    {line}  ", (bar, STYLES[row.tone])))
        if row.failed:
            page.say(words.line(row.failed), "      ", style=STYLES[BAD])
    for note in table.notes:
        page.say(words.line(note), "    ", style="dim")
    if table.left_out:
        more = tr("and {number} more", number=table.left_out)
        page.say(tr("{what}: -o json has them all", what=more), "    ", style="dim")
