"""The options in the groups of --help, and the kinds of commands. A parameter has the name of its field in Settings.

The options themselves are rows of settings/options.py, and each row names its group. They have no default for click:
an option that was not given is None, and ncheck.toml or Settings decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ncheck.launchers import LAUNCHER_TABLE
from ncheck.settings import FORMATS
from ncheck.settings import options as rows
from ncheck.settings import values as read

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


class GroupedOption(click.Option):
    """An option with the heading under which --help shows it."""

    def __init__(self, *args: Any, heading: str = "Other", **kwargs: Any) -> None:  # noqa: ANN401  click's own
        super().__init__(*args, **kwargs)
        self.heading = heading

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401, ARG002  click's own
        """Leave out what click would add: `help` gives the default and the range where they matter."""
        return {}


class GroupedCommand(click.Command):
    """A command whose --help shows the options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "heading", "Other"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


_PROGRAM = "ncheck.program"  # key of click's context


class ProgramCommand(GroupedCommand):
    """A command that takes a program after `--`, word for word: `program_of` returns it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the program aside before click reads the options."""
        if "--" in args and not ctx.resilient_parsing:
            at = args.index("--")
            args, program = args[:at], args[at + 1 :]
            if not program or not program[0].strip() or program[0].startswith("-"):
                raise click.UsageError(f"a program must follow --, as in: {ctx.command_path} -- python train.py", ctx)
            ctx.meta[_PROGRAM] = tuple(program)
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the place of the program."""
        formatter.write_usage(ctx.command_path, " ".join([*self.collect_usage_pieces(ctx), "[-- PROGRAM ...]"]))


class EvalCommand(ProgramCommand):
    """A command that prints `false` if a shell expects exports from --for env and there are none.

    `eval "$(...)"` of nothing succeeds, and the script would continue without the variables.
    """

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:  # noqa: ANN401  click's own
        promised = _asks_for_env(args)  # before click, which removes the words that it reads
        try:
            return super().make_context(info_name, args, *rest, **extra)
        except click.ClickException:
            _false(promised=promised)
            raise

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  click's own
        promised = ctx.params.get("launcher") == "env"
        try:
            code = super().invoke(ctx)
        except BaseException:
            _false(promised=promised)
            raise
        _false(promised=promised and bool(code))
        return code


def program_of(ctx: click.Context) -> tuple[str, ...]:
    """Return the words after `--`, or none."""
    program: tuple[str, ...] = ctx.meta.get(_PROGRAM, ())
    return program


def _false(*, promised: bool) -> None:
    if promised:
        click.echo("false")


def _asks_for_env(args: list[str]) -> bool:
    """Look for --for env, or --with env, in a command line that may be invalid."""
    own = args[: args.index("--")] if "--" in args else args
    return any(f"{flag}=env" in own or (flag, "env") in pairwise(own) for flag in ("--for", "--with"))


def files(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Let the shell complete a path."""
    return [CompletionItem(typed, type="file")]


