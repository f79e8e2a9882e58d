"""plan: the line to type, or the file, and nothing else on standard output."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examined import against, all_dropped, examined, say, say_in_vain
from ncheck.cli.options import CONFIG, COUNTS, FOR, GOOD, JOB, KEPT, NETWORK, PLANNED, RANKS, SSH, TIME, WHICH, options
from ncheck.cli.program import EvalCommand, program_of
from ncheck.cli.run import one_file, settings_of
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS

if TYPE_CHECKING:
    from ncheck.model.plan import LaunchPlan
    from ncheck.model.report import Report
    from ncheck.settings import Settings


@click.command(cls=EvalCommand, short_help="Print the line that starts the job.")
@click.argument("nodes", nargs=-1, metavar="[NODES]")
@options(FOR, RANKS, NETWORK, KEPT, GOOD, WHICH, SSH, JOB, TIME, COUNTS, CONFIG, PLANNED)
@click.pass_context
def plan(context: click.Context, /, nodes: tuple[str, ...], output: str | None, **flags: object) -> int:
    """Check the nodes, then print the line that starts the job on them: that alone, ready for a shell.

    \b
    ncheck plan nodes.txt -- python train.py --lr 0.1
    ncheck plan nodes.txt --for torchrun -- python train.py
    eval "$(ncheck plan nodes.txt --for env)"

    What it is for and what it cannot say stands on standard error. Where something is wrong that touches the plan,
    nothing is printed but the reasons there (--for env: the word false, so that eval fails too), and the exit code
    is 1; --force prints it all the same.
    """  # noqa: D301  click ends a paragraph's folding at \b
    given = {**flags, "nodes_file": one_file(context, nodes), "program": program_of(context)}
    # Every check has its say about a line that is to be typed; and the file's output is that of reports.
    settings = replace(settings_of(given), select=(), output=output or "line", probe="none")
    from ncheck.report.progress import observer_for

    report = examined(settings, observer_for(sys.stderr, os.environ))
    say_in_vain(settings, report)
    if report.interrupted:
        say("interrupted: there is no plan")
        return report.exit_code
    return _given_out(report, settings)


def _given_out(report: Report, settings: Settings) -> int:
    """Print what was asked for, unless something is against it."""
    reasons = against(report, settings)
    launcher, text = _text(report.plan, settings)
    for told in (*reasons, *report.plan.notes):
        say(told)
    if text is None or all_dropped(report) or (reasons and not settings.force):
        helps = text is not None and not all_dropped(report)
        say("so there is no plan" + (": --force prints it all the same" if helps else ""))
        return EXIT_FINDINGS
    say(f"for {launcher}" + ("" if settings.launcher else ", since nothing else was asked for (--for)"))
    for reason in report.plan.reasons.get(launcher, ()):
        say(reason)
    if reasons:
        say("printed all the same: --force")
    click.echo(text)
    return EXIT_CLEAN


def _text(plan: LaunchPlan, settings: Settings) -> tuple[str, str | None]:
    """Return the launcher and what goes to standard output for it, None where there is nothing to give."""
    from ncheck.plan.launch import NoLineError
    from ncheck.plan.launchers import FILES

    launcher, text = settings.launcher or "env", None
    if plan.lines:
        launcher, text = next(iter(plan.lines.items()))
    elif settings.launcher is None:
        with suppress(NoLineError):  # the plan's notes say why
            text = FILES["env"](plan, {})
    if settings.output == "json" and text is not None:
        from ncheck.report.json import plan_as_json

        text = plan_as_json(plan)
    return launcher, text
