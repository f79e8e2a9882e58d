"""The command line: choose the command, and turn every error into a message and an exit code, here only."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import TextIO, cast

import click
from click.shell_completion import CompletionItem

from ncheck.cli.options import files
from ncheck.errors import EXIT_BUG, EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_USAGE, NcheckError
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.redact import redact
from ncheck.report import leave_quietly
from ncheck.text import printable
from ncheck.version import __version__

EXIT_BROKEN_PIPE = 141  # what a shell shows for a program killed by SIGPIPE

# A full disk, a stream that is open for reading only, a terminal that is gone.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO)

_USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)  # descriptors, memory, threads

_HELP = """Will this multi-node GPU job run, why not, and with which flags?

\b
ncheck nodes.txt -p 22    check the nodes of a file
ncheck -H node01,node02   check nodes by name
ncheck plan nodes.txt     print the command line that starts the job
ncheck launch nodes.txt -- python train.py   check, then start the job
ncheck probe nodes.txt    measure the bandwidth between the nodes
ncheck triage --logs DIR  find the cause in the logs of a job
ncheck                    check this machine, without SSH;
                          in a Slurm allocation: its nodes

Exit codes: 0 clean, 1 findings (see --fail-on), 2 usage error, 3 bug in ncheck, 130 interrupted.
"""

# Each command's module and function.
_PLACES = {
    "check": ("check", "check"), "local": ("check", "local"), "probe": ("check", "probe"),
    "replay": ("check", "replay"), "demo": ("check", "demo"), "init": ("good_run", "init"),
    "diff": ("good_run", "diff"),
    "history": ("history", "history"), "ticket": ("ticket", "ticket"), "verdict": ("verdict", "verdict"),
    "plan": ("plan", "plan"), "bundle": ("bundle", "bundle"),
    "launch": ("launch", "launch"), "triage": ("triage", "triage"), "explain": ("explain", "explain"),
    "list": ("explain", "list_checks"), "read": ("explain", "read"),
    "mcp": ("mcp", "mcp"), "schema": ("explain", "schema"), "allow": ("explain", "allow"),
    "speedup": ("speedup", "speedup"), "predict": ("predict", "predict"),
}  # fmt: skip


class Commands(click.Group):
    """A group whose default command is check: `ncheck nodes.txt` is `ncheck check nodes.txt`.

    Only the command that is called is imported.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*_PLACES, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name; None where there is none."""
        if cmd_name not in _PLACES:
            return super().get_command(ctx, cmd_name)
        module, function = _PLACES[cmd_name]
        return cast("click.Command", getattr(import_module(f"ncheck.cli.{module}"), function))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `check`, unless the first word is a command or an option of the group."""
        own = {*self.list_commands(ctx), "-h", "--help", "--version", *(args if args == ["-V"] else ())}
        completing_first = ctx.resilient_parsing and not args
        words = args if completing_first or (args and args[0] in own) else ["check", *args]
        # mpirun's -hostfile F and pssh's -h F would be help with exit code 0, after which a job would start
        if words[:1] == ["-h"] and len(words) > 1 and words[1] not in own and not ctx.resilient_parsing:
            raise click.UsageError(
                "-h shows the help; nodes are named as in: ncheck nodes.txt, or ncheck -H node01", ctx
            )
        for word in words[: words.index("--")] if "--" in words else words:
            if word.startswith("-h") and word not in ("-h", "-help") and not ctx.resilient_parsing:
                command = self.get_command(ctx, words[0])
                raise click.NoSuchOption(word, ctx=click.Context(command, ctx, words[0]) if command else ctx)
        return super().parse_args(ctx, words)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the first word: a command, or what check takes."""
        words = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            check = cast("click.Command", self.get_command(ctx, "check"))
            context = check.make_context("check", [], parent=ctx, resilient_parsing=True)
            return [*words, *check.shell_complete(context, incomplete)]
        return [*files(ctx, self.params[0], incomplete), *words]  # bash's script drops what comes before a file


@click.group(
    cls=Commands,
    help=_HELP,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    epilog="Options: ncheck check --help",
)
@click.version_option(__version__, "-V", "--version", message="ncheck %(version)s")
def commands() -> None:
    """Do nothing: the commands do the work."""


@click.command("help", hidden=True, short_help="Show the help of ncheck or of a command.")
@click.argument("command", required=False, shell_complete=lambda context, _, typed: _names(context, typed))
@click.pass_context
def help_(context: click.Context, command: str | None) -> None:
    """Show the help of ncheck, or of one of its commands."""
    parent = context.parent or context
    if command is None:
        click.echo(commands.get_help(parent))
        return
    found = commands.get_command(parent, command)
    if found is None:
        raise click.UsageError(f"no command is called {command!r}; ncheck help lists them, ncheck list the checks")
    click.echo(found.get_help(click.Context(found, info_name=command, parent=parent)))


def _names(context: click.Context, typed: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in commands.list_commands(context) if name.startswith(typed)]


@click.command(hidden=True, short_help="Print the version.")
def version() -> None:
    """Print the version of ncheck."""
    click.echo(f"ncheck {__version__}")


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, files and checks in a shell.

    \b
    eval "$(ncheck completion bash)"      in ~/.bashrc
    eval "$(ncheck completion zsh)"       in ~/.zshrc
    ncheck completion fish > ~/.config/fish/completions/ncheck.fish
    """  # noqa: D301  click ends a paragraph's folding at \b
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise NcheckError(f"this version of click has no completion for {shell}")
    click.echo(ShellComplete.source(kind(commands, {}, "ncheck", _COMPLETE)))


