"""triage: the cause of a job that hangs, fails or crawls."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ncheck.api import TRIAGE_DEADLINE
from ncheck.cli.options import (
    CONFIG,
    HISTORY,
    HOSTS,
    JOB,
    PACE,
    SPOKEN,
    SSH,
    GroupedCommand,
    GroupedOption,
    files,
    options,
)
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, InventoryError
from ncheck.model.job import Target, target_of

if TYPE_CHECKING:
    from ncheck.settings import Settings
    from ncheck.triage.join import LiveReport
    from ncheck.triage.logs import LogReport


def _option(*names: str, heading: str = "Running job", **words: Any) -> Any:  # noqa: ANN401  click's own
    return click.option(*names, cls=GroupedOption, heading=heading, **words)


RUNNING = (
    _option("--job", metavar="PID", help="The job of this rank or launcher: 4711, or gpu02:4711."),
    _option("--match", metavar="REGEX", help="The job, or the processes, with a command line that this matches."),
    _option("--slurm", "slurm_job", metavar="JOBID", help="This job of Slurm; without NODES, on its own nodes."),
    _option("--no-stacks", is_flag=True, help="Do not read the stacks of the ranks."),
    _option("--native", is_flag=True, help="Native frames too: pauses each rank for some milliseconds."),
    _option("--dump", is_flag=True, help="Ask PyTorch for a dump of its flight recorder, where it listens for that."),
    _option("--ras", is_flag=True, help="Ask NCCL's RAS, too, where that can crash a job (2.26.2 to 2.29.1)."),
    _option("--save", metavar="FILE", help="Keep what was seen, for ncheck triage FILE.", shell_complete=files),
)
WATCH = (
    _option("--watch", heading="Watch", is_flag=True, help="Watch the job until it has ended, or stands still."),
    _option(
        "--stalled", heading="Watch", metavar="TIME",
        help="Examine a job that has made no progress for so long: 90s, 2m.  [2m]",
    ),
    _option(
        "--on-stall", heading="Watch", metavar="COMMAND",
        help="Run this by sh when the job stands still, and go on watching.  [end with exit code 1]",
    ),
)  # fmt: skip
LOGS = _option("--logs", heading="Logs", is_flag=True, help="Each PATH is a log, a folder of logs, or - (stdin).")
OUTPUT = _option(
    "-o", "output", heading="Output", type=click.Choice(["console", "json"]), default="console",
    help="Output format.  [console]",
)  # fmt: skip
LIMIT = _option(
    "--deadline",
    heading="Limits",
    metavar="S",
    help=f"Time limit of the whole run in seconds.  [{TRIAGE_DEADLINE:.0f}]",
)


@click.command(cls=GroupedCommand, short_help="Find the cause of a job that hangs or fails.")
@click.argument("paths", nargs=-1, metavar="[NODES | FILE | PATH...]", shell_complete=files)
@options(RUNNING, WATCH, (LOGS,), HOSTS, SSH, JOB, PACE, (LIMIT,), HISTORY[:2], CONFIG, (OUTPUT,), SPOKEN)
@click.pass_context
def triage(context: click.Context, /, paths: tuple[str, ...], *, logs: bool, output: str, **given: Any) -> int:  # noqa: ANN401
    """Find the cause of a job that hangs, fails or crawls: cause, rank, node, evidence, fix.

    \b
    ncheck triage nodes.txt                         the job that runs on these nodes, looked at but not touched
    ncheck triage nodes.txt --save hang.zip         and keep what was seen
    ncheck triage hang.zip                          judge that again, anywhere
    ncheck triage nodes.txt --history cluster.db    and keep the diagnoses by node, for ncheck history
    ncheck triage --watch nodes.txt                 look at it now and then until it ends, and say when it hangs
    ncheck triage --logs job.log                    one log, all ranks in it
    ncheck triage --logs logs/ slurm-812.out.gz     folders, and logs packed with gzip, bzip2, xz or zstd
    journalctl -k | ncheck triage --logs -

    Without NODES: the nodes of the Slurm allocation, or this machine. A running job is only looked at: nothing is
    signalled, stopped or changed. All logs are read together: of two failures the first one counts, and a rank that
    failed counts more than ranks that only waited for it. docs/causes.md explains each cause.

    Exit codes: 0 the job gets on, or waits for a rank that works; no known failure in the logs. 1 something is named at
    50 % or more, the job stands still and nothing shows why, or something could not be looked at or was empty; of logs,
    any diagnosis. 2 usage error.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.cli.examine import language_for
    from ncheck.report.language import speaking

    with speaking(language_for(given.pop("lang"), sys.stdout)):
        if given["watch"]:
            return _watched(context, paths, given, logs=logs, output=output)
        report = _of_logs(paths, given) if logs else _of_job(context, paths, given)
        from ncheck.triage.report import as_json, print_triage

        if output == "json":
            click.echo(as_json(report), nl=False)
        else:
            print_triage(report, sys.stdout, os.environ)
    return EXIT_FINDINGS if report.wrong else EXIT_CLEAN


