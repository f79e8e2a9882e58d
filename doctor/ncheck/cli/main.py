"""The command line: choose the command, and turn every error into a message and an exit code, here only."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TextIO

import click

import ncheck
from ncheck.cli.check import check, demo, local, probe, replay
from ncheck.cli.explain import allow, explain, list_checks, read, schema
from ncheck.cli.launch import launch
from ncheck.cli.plan import plan
from ncheck.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_USAGE, NcheckError
from ncheck.redact import redact
from ncheck.report import leave_quietly
from ncheck.text import printable

EXIT_BROKEN_PIPE = 141  # what a shell shows for a program killed by SIGPIPE

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_HELP = """Will this multi-node GPU job run, why not, and with which flags?

\b
ncheck nodes.txt -p 22    check the nodes of a file
ncheck -H node01,node02   check nodes by name
ncheck plan nodes.txt     print the command line that starts the job
ncheck launch nodes.txt -- python train.py   check, then start the job
ncheck probe nodes.txt    measure the bandwidth between the nodes
ncheck                    check this machine, without SSH;
                          in a Slurm allocation: its nodes

Exit codes: 0 clean, 1 findings (see --fail-on), 2 usage error, 3 bug in ncheck, 130 interrupted.
"""


class Commands(click.Group):
    """A group whose default command is check: `ncheck nodes.txt` is `ncheck check nodes.txt`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `check`, unless the first word is a command or an option of the group."""
        own = {*self.commands, "--help", "--version"}
        return super().parse_args(ctx, args if args and args[0] in own else ["check", *args])


@click.group(
    cls=Commands,
    help=_HELP,
    context_settings={"max_content_width": 100},
    epilog="Options: ncheck check --help",
)
@click.version_option(ncheck.__version__, message="ncheck %(version)s")
def commands() -> None:
    """Do nothing: the commands do the work."""


for _command in (check, local, plan, launch, probe, replay, demo, explain, list_checks, read, schema, allow):
    commands.add_command(_command)


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. No exception leaves this function."""
    sys.stdout = sys.stdout or _nowhere()  # None after `ncheck >&-`
    sys.stderr = sys.stderr or _nowhere()
    _replace_unencodable(sys.stdout, sys.stderr)
    try:
        with commands.make_context("ncheck", list(args)) as context:
            code = commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:  # from --help and --version
        return ended.exit_code
    except click.ClickException as error:
        failure = _usage(error)
    except (KeyboardInterrupt, click.Abort):
        failure = Failure(EXIT_INTERRUPTED, ("interrupted",))
    except (Exception, SystemExit) as error:  # noqa: BLE001  the one error handler; nothing of ours may call exit
        failure = _failure(error)
    else:
        return int(code or 0)
    return _report(failure, args)


@dataclass(frozen=True)
class Failure:
    """Why there is no result: the exit code, and the lines for standard error."""

    code: int
    lines: tuple[str, ...] = ()


def _report(failure: Failure, args: Sequence[str]) -> int:
    """Print why there is no result. Text from a user or a node in it cannot control the terminal."""
    lines = [redact(" ".join(message.split())) for message in failure.lines]
    for line in lines:
        print(f"ncheck: {printable(line, longest=2000)}", file=sys.stderr)  # noqa: T201
    if lines and _for_nagios(args):
        from ncheck.report.nagios import EXIT_UNKNOWN, no_report

        print(no_report(lines[0]))  # noqa: T201  a monitor shows only standard output
        return EXIT_UNKNOWN
    return failure.code


def _for_nagios(args: Sequence[str]) -> bool:
    """Look for -o nagios in a command line that may be invalid."""
    own = args[: args.index("--")] if "--" in args else args
    return "-onagios" in own or ("-o", "nagios") in pairwise(own)


def _failure(error: BaseException) -> Failure:
    if isinstance(error, NcheckError):
        return Failure(error.exit_code, (str(error),))
    if isinstance(error, BrokenPipeError):
        leave_quietly(sys.stdout)
        return Failure(EXIT_BROKEN_PIPE)
    if isinstance(error, OSError) and error.errno in _FULL:
        leave_quietly(sys.stdout)
        return Failure(EXIT_USAGE, (f"the output is incomplete: {error.strerror}",))
    return _our_bug(error)


def _usage(error: click.ClickException) -> Failure:
    """Return what is wrong with the command line, and which --help shows the options."""
    if isinstance(error, click.NoSuchOption):
        error = click.NoSuchOption(error.option_name, possibilities=_similar(error), ctx=error.ctx)
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "ncheck"
    return Failure(EXIT_USAGE, (f"{error.format_message().rstrip('.')} (see {path} --help)",))


def _similar(error: click.NoSuchOption) -> list[str]:
    """Return options with similar names; click's own search suggests --sudo for --json."""
    from difflib import get_close_matches

    if error.option_name == "--json":
        return ["-o json"]
    return get_close_matches(error.option_name, error.possibilities or (), cutoff=0.75)


def _our_bug(error: BaseException) -> Failure:
    """Return an unexpected exception. The traceback is printed on request, and saved nowhere."""
    if os.environ.get("NCHECK_DEBUG") == "1":
        for line in redact("".join(traceback.format_exception(error))).splitlines():
            print(printable(line, longest=2000), file=sys.stderr)  # noqa: T201
    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"  # noqa: PTH119
    ours = (
        f"this is a bug in ncheck {ncheck.__version__}, not in your cluster; nothing was saved. To report it, run the "
        "command again with NCHECK_DEBUG=1 in front, and send the output to the source of your ncheck"
    )
    return Failure(EXIT_BUG, (what, ours))


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  open until the process ends


def _replace_unencodable(*streams: TextIO) -> None:
    """Print `?` for characters that the encoding of the terminal lacks, instead of failing."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")
