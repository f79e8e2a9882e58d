"""check, local, probe, replay, demo: the commands that end in a report."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import examined, language_for, nodes_file, say, say_unused_ignores, settings_of
from ncheck.cli.options import (
    AGAIN,
    CONFIG,
    COUNTS,
    DEPTH,
    FOR_HIDDEN,
    FORCE,
    GOOD,
    HEALTHY,
    HISTORY,
    JOB,
    JUDGE,
    KEPT,
    NETWORK,
    NODES,
    OUTPUT,
    PROBE,
    RANKS,
    RECORD,
    SSH,
    STORAGE,
    TIME,
    WHICH,
    EvalCommand,
    GroupedCommand,
    files,
    options,
    program_of,
)
from ncheck.errors import EXIT_CLEAN, EXIT_INTERRUPTED
from ncheck.hostlist import quoted
from ncheck.redact import redact

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings

Work = Callable[["Settings", "Observer"], "Report"]


@click.command(cls=GroupedCommand, short_help="Check the nodes of a file, or of -H.")
@NODES
@options(
    DEPTH, AGAIN, WHICH, SSH, JOB, STORAGE, NETWORK, FORCE, TIME, PROBE, JUDGE, CONFIG, OUTPUT, GOOD, HISTORY, RECORD
)
@click.pass_context
def check(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Check the nodes of a file (- for standard input): one host per line, an mpirun hostfile, or node[01-16].

    Without a file: the nodes of -H, of the Slurm allocation, or this machine.
    """
    return run_and_show(examined, {**flags, "nodes_file": nodes_file(context, nodes)})


@click.command(cls=GroupedCommand)
@options(DEPTH, AGAIN, JOB, STORAGE, FORCE, TIME, PROBE, JUDGE, CONFIG, OUTPUT, HISTORY, RECORD)
def local(**flags: object) -> int:
    """Check only this machine, without SSH."""
    return run_and_show(examined, {**flags, "local": True})


