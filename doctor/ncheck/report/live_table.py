"""Progress on a terminal: a line per node up to 16 nodes, counts by stage beyond."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ncheck.report import text as words
from ncheck.report.progress import (
    DONE,
    FAILED,
    FAILURES_SHOWN,
    MORE_FAILURES,
    WAITING,
    NodeStages,
    elapsed,
    failure_line,
)

if TYPE_CHECKING:
    from ncheck.model.evidence import Login
    from ncheck.model.finding import Finding
    from ncheck.model.node import Node

FEW = 16  # up to this many nodes each has a line of its own
REDRAWS = 8  # a second
BAR = 30  # cells
# Stages in the order in which a node goes through them; others come before the last two.
_ORDER = {stage: place for place, stage in enumerate((WAITING, "connecting", "logged in", "collecting", DONE, FAILED))}
_STYLES = {FAILED: "bold red", WAITING: "dim", DONE: "green"}


class _Screen(Console):
    """A console that prints nothing more when its reader closed the pipe: the run goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class LiveTable:
    """Redrawn by rich in its own thread; the observer methods only change a dictionary."""

    def __init__(
        self,
        stream: TextIO,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        *,
        limit: float = 0.0,
    ) -> None:
        colors: Literal["auto"] | None = None if environ.get("NO_COLOR") else "auto"
        self.console = _Screen(file=stream, highlight=False, markup=False, emoji=False, color_system=colors)
        self.clock, self.limit = clock, limit
        self.began = 0.0
        self.progress = NodeStages()
        self.spinner = Spinner("dots" if self.console.encoding.startswith("utf") else "line")
        self.live: Live | None = None

    def started(self, nodes: tuple[Node, ...]) -> None:
        self.began = self.clock()
        self.progress.begin(nodes)
        self.live = Live(
            get_renderable=self._drawn, console=self.console, transient=True, refresh_per_second=REDRAWS,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self.live.start()

    def stage(self, node: str, stage: str, *, slow: bool = False) -> None:  # noqa: ARG002  it shows every stage
        self.progress.move(node, stage)

    def not_recorded(self, node: str, why: str) -> None:
        if self.progress.unrecorded():
            line = f"! {words.line(node)}: not recorded: {words.line(why)}"
            self.console.print(Text(line, "bold yellow"), soft_wrap=True)

    def login_failed(self, node: str, login: Login) -> None:
        """Print the failure above the live table at once; it stays on the screen."""
        failures = self.progress.fail(node)
        if failures > FAILURES_SHOWN:
            return
        sign = "✗" if self.console.encoding.startswith("utf") else "x"
        self.console.print(Text.assemble((f"{sign} ", "bold red"), failure_line(node, login)), soft_wrap=True)
        if failures == FAILURES_SHOWN:
            self.console.print(MORE_FAILURES, style="dim")

    def judged(self, findings: tuple[Finding, ...]) -> None: ...

    def finished(self) -> None:
        if self.live:
            self.live.stop()

    def _drawn(self) -> Group:
        counts = self.progress.counts()
        total = sum(counts.values())
        finished = counts[DONE] + counts[FAILED]
        since = elapsed(self.clock() - self.began, self.limit)
        self.spinner.update(text=Text(f"{finished} of {words.count(total, 'node')}, {since}"))
        if total <= FEW:
            return Group(self.spinner, self._by_node())
        bar = _grid()
        bar.add_row(self.spinner, ProgressBar(total=total, completed=finished, width=BAR, complete_style="green"))
        return Group(bar, self._by_stage(counts))

    def _by_node(self) -> Table:
        table = _grid()
        with self.progress.lock:
            stages = dict(self.progress.stages)
        for node, stage in stages.items():
            table.add_row(words.line(node), Text(stage, _STYLES.get(stage, "")))
        return table

    def _by_stage(self, counts: Mapping[str, int]) -> Table:
        table = _grid()
        for stage, number in sorted(counts.items(), key=lambda item: _ORDER.get(item[0], len(_ORDER) - 2.5)):
            table.add_row(str(number), Text(stage, _STYLES.get(stage, "")))
        return table


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True)
    return table