def checks(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the code or the name of a check, also the last of a,b."""
    from ncheck.steps.registry import load_checks

    before, comma, last = typed.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{word}", help=check.title)
        for check in load_checks().listed
        for word in (check.code, check.name)
        if word.lower().startswith(last.lower()) and (last or word == check.code)
    ]


def formats(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    return [CompletionItem(form) for form in FORMATS if form.startswith(typed)]


_COMPLETED = {"FILE": files, "KEY": files, "PATH": files, "DIR": files, "REPORT": files, "CHECK": checks,
              "CHECK[=NODES]": checks, "FORMAT[=FILE]": formats}  # fmt: skip


def _option(heading: str, *flags: str, **words: Any) -> Decorator[Any]:  # noqa: ANN401  click's own
    completed = _COMPLETED.get(words.get("metavar") or "")
    return click.option(*flags, cls=GroupedOption, heading=heading, shell_complete=completed, **words)


def _setting(name: str, *flags: str, heading: str = "", **others: Any) -> Decorator[Any]:  # noqa: ANN401  click's own
    """Return the option of a setting, with other flags or words of click where a command has its own."""
    row = rows.OPTIONS[name]
    words: dict[str, Any] = {"metavar": row.metavar, "help": row.help, "multiple": row.repeated}
    if row.read is read.flag:
        if any(name in level for level in rows.LEVELS.values()):
            flags = (f"{row.flag}/--no-{row.flag.removeprefix('--')}",)  # what a level turns on can be turned off
        words = {"is_flag": True, "default": None, "help": row.help}
    elif isinstance(row.read, read.OneOf):
        words["type"] = click.Choice(row.read.choices)
    return _option(heading or row.group.heading, *(flags or row.flags), name, **{**words, **others})


def _read_by(reader: Callable[[object], object]) -> Callable[[click.Context, click.Parameter, str | None], object]:
    """Return what reads an option that is no setting."""

    def read_option(context: click.Context, parameter: click.Parameter, typed: str | None) -> object:
        try:
            return None if typed is None else reader(typed)
        except ValueError as error:
            raise click.UsageError(f"{parameter.opts[0]}: {error}", context) from None

    return read_option


def _group(group: rows.Group) -> tuple[Decorator[Any], ...]:
    return tuple(_setting(name) for name, row in rows.OPTIONS.items() if row.group is group)


NODES = click.argument("nodes", nargs=-1, metavar="[NODES]", shell_complete=files)

# The options that several commands share, in the order of --help.
HOSTS = (_setting("hosts"), _setting("via"))
DEPTH, AGAIN = map(_group, (rows.DEPTH, rows.AGAIN))
WHICH, SSH, JOB, STORAGE = map(_group, (rows.WHICH, rows.SSH, rows.JOB, rows.STORAGE))
NETWORK, RANKS, KEPT, FORCE = map(_group, (rows.NETWORK, rows.RANKS, rows.KEPT, rows.FORCE))
FOR = (_setting("launcher", "--for", "--with"),)
FOR_HIDDEN = (_setting("launcher", "--for", "--with", hidden=True),)
# These start all ranks from one command line. The lines of the others are typed on every node.
STARTS_ALL = tuple(name for name, launcher in LAUNCHER_TABLE.items() if launcher.one_command)
WITH = (
    _setting(
        "launcher", "--with", "--for",
        help=f"{', '.join(STARTS_ALL[:-1])} or {STARTS_ALL[-1]}: launchers that start all ranks.  "
        "[mpirun; srun with --via srun]",
    ),
)  # fmt: skip
RETRY = (
    _option(
        "Job launch", "--retry", callback=_read_by(read.whole(1, 100)), metavar="N",
        help="Start the job again after a failure, up to N times, where its log says that this helps.",
    ),
    _option(
        "Job launch", "--spare", metavar="NODE,..", multiple=True,
        help="With --retry: nodes that take the place of those that are proved to be at fault. Can be repeated.",
    ),
    _option(
        "Job launch", "--shrink", is_flag=True,
        help="With --retry: where no spare is left, continue on fewer nodes, with fewer ranks.",
    ),
)  # fmt: skip
PACE = _group(rows.PACE)
TIME = (*PACE, *_group(rows.LIMITS))
EXPECTED = _group(rows.EXPECTED)
PROBE = (*_group(rows.PROBE), *EXPECTED)
COUNTS = _group(rows.COUNTS)
JUDGE = (*_group(rows.SELECT), *COUNTS)
CONFIG = (
    _option(
        "Output", "--config", metavar="FILE", help="Use this settings file instead of ./ncheck.toml. none: no file."
    ),
)
LANGUAGE = _group(rows.LANGUAGE)
SPOKEN = (  # of a command without settings
    _setting("lang", envvar=rows.OPTIONS["lang"].variable, show_envvar=True, default="en"),
)
OUTPUT = (
    *_group(rows.OUTPUT),
    *LANGUAGE,
    _option(
        "Output", "-v", "--verbose", is_flag=True,
        help="Print all findings, evidence, reasons and measurements.  [one screen]",
    ),
    _option("Output", "-q", "--quiet", is_flag=True, help="Print the headline only, and no progress."),
    _option(
        "Output", "--color/--no-color", "color", default=None,
        help="Use colors, or not.  [on a terminal, unless NO_COLOR is set]",
    ),
)  # fmt: skip
GOOD, HISTORY = _group(rows.GOOD), _group(rows.HISTORY)
READ_HISTORY = (_setting("history", help="A file that runs with --history FILE were added to; it is only read."),)
ASSISTANT = (
    _option(
        "Assistant", "--files", metavar="DIR", multiple=True,
        help="Folder whose logs and recordings may be read. Can be repeated.  [the current folder]",
    ),
    _setting(
        "history", heading="Assistant",
        help="The history that may be read: a file that runs with --history FILE were added to.",
    ),
)  # fmt: skip
PLANNED = (
    _setting(
        "output", type=click.Choice(["line", "json"]), metavar=None, multiple=False,
        help="line: the command line; json: the whole plan with reasons.  [line]",
    ),
    *LANGUAGE,
)  # fmt: skip
RECORD = (
    *_group(rows.RECORD),
    _option(
        "Output", "--dry-run", is_flag=True,
        help="Print every command and file that would be used on the nodes, and connect to none.",
    ),
)  # fmt: skip


RECORDED = (
    _option("Nodes", "--from", "recording", metavar="DIR", help="Plan from a recording (--record DIR), without nodes."),
)
PREDICTED = (
    _setting("ops", heading="Prediction", help=rows.OPTIONS["ops"].help.replace("measured", "predicted")),
    _setting(
        "sizes", heading="Prediction",
        help="Bytes, as nccl-tests counts them: 8-1G for all powers of two, or 1M,64M,1G.  [8K to 8G]",
    ),
    _option(
        "Prediction", "--link-speed", metavar="GBPS", callback=_read_by(read.link_speed),
        help="Gb/s of each NIC that carries the data, where it shows none (clouds) or another: 25.",
    ),
    _setting(
        "slots", heading="Prediction", help="Ranks per node.  [the slots of the list, else the number of GPUs, else 1]"
    ),
    _option(
        "Prediction", "--model", metavar="KEY=VALUE,...", help="Instead: the model, and how it is split over GPUs."
    ),
    _option(
        "Prediction", "--compute", metavar="TIME",
        help="With --model and nodes: how long a step computes, as 1.2s or 800ms.",
    ),
    _option(
        "Prediction", "--from", "recording", metavar="DIR",
        help="Predict from a recording (--record DIR), without nodes.",
    ),
    _option(
        "Prediction", "-o", "outputs", multiple=True, metavar="FORMAT[=FILE]",
        help="text or json. Can be repeated.  [text]",
    ),
)  # fmt: skip
HEALTHY = (_option("Nodes", "--healthy", is_flag=True, help="Show a healthy cluster instead."),)


def options(*groups: Sequence[Decorator[Any]]) -> Decorator[Any]:
    """Add the options of these groups to a command, in this order."""

    def added(function: F) -> F:
        for option in reversed(list(chain(*groups))):
            function = option(function)
        return function

    return added