def _of_logs(paths: tuple[str, ...], given: dict[str, Any]) -> LogReport:
    if not paths:
        raise click.UsageError("name a log, a folder with logs, or - for standard input")
    _refuse("--logs reads files alone", given)
    from ncheck.triage.logs import examine_logs

    return examine_logs(paths, sys.stdin.buffer)


def _of_job(context: click.Context, paths: tuple[str, ...], given: dict[str, Any]) -> LiveReport:
    from ncheck.cli.examine import nodes_file
    from ncheck.fleet.archive import is_archive, load_archive, save_archive
    from ncheck.triage.diagnosis_history import kept
    from ncheck.triage.facts.jobs import job_of
    from ncheck.triage.join import examine_job
    from ncheck.triage.live import cluster_of

    for name in ("stalled", "on_stall"):
        if given.pop(name) is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --watch")
    del given["watch"]
    target, save = _target(given), given.pop("save")
    if len(paths) == 1 and is_archive(paths[0]):
        _refuse(f"{paths[0]} was saved before", given)
        evidence, saved = load_archive(paths[0])
        return examine_job(cluster_of(evidence), target if target.names_one else saved)
    settings = _settings(given, nodes_file(context, paths), target)
    if save:
        from ncheck.files import writable

        writable(save, "--save", settings.nodes_file)
    from ncheck.cli.examine import observer_for
    from ncheck.cli.process import prepare_fan_out, process_seconds
    from ncheck.pipeline import triage as looked_at

    prepare_fan_out(many=not settings.local and settings.via == "ssh")
    began = time.time()
    try:
        evidence = looked_at(settings, observer_for(sys.stderr, os.environ, settings.deadline), process_seconds())
    except InventoryError as error:
        if not paths or paths[0] == "-":
            raise
        raise InventoryError(f"{error}; if it is a log: ncheck triage --logs {shlex.quote(paths[0])}") from None
    cluster = cluster_of(evidence)
    if save:
        save_archive(save, evidence, job_of(cluster, target))
    return kept(examine_job(cluster, target), settings, began)


def _watched(context: click.Context, paths: tuple[str, ...], given: dict[str, Any], *, logs: bool, output: str) -> int:
    from ncheck.cli.examine import nodes_file
    from ncheck.cli.watch import watched, watching_of
    from ncheck.fleet.archive import is_archive

    if logs or (len(paths) == 1 and is_archive(paths[0])):
        raise click.UsageError("--watch looks at a job that runs, not at files")
    del given["watch"]
    save = given.pop("save")
    how = watching_of(given.pop("stalled"), given.pop("on_stall"), save, as_json=output == "json")
    target = _target(given)
    settings = _settings(given, nodes_file(context, paths), target)
    if save:
        from ncheck.files import writable

        writable(save, "--save", settings.nodes_file)
    return watched(settings, how)


def _target(given: dict[str, Any]) -> Target:
    """Take what names the job out of the options."""
    return target_of(
        given.pop("job"), given.pop("match"), given.pop("slurm_job"),
        stacks=not given.pop("no_stacks"), native=given.pop("native"), dump=given.pop("dump"), ras=given.pop("ras"),
    )  # fmt: skip


def _settings(given: dict[str, Any], path: str | None, target: Target) -> Settings:
    from ncheck.cli.examine import settings_of

    given = {**given, "nodes_file": path}
    if path is None and given.get("hosts") is None and target.slurm is not None:
        from ncheck.inventory.read import nodes_of_job

        given["hosts"] = nodes_of_job(target.slurm)
    settings = settings_of(given)
    deadline = TRIAGE_DEADLINE if given["deadline"] is None else settings.deadline
    return replace(settings, deadline=deadline, run=replace(settings.run, target=target))


def _refuse(why: str, given: dict[str, Any]) -> None:
    """Refuse options that mean nothing where no node is asked."""
    words = {"slurm_job": "--slurm", "hosts": "-H", "identity": "-i", "ssh_config": "-F"}
    named = [name for name, value in given.items() if value not in (None, False) and name != "config"]
    if named:
        flags = ", ".join(words.get(name, "--" + name.replace("_", "-")) for name in named)
        raise click.UsageError(f"{why}: {flags} is for a running job")
