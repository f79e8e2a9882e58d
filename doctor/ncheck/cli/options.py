"""The options in the groups of --help, and the kinds of commands. A parameter has the name of its field in Settings.

Options have no default here: an option that was not given is None, and ncheck.toml or Settings decides. Values are
read by settings/values.py, the same for options, variables and ncheck.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ncheck.model.plan import LAUNCHERS
from ncheck.report import FORMATS
from ncheck.settings.values import PROBES

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
    """Look for --for env in a command line that may be invalid."""
    own = args[: args.index("--")] if "--" in args else args
    return "--for=env" in own or any(pair == ("--for", "env") for pair in pairwise(own))


def files(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Let the shell complete a path."""
    return [CompletionItem(typed, type="file")]


def checks(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the code or the name of a check, also the last of a,b."""
    from ncheck.registry import load_checks

    before, comma, last = typed.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{word}", help=check.title)
        for check in load_checks().checks
        for word in (check.code, check.name)
        if word.lower().startswith(last.lower()) and (last or word == check.code)
    ]


def formats(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    return [CompletionItem(form) for form in FORMATS if form.startswith(typed)]


_COMPLETED = {"FILE": files, "KEY": files, "PATH": files, "DIR": files, "CHECK": checks, "CHECK[=NODES]": checks,
              "FORMAT[=FILE]": formats}  # fmt: skip


def _option(heading: str, *names: str, **settings: Any) -> Decorator[Any]:  # noqa: ANN401  click's own
    completed = _COMPLETED.get(settings.get("metavar", ""))
    return click.option(*names, cls=GroupedOption, heading=heading, shell_complete=completed, **settings)


NODES = click.argument("nodes", nargs=-1, metavar="[NODES]", shell_complete=files)


_WHICH, _SSH, _JOB, _LAUNCH, _TIME, _PROBE, _JUDGE, _OUT = (
    "Nodes", "SSH", "Job environment", "Job launch", "Limits", "Bandwidth test", "Checks", "Output",
)  # fmt: skip


HOSTS = (
    _option(_WHICH, "-H", "hosts", metavar="HOSTS", help="Node names: -H a:8,b:8 or -H 'node[01-16]'."),
    _option(
        _WHICH,
        "--via",
        type=click.Choice(["ssh", "srun"]),
        help="How to reach the nodes. srun: as one step of the current Slurm allocation, without ssh.  [ssh]",
    ),
)


WHICH = (
    HOSTS[0],
    _option(_WHICH, "--slurm", is_flag=True, default=None, help="Use the nodes of the current Slurm allocation."),
    HOSTS[1],
)


SSH = (
    _option(_SSH, "-p", "--port", metavar="PORT", help="Port of sshd on the nodes."),
    _option(_SSH, "-l", "--user", metavar="USER", help="Log in as this user."),
    _option(_SSH, "-i", "identity", metavar="KEY", help="Log in with this private key."),
    _option(_SSH, "-F", "ssh_config", metavar="FILE", help="Use this ssh_config instead of ~/.ssh/config."),
    _option(
        _SSH, "--transport", type=click.Choice(["auto", "paramiko", "openssh"]),
        help="auto: paramiko, or the ssh program if a node's configuration needs it.  [auto]",
    ),
    _option(
        _SSH, "--accept-new-host-keys", is_flag=True, default=None,
        help="Trust hosts that are not in known_hosts. A changed key is still refused.",
    ),
)  # fmt: skip


JOB = (
    _option(_JOB, "--python", metavar="PATH", help="Python interpreter of the job."),
    _option(
        _JOB, "--setup", metavar="LINE", help="Shell line that sets up the environment: --setup 'module load nccl'."
    ),
    _option(
        _JOB,
        "--enter",
        metavar="COMMAND",
        help="Command that enters the container of the job: --enter 'docker exec -i train'.",
    ),
    _option(_JOB, "--rsh", metavar="COMMAND", help="Command to use instead of ssh: --rsh 'kubectl exec -i {node} --'."),
    _option(
        _JOB,
        "--packages",
        type=click.Choice(["frameworks", "all"]),
        help="Which packages of the job's Python are compared between the nodes.  [frameworks]",
    ),
    _option(
        _JOB,
        "--workdir",
        metavar="DIR",
        help="Folder of the job's code: its git commit and source files must be the same on all nodes.",
    ),
    _option(_JOB, "--sudo", is_flag=True, default=None, help="Use sudo -n to read what only root can read."),
)


STORAGE = (
    _option(
        _JOB, "--data", multiple=True, metavar="PATH",
        help="Folder or file that the job reads on every node. Can be repeated.",
    ),
    _option(
        _JOB, "--storage-probe", is_flag=True, default=None,
        help="Measure how fast every node reads --data, or the current folder: alone and all at once.",
    ),
)  # fmt: skip


NETWORK = (
    _option(_LAUNCH, "--ifname", metavar="NAME", help="Network interface that the job must use."),
    _option(
        _LAUNCH, "--master-port", metavar="PORT",
        help="Port on the first node where the ranks meet.  [default of the launcher]",
    ),
    _option(
        _LAUNCH, "--need-port", "need_ports", multiple=True, metavar="PORT",
        help="A port that the job needs on every node. Can be repeated, or a,b.",
    ),
)  # fmt: skip


RANKS = (
    _option(
        _LAUNCH, "--slots", metavar="N", help="Ranks per node, unless the list or the number of GPUs gives it.  [1]"
    ),
    _option(
        _LAUNCH, "--profile", type=click.Choice(["slot", "numa"]),
        help="How mpirun places ranks: slot (in order, unbound) or numa (bound to NUMA domains in turn).  [slot]",
    ),
)  # fmt: skip


FORCE = (
    _option(
        _LAUNCH, "--force", is_flag=True, default=None,
        help="Continue (print, start, measure) although errors affect the launch plan. They are still printed.",
    ),
)  # fmt: skip


FOR = (
    _option(
        _LAUNCH, "--for", "launcher", type=click.Choice(LAUNCHERS), metavar="LAUNCHER",
        help=f"{', '.join(LAUNCHERS)}.  [srun with --via srun, else mpirun if found, else torchrun if "
        "torch is found, else env]",
    ),
)  # fmt: skip


WITH = (
    _option(
        _LAUNCH, "--with", "launcher", type=click.Choice(LAUNCHERS[:-2]), metavar="LAUNCHER",
        help="mpirun, horovodrun, srun or deepspeed: launchers that start all ranks.  [mpirun; srun with --via srun]",
    ),
)  # fmt: skip


KEPT = (
    _option(
        _LAUNCH, "--drop-bad", is_flag=True, default=None,
        help="Continue with the nodes that have no errors, and print which were left out. With --force, keep nodes "
        "whose results are unknown.",
    ),
)  # fmt: skip


PACE = (
    _option(_TIME, "--width", metavar="N", help="Number of nodes to examine in parallel.  [64]"),
    _option(_TIME, "--connect-timeout", metavar="S", help="Time limit of one login in seconds.  [15]"),
    _option(_TIME, "--command-timeout", metavar="S", help="Time limit of one command on a node in seconds.  [10]"),
)


TIME = (
    *PACE,
    _option(_TIME, "--deadline", metavar="S", help="Time limit of the whole run in seconds.  [50]"),
    _option(
        _TIME, "--mesh", type=click.Choice(["auto", "all", "none"]),
        help="Tests between nodes: TCP between all addresses, and ssh between all pairs (auto: up to 16 nodes; beyond, "
        "the connections that Open MPI makes). none: no such tests.  [auto]",
    ),
)  # fmt: skip


PROBE = (
    _option(
        _PROBE, "--probe", type=click.Choice(PROBES),
        help="Method of the test. auto: NCCL if the nodes have GPUs, gloo if they only have torch, else TCP.  [auto]",
    ),
    _option(_PROBE, "--probe-time", metavar="S", help="Time limit of the test in seconds, after --deadline.  [60]"),
    _option(
        _PROBE, "--probe-launcher", type=click.Choice(["agents", "mpirun"]),
        help="What starts the ranks: agents (ncheck itself) or mpirun with the line of the plan.  [agents]",
    ),
    _option(
        _PROBE, "--sizes", metavar="SIZES",
        help="Bytes per rank: 8-1G for all powers of two, or 1M,64M,1G.  [a few sizes up to 1G, if memory allows]",
    ),
    _option(
        _JUDGE, "--expect", metavar="NAME=VALUE,..",
        help="What every node must have: gpus=8,nccl=2.21.5,driver>=550 (also gpu, hcas, rate, cuda, mpi, torch ...; "
        "commit, with --workdir). busbw=380, or a number alone: bus bandwidth in GB/s that all nodes together should "
        "reach.",
    ),
    _option(
        _JUDGE, "--requirements", metavar="FILE",
        help="pip requirements that the job's Python must meet on every node.",
    ),
)  # fmt: skip


SELECT = (
    _option(
        _JUDGE, "--select", multiple=True, metavar="CHECK",
        help="Run only these checks: a code, a prefix (NC1), a name or a topic. Can be repeated, or a,b.",
    ),
)  # fmt: skip


COUNTS = (
    _option(
        _JUDGE, "--ignore", multiple=True, metavar="CHECK[=NODES]",
        help="Do not fail because of this check (on these nodes). It is still printed. Can be repeated, or a,b.",
    ),
    _option(
        _JUDGE, "--fail-on", metavar="WORDS",
        help="What causes exit code 1: error, warning, info, unknown, never.  [error,unknown]",
    ),
)  # fmt: skip


JUDGE = (*SELECT, *COUNTS)


CONFIG = (
    _option(_OUT, "--config", metavar="FILE", help="Use this settings file instead of ./ncheck.toml. none: no file."),
)


OUTPUT = (
    _option(
        _OUT, "-o", "output", multiple=True, metavar="FORMAT[=FILE]",
        help=f"Format of the report: {', '.join(FORMATS)}. Can be repeated: -o html=report.html -o console.  [console]",
    ),
    _option(
        _OUT, "-v", "--verbose", "detail", flag_value="verbose", default=None,
        help="Print all findings, evidence, reasons and measurements.  [one screen]",
    ),
    _option(_OUT, "-q", "--quiet", "detail", flag_value="quiet", help="Print the headline only."),
    _option(
        _OUT, "--color/--no-color", "color", default=None,
        help="Use colors, or not.  [on a terminal, unless NO_COLOR is set]",
    ),
)  # fmt: skip


GOOD = (
    _option(
        _OUT, "--good-nodes", metavar="FILE",
        help="Write the nodes without errors to this file, in the format of the input.",
    ),
    _option(
        _OUT, "--bad-nodes", metavar="FILE",
        help="Write the others to this file: unreachable, with an error, or with a check that could not run.",
    ),
)  # fmt: skip


PLANNED = (
    _option(
        _OUT,
        "-o",
        "output",
        type=click.Choice(["line", "json"]),
        help="line: the command line; json: the whole plan with reasons.  [line]",
    ),
)


RECORD = (
    _option(_OUT, "--record", metavar="DIR", help="Save the answers of the nodes, for ncheck replay DIR."),
    _option(
        _OUT,
        "--dry-run",
        is_flag=True,
        help="Print every command and file that would be used on the nodes, and connect to none.",
    ),
)


def options(*groups: Sequence[Decorator[Any]]) -> Decorator[Any]:
    """Add the options of these groups to a command, in this order."""

    def added(function: F) -> F:
        for option in reversed(list(chain(*groups))):
            function = option(function)
        return function

    return added