_COMPLETE = "_NCHECK_COMPLETE"  # set by the script when the shell asks for words; nothing is examined then


for _command in (help_, version, completion):
    commands.add_command(_command)


def _completed(request: str) -> int:
    """Answer the shell's request for words; print nothing else, whatever was typed so far."""
    from click.shell_completion import shell_complete

    try:
        return shell_complete(commands, {}, "ncheck", _COMPLETE, request)
    except (Exception, SystemExit):  # noqa: BLE001  an unfinished line is no error, and a message would mix with it
        return EXIT_FINDINGS


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. No exception leaves this function."""
    # None after `ncheck <&- >&- 2>&-`; in this order, each gets the number that it should have.
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stdout = sys.stdout or _nowhere("w")
    sys.stderr = sys.stderr or _nowhere("w")
    _replace_unencodable(sys.stdout, sys.stderr)
    if request := os.environ.get(_COMPLETE):
        return _completed(request)
    try:
        with commands.make_context("ncheck", list(args)) as context:
            code = commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:  # from --help and --version
        return ended.exit_code
    except click.ClickException as error:
        failure = _usage(error, args)
    except (KeyboardInterrupt, click.Abort):
        failure = NoResult(EXIT_INTERRUPTED, ("interrupted",))
    except (Exception, SystemExit) as error:  # noqa: BLE001  the one error handler; nothing of ours may call exit
        failure = _failure(error)
    else:
        return int(code or 0)
    return _report(failure, args)


@dataclass(frozen=True)
class NoResult:
    """Why there is no result: the exit code, and the lines for standard error."""

    code: int
    lines: tuple[str, ...] = ()


def _report(failure: NoResult, args: Sequence[str]) -> int:
    """Print why there is no result. Text from a user or a node in it cannot control the terminal."""
    lines = [redact(" ".join(message.split())) for message in failure.lines]
    for line in lines:
        with suppress(OSError):
            print(f"ncheck: {printable(line, longest=2000)}", file=sys.stderr, flush=True)  # noqa: T201
    if lines and _for_nagios(args):
        from ncheck.report.nagios import EXIT_UNKNOWN, no_report

        print(no_report(lines[0]))  # noqa: T201  a monitor shows only standard output
        return EXIT_UNKNOWN
    return failure.code


def _for_nagios(args: Sequence[str]) -> bool:
    """Look for -o nagios in a command line that may be invalid."""
    own = args[: args.index("--")] if "--" in args else args
    return "-onagios" in own or ("-o", "nagios") in pairwise(own)


def _failure(error: BaseException) -> NoResult:
    if isinstance(error, NcheckError):
        return NoResult(error.exit_code, (str(error),))
    if isinstance(error, BrokenPipeError):
        leave_quietly(sys.stdout)
        return NoResult(EXIT_BROKEN_PIPE)
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        leave_quietly(sys.stdout)
        return NoResult(EXIT_USAGE, (f"the output is incomplete: {error.strerror}",))
    if (
        isinstance(error, (MemoryError, SystemError))  # Python itself raises the latter where an import has no memory
        or (isinstance(error, OSError) and error.errno in _USED_UP)
        or (isinstance(error, RuntimeError) and str(error).startswith(("can't start new thread", "can't allocate")))
    ):
        why = getattr(error, "strerror", None) or str(error) or "out of memory"
        return NoResult(EXIT_USAGE, (f"this machine lets ncheck use too little: {why}; its limits: ulimit -a",))
    return _our_bug(error)


def _usage(error: click.ClickException, args: Sequence[str]) -> NoResult:
    """Return what is wrong with the command line, and which --help shows the options."""
    if isinstance(error, click.NoSuchOption):
        from ncheck.cli.unknown_option import to_type_instead, typed

        name = typed(error, args)
        error = click.UsageError(f"no such option: {quoted(name)}{to_type_instead(name, error.ctx)}", error.ctx)
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "ncheck"
    return NoResult(EXIT_USAGE, (f"{error.format_message().rstrip('.')} (see {path} --help)",))


def _our_bug(error: BaseException) -> NoResult:
    """Return an unexpected exception. The traceback is printed on request, and saved nowhere."""
    if os.environ.get("NCHECK_DEBUG") == "1":
        for line in redact("".join(traceback.format_exception(error))).splitlines():
            print(printable(line, longest=2000), file=sys.stderr)  # noqa: T201
    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"  # noqa: PTH119
    ours = (
        f"this is a bug in ncheck {__version__}, not in your cluster; nothing was saved. To report it, run the "
        "command again with NCHECK_DEBUG=1 in front, and send the output to the source of your ncheck"
    )
    return NoResult(EXIT_BUG, (what, ours))


def _nowhere(mode: str) -> TextIO:
    return cast("TextIO", open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123  open until the process ends


def _replace_unencodable(*streams: TextIO) -> None:
    """Print `?` for characters that the encoding of the terminal lacks, instead of failing."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")
