"""plan: print the command line or the file for a launcher, and nothing else on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import (
    all_dropped,
    blocking_reasons,
    examined,
    language_for,
    nodes_file,
    refuse_nodes,
    say,
    say_dropped,
    say_unused_ignores,
    settings_of,
)
from ncheck.cli.options import (
    CONFIG,
    COUNTS,
    FOR,
    FORCE,
    GOOD,
    HISTORY,
    JOB,
    KEPT,
    NETWORK,
    NODES,
    PLANNED,
    RANKS,
    RECORDED,
    SSH,
    STORAGE,
    TIME,
    WHICH,
    EvalCommand,
    options,
    program_of,
)
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS

if TYPE_CHECKING:
    from ncheck.model.plan import LaunchPlan
    from ncheck.model.report import Report
    from ncheck.settings import Settings


@click.command(cls=EvalCommand, short_help="Print the command line that starts the job.")
@NODES
@options(
    FOR, RANKS, FORCE, NETWORK, KEPT, GOOD, HISTORY, RECORDED, WHICH, SSH, JOB, STORAGE, TIME, COUNTS, CONFIG, PLANNED
)
@click.pass_context
def plan(
    context: click.Context, /, nodes: tuple[str, ...], output: str | None, recording: str | None, **flags: object
) -> int:
    """Check the nodes, then print only the command line that starts the job on them, ready for a shell.

    \b
    ncheck plan nodes.txt -- python train.py --lr 0.1
    ncheck plan nodes.txt --for torchrun -- python train.py
    eval "$(ncheck plan nodes.txt --for env)"
    ncheck plan --from DIR            from what --record DIR saved

    Explanations go to standard error. If an error affects the plan, only the reasons are printed there and the exit
    code is 1 (--for env prints the word false, so that eval fails too); --force prints the plan anyway.
    """  # noqa: D301  click ends a paragraph's folding at \b
    if recording is not None:
        refuse_nodes(context, recording, nodes, flags)
        given = {**flags, "local": True, "program": program_of(context)}
        return plan_from(recording, given, as_json=output == "json")
    given = {**flags, "nodes_file": nodes_file(context, nodes), "program": program_of(context)}
    settings = replace(settings_of(given), select=(), probe="none")  # all checks run before a command line is printed
    from ncheck.cli.examine import observer_for

    report = examined(settings, observer_for(sys.stderr, os.environ, settings.longest))
    say_unused_ignores(settings.ignore, report)
    if report.interrupted:
        say("interrupted: no plan was made")
        return report.exit_code
    return print_plan(report, settings, as_json=output == "json")


def plan_from(directory: str, given: Mapping[str, object], *, as_json: bool) -> int:
    """Print the plan of a recording."""
    from ncheck.observer import Silent
    from ncheck.pipeline import replay

    settings = replace(settings_of(given), select=())
    report = say_dropped(replay(directory, settings, Silent()))
    say_unused_ignores(settings.ignore, report)
    return print_plan(report, settings, as_json=as_json)


def print_plan(report: Report, settings: Settings, *, as_json: bool) -> int:
    """Print the plan, unless errors affect it."""
    from ncheck.report.language import speaking

    with speaking(language_for(settings.lang, sys.stderr)):
        return _printed(report, settings, as_json=as_json)


def _printed(report: Report, settings: Settings, *, as_json: bool) -> int:
    from ncheck.report.language import tr
    from ncheck.report.summary import pins, python_not_judged

    reasons = blocking_reasons(report)
    launcher, text = _text(report.plan, settings, as_json=as_json)
    for message in (*reasons, *python_not_judged(report), *report.plan.notes):
        say(message)
    if text is None or all_dropped(report) or (reasons and not settings.force):
        possible = text is not None and not all_dropped(report)
        say(tr("no plan printed; --force prints it anyway") if possible else tr("no plan printed"))
        return EXIT_FINDINGS
    chosen = tr("plan for {launcher}", launcher=launcher)
    say(chosen if settings.launcher else tr("{plan} (choose another with --for)", plan=chosen))
    for reason in (*report.plan.reasons.get(launcher, ()), *pins(report.plan)):
        say(reason)
    if reasons:
        say(tr("printed because of --force"))
    click.echo(text)
    return EXIT_CLEAN


def _text(plan: LaunchPlan, settings: Settings, *, as_json: bool) -> tuple[str, str | None]:
    """Return the launcher and the text for standard output, None if there is no plan for it."""
    from ncheck.plan.launch import NoLineError
    from ncheck.plan.launchers import FILES

    launcher, text = settings.launcher or "env", None
    if plan.lines:
        launcher, text = next(iter(plan.lines.items()))
    elif settings.launcher is None:
        with suppress(NoLineError):  # the notes of the plan give the reason
            text = FILES["env"](plan, {})
    if as_json and text is not None:
        from ncheck.report.json import plan_as_json

        text = plan_as_json(plan)
    return launcher, text
