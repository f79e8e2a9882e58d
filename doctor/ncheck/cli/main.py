"""The command line: which command is meant, and the one place where an error becomes words and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TextIO

import click

import ncheck
from ncheck.cli.ask import explain, list_checks, read, schema
from ncheck.cli.launch import launch
from ncheck.cli.plan import plan
from ncheck.cli.probe import probe
from ncheck.cli.run import check, demo, local, replay
from ncheck.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_USAGE, NcheckError
from ncheck.report import leave_quietly
from ncheck.text import printable

EXIT_BROKEN_PIPE = 141  # what a shell shows for a program whose reader went away


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_HELP = """Will this multi-node GPU job run, why not, and with which flags?

\b
ncheck nodes.txt -p 22    check the nodes of a file
ncheck -H node01,node02   check these
ncheck plan nodes.txt     print the line that starts the job
ncheck launch nodes.txt -- python train.py   check, then start it
ncheck probe nodes.txt    measure the bandwidth between them
ncheck                    check this machine, with no SSH;
                          in a Slurm allocation, its nodes

Exit code: 0 clean, 1 findings (see --fail-on), 2 usage, 3 a bug of ncheck's, 130 interrupted.
"""


class Commands(click.Group):
    """A group whose default command is check: `ncheck nodes.txt` is `ncheck check nodes.txt`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `check` in front, unless a command or an option of the group itself stands there."""
        own = {*self.commands, "--help", "--version"}
        return super().parse_args(ctx, args if args and args[0] in own else ["check", *args])


@click.group(
    cls=Commands,
    help=_HELP,
    context_settings={"max_content_width": 100},
    epilog="ncheck check --help shows the options.",
)
@click.version_option(ncheck.__version__, message="ncheck %(version)s")
def commands() -> None:
    """Do nothing of its own: what is done is done by a command."""


for _command in (check, local, plan, launch, probe, replay, demo, explain, list_checks, read, schema):
    commands.add_command(_command)


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Nothing but a return leaves here."""
    sys.stdout = sys.stdout or _nowhere()  # `ncheck >&-` leaves None there
    sys.stderr = sys.stderr or _nowhere()
    _never_fail_to_print(sys.stdout, sys.stderr)
    try:
        with commands.make_context("ncheck", list(args)) as context:
            code = commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:  # --help and --version end so
        return ended.exit_code
    except click.ClickException as error:
        return _usage(error)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", EXIT_INTERRUPTED)
    except (Exception, SystemExit) as error:  # noqa: BLE001  the one error handler; nothing of ours may call exit
        return _ended_by(error)
    return int(code or 0)


def _ended_by(error: BaseException) -> int:
    if isinstance(error, NcheckError):
        return _say(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError):
        leave_quietly(sys.stdout)
        return EXIT_BROKEN_PIPE
    if isinstance(error, OSError) and error.errno in _FULL:
        leave_quietly(sys.stdout)
        return _say(f"not all could be written: {error.strerror}", EXIT_USAGE)
    return _our_bug(error)


def _usage(error: click.ClickException) -> int:
    """Say what is wrong with the command line, in one line, and where its options are told."""
    if isinstance(error, click.NoSuchOption):
        error = click.NoSuchOption(error.option_name, possibilities=_near(error), ctx=error.ctx)
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "ncheck"
    return _say(f"{error.format_message().rstrip('.')} (see {path} --help)", EXIT_USAGE)


def _near(error: click.NoSuchOption) -> list[str]:
    """Return the options that may have been meant; click's own search takes --json for --sudo."""
    from difflib import get_close_matches

    if error.option_name == "--json":
        return ["-o json"]
    return get_close_matches(error.option_name, error.possibilities or (), cutoff=0.75)


def _say(message: str, code: int) -> int:
    """Print one line on standard error; what a user or a node wrote in it cannot steer the terminal."""
    print(f"ncheck: {printable(' '.join(message.split()), longest=2000)}", file=sys.stderr)  # noqa: T201
    return code


def _our_bug(error: BaseException) -> int:
    """Own up. The traceback is for whoever mends it, and is saved nowhere."""
    if os.environ.get("NCHECK_DEBUG") == "1":
        traceback.print_exception(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    _say(f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})", EXIT_BUG)  # noqa: PTH119
    return _say(
        f"this is a bug of ncheck {ncheck.__version__}, not of your cluster, and nothing of it was saved. To report "
        "it, run the same again with NCHECK_DEBUG=1 in front, and send what that prints to whom you have ncheck from",
        EXIT_BUG,
    )


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  it lives as long as the process


def _never_fail_to_print(*streams: TextIO) -> None:
    """Let a character that the terminal's encoding lacks come out as `?` rather than end the run."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")