@click.command(cls=GroupedCommand, short_help="Measure the bandwidth between the nodes.")
@NODES
@options(
    DEPTH, PROBE, WHICH, SSH, JOB, RANKS, FORCE, NETWORK, KEPT, TIME, COUNTS, CONFIG, OUTPUT, GOOD, HISTORY, RECORD
)
@click.pass_context
def probe(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Measure the bandwidth inside the nodes of a file, between pairs of them and between all, using the launch plan.

    \b
    ncheck probe nodes.txt
    ncheck probe nodes.txt --probe tcp --probe-time 30

    Only what the launch plan depends on is checked first. If an error affects the plan, nothing is measured and the
    exit code is 1; --force measures anyway. What could not be measured counts as unknown.
    """  # noqa: D301  click ends a paragraph's folding at \b
    if flags.get("probe") == "none":
        raise click.UsageError("--probe none measures nothing: remove it, or run ncheck check", context)
    if flags.get("level") == "quick":
        raise click.UsageError("--level quick measures nothing: remove it, or run ncheck check", context)
    return run_and_show(examined, {**flags, "nodes_file": nodes_file(context, nodes)}, probe_settings)


def probe_settings(settings: Settings) -> Settings:
    """Select the checks of the plan and of the measurements. --probe none in ncheck.toml is meant for ncheck check."""
    from ncheck.steps.blockers import for_the_probe
    from ncheck.steps.registry import load_checks

    method = "auto" if settings.probe == "none" else settings.probe
    codes = tuple(check.code for check in load_checks(settings.run.own_checks).listed if for_the_probe(check, settings))
    return replace(settings, probe=method, select=codes, run=replace(settings.run, probe_wanted=True))


@click.command(cls=EvalCommand, short_help="Judge a recording again (from --record DIR).")
@click.argument("words", nargs=-1, required=True, metavar="DIR", shell_complete=files)
@options(JUDGE, FOR_HIDDEN, RANKS, FORCE, NETWORK, KEPT, HISTORY, CONFIG, OUTPUT)
@click.pass_context
def replay(context: click.Context, /, words: tuple[str, ...], **flags: object) -> int:
    """Judge again what --record DIR saved, without nodes, GPUs or SSH.

    To print the command line that starts the job: ncheck plan --from DIR.
    """
    from ncheck.pipeline import replay as replayed

    directory, *others = words
    given = {**flags, "local": True, "program": program_of(context)}
    if others == ["plan"]:  # what is now ncheck plan --from DIR
        return _replay_plan(context, directory, given)
    if others:
        raise click.UsageError(f"only one recording is allowed: unexpected argument {quoted(others[0])}", context)
    if flags["launcher"]:
        line = shlex.join(["ncheck", "plan", "--from", directory, "--for", str(flags["launcher"])])
        raise click.UsageError(f"to print a plan: {line}", context)
    return run_and_show(lambda settings, observer: replayed(directory, settings, observer), given)


def _replay_plan(context: click.Context, directory: str, given: Mapping[str, object]) -> int:
    from ncheck.cli.plan import plan_from

    form = given["output"]
    if form not in ((), ("line",), ("json",)):
        raise click.UsageError("-o: a plan is printed as line or json", context)
    settings = {name: value for name, value in given.items() if name not in ("output", "color", "verbose", "quiet")}
    return plan_from(directory, settings, as_json=form == ("json",))


@click.command(cls=GroupedCommand, short_help="Show ncheck on a simulated faulty cluster.")
@click.argument("cluster", required=False, metavar="[CLUSTER]")
@options(HEALTHY, JUDGE, OUTPUT)
@click.pass_context
def demo(context: click.Context, /, cluster: str | None, *, healthy: bool, **flags: object) -> int:
    """Examine a simulated faulty cluster: temporary SSH servers on this machine with recorded answers.

    \b
    ncheck demo                      nodes with several faults
    ncheck demo --healthy            nodes without any
    ncheck demo slow-node-and-rail   a recorded bandwidth test

    The exit code is 0 if the demo itself worked, whatever the report says.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck import demo as simulated

    if healthy and cluster:
        raise click.UsageError(f"--healthy is a cluster of its own: remove it, or {cluster}", context)

    def rehearsed(settings: Settings, observer: Observer) -> Report:
        name = simulated.HEALTHY if healthy else simulated.CLUSTER
        return simulated.run(settings, observer, cluster or name)

    code = run_and_show(rehearsed, {**flags, "local": True, "config": "none"})
    if code == EXIT_INTERRUPTED:
        return code
    other = "" if healthy or cluster else "; a cluster without faults: ncheck demo --healthy"
    click.echo(f"ncheck: the demo worked, so its own exit code is 0{other}", err=True)
    return EXIT_CLEAN


def run_and_show(work: Work, given: Mapping[str, object], adjust: Callable[[Settings], Settings] | None = None) -> int:
    """Make settings from the options, do the work with an observer, and print its report."""
    flags = dict(given)
    color, dry_run = flags.pop("color", None), flags.pop("dry_run", False)
    verbose, quiet = flags.pop("verbose", False), flags.pop("quiet", False)
    if verbose and quiet:
        raise click.UsageError("-v and -q contradict each other: remove one of them")
    settings = adjust(settings_of(flags)) if adjust else settings_of(flags)
    if dry_run:
        from ncheck.cli.dry_run import dry_run as described

        click.echo(redact(described(settings)))
        return EXIT_CLEAN
    from ncheck.cli.examine import observer_for
    from ncheck.observer import Silent
    from ncheck.report import show_all
    from ncheck.report.language import speaking
    from ncheck.settings import Output

    report = work(settings, Silent() if quiet else observer_for(sys.stderr, os.environ, settings.longest))
    chosen = "verbose" if verbose else "quiet" if quiet else "console"
    outputs = [replace(one, form=chosen) if one.form == "console" else one for one in settings.output]
    files = [one.path for one in outputs if one.path]
    if len(files) == len(outputs):
        outputs.append(Output("quiet"))  # the answer is printed in any case
    color = color if isinstance(color, bool) else None
    with speaking(language_for(settings.lang, sys.stdout)):
        code = show_all(report, outputs, sys.stdout, os.environ, color=color, columns=settings.columns)
    if files:
        say(f"wrote {', '.join(files)}")
    for sentence in report.news if quiet else ():  # one may be that the run was not kept
        say(f"history: {sentence}")
    say_unused_ignores(settings.ignore, report)
    return code
