"""The options, in the groups that --help shows them in. Each parameter is named after the field of Settings it fills.

No option has a default here: what was not given is None, and ncheck.toml or Settings itself decides. Nor is a number
read here: settings/values.py does so for flags, variables and the file alike, and says what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from ncheck.model.plan import LAUNCHERS
from ncheck.settings.values import PROBES

F = TypeVar("F", bound=Callable[..., Any])


Decorator = Callable[[F], F]


class GroupedOption(click.Option):
    """An option that knows under which heading --help shows it."""

    def __init__(self, *args: Any, heading: str = "Other", **kwargs: Any) -> None:  # noqa: ANN401  click's own
        super().__init__(*args, **kwargs)
        self.heading = heading

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401, ARG002  click's own
        """Leave out what click would add: the words of `help` tell the default and the range where it matters."""
        return {}


class GroupedCommand(click.Command):
    """A command whose --help shows the options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "heading", "Other"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _option(heading: str, *names: str, **settings: Any) -> Decorator[Any]:  # noqa: ANN401  click's own
    return click.option(*names, cls=GroupedOption, heading=heading, **settings)


_WHICH, _SSH, _JOB, _LAUNCH, _TIME, _PROBE, _JUDGE, _OUT = (
    "Which nodes", "SSH", "The job's environment", "The job's launch", "How much, how long", "Bandwidth",
    "What counts", "What comes out",
)  # fmt: skip


WHICH = (
    _option(_WHICH, "-H", "hosts", metavar="HOSTS", help="Nodes by name: -H a:8,b:8 or -H 'node[01-16]'."),
    _option(_WHICH, "--slurm", is_flag=True, default=None, help="The nodes of the Slurm allocation that this runs in."),
)


SSH = (
    _option(_SSH, "-p", "--port", metavar="PORT", help="The port of sshd on the nodes."),
    _option(_SSH, "-l", "--user", metavar="USER", help="Log in as this user."),
    _option(_SSH, "-i", "identity", metavar="KEY", help="Log in with this private key."),
    _option(_SSH, "-F", "ssh_config", metavar="FILE", help="An ssh_config to use in place of ~/.ssh/config."),
    _option(
        _SSH, "--transport", type=click.Choice(["auto", "paramiko", "openssh"]),
        help="auto uses paramiko, and ssh itself for a node whose configuration wants what only ssh has.",
    ),
    _option(
        _SSH, "--accept-new-host-keys", is_flag=True, default=None,
        help="Trust hosts that known_hosts does not have yet. A key that changed is still refused.",
    ),
)  # fmt: skip


JOB = (
    _option(_JOB, "--python", metavar="PATH", help="The interpreter that the job uses."),
    _option(_JOB, "--setup", metavar="LINE", help="A shell line to run first: --setup 'module load nccl'."),
    _option(_JOB, "--enter", metavar="COMMAND", help="Enters the job's container: --enter 'docker exec -i train'."),
    _option(_JOB, "--rsh", metavar="COMMAND", help="Stands in for ssh: --rsh 'kubectl exec -i {node} --'."),
    _option(_JOB, "--sudo", is_flag=True, default=None, help="Read what only root can read, by sudo -n."),
)


NETWORK = (
    _option(_LAUNCH, "--ifname", metavar="NAME", help="The interface that the job is to use, whatever is found."),
    _option(
        _LAUNCH, "--master-port", metavar="PORT",
        help="Where the ranks meet on the first node.  [the launcher's own default]",
    ),
    _option(
        _LAUNCH, "--need-port", "need_ports", multiple=True, metavar="PORT",
        help="One more port that the job needs there. May be repeated, or a,b.",
    ),
)  # fmt: skip


RANKS = (
    _option(
        _LAUNCH, "--slots", metavar="N", help="Ranks a node, where neither the list nor the node's GPUs say.  [1]"
    ),
    _option(
        _LAUNCH, "--profile", type=click.Choice(["slot", "numa"]),
        help="How mpirun places ranks: unbound in the order of the slots, or bound to NUMA domains in turn.  [slot]",
    ),
    _option(
        _LAUNCH, "--force", is_flag=True, default=None,
        help="Go on although something is wrong that touches the plan; it is still told.",
    ),
)  # fmt: skip


FOR = (
    _option(
        _LAUNCH, "--for", "launcher", type=click.Choice(LAUNCHERS), metavar="LAUNCHER",
        help=f"{', '.join(LAUNCHERS)}.  [mpirun where it is found, torchrun where torch is, or env]",
    ),
)  # fmt: skip


WITH = (
    _option(
        _LAUNCH, "--with", "launcher", type=click.Choice(LAUNCHERS[:-2]), metavar="LAUNCHER", default="mpirun",
        help="mpirun, horovodrun, srun, deepspeed: what starts all ranks by one line.  [mpirun]",
    ),
)  # fmt: skip


KEPT = (
    _option(
        _LAUNCH, "--drop-bad", is_flag=True, default=None,
        help="Go on with the nodes without errors, and say which were left out; with --force, also with those of which "
        "not all could be told.",
    ),
)  # fmt: skip


TIME = (
    _option(_TIME, "--width", metavar="N", help="Nodes at once.  [64]"),
    _option(_TIME, "--connect-timeout", metavar="S", help="Seconds for one login.  [15]"),
    _option(_TIME, "--command-timeout", metavar="S", help="Seconds for one command on a node.  [10]"),
    _option(_TIME, "--deadline", metavar="S", help="Seconds for the whole run.  [50]"),
    _option(
        _TIME, "--mesh", type=click.Choice(["auto", "all", "none"]),
        help="Node to node: TCP from every address to every other, and ssh between all pairs (auto: up to 16 nodes, "
        "beyond them along the edges that Open MPI uses). none tries neither.",
    ),
)  # fmt: skip


PROBE = (
    _option(
        _PROBE, "--probe", type=click.Choice(PROBES),
        help="By what bandwidth is measured. auto: NCCL where there are GPUs, gloo where the nodes have torch alone, "
        "else TCP.  [auto]",
    ),
    _option(_PROBE, "--probe-time", metavar="S", help="Seconds for all of it, beyond --deadline.  [60]"),
    _option(
        _PROBE, "--probe-launcher", type=click.Choice(["agents", "mpirun"]),
        help="Who starts the ranks: ncheck itself, or mpirun by the very line of the plan.  [agents]",
    ),
    _option(
        _PROBE, "--sizes", metavar="SIZES",
        help="Bytes a rank: 8-1G for all powers of two, or 1M,64M,1G.  [some up to 1G, as far as memory allows]",
    ),
    _option(
        _PROBE, "--expect", metavar="BUSBW",
        help="The bus bandwidth in GB/s that all nodes together should reach, for who knows better than ncheck.",
    ),
)  # fmt: skip


SELECT = (
    _option(
        _JUDGE, "--select", multiple=True, metavar="CHECK",
        help="Only these checks: a code, the start of one (NC1), a name or a topic. May be repeated, or a,b.",
    ),
)  # fmt: skip


COUNTS = (
    _option(
        _JUDGE, "--ignore", multiple=True, metavar="CHECK[=NODES]",
        help="Do not fail for this check (on these nodes); it is still printed. May be repeated.",
    ),
    _option(
        _JUDGE, "--fail-on", metavar="WORDS",
        help="What makes exit code 1: error, warning, info, unknown, never.  [error,unknown]",
    ),
)  # fmt: skip


JUDGE = (*SELECT, *COUNTS)


CONFIG = (_option(_OUT, "--config", metavar="FILE", help="A settings file in place of ./ncheck.toml."),)


OUTPUT = (
    _option(
        _OUT, "-o", "output", type=click.Choice(["console", "json", "html"]),
        help="The report's format; html is one page by itself: -o html > report.html.  [console]",
    ),
    _option(
        _OUT, "--color/--no-color", "color", default=None,
        help="Colours, or none. Without either: on a terminal, unless NO_COLOR is set.",
    ),
)  # fmt: skip


GOOD = (
    _option(
        _OUT, "--good-nodes", metavar="FILE",
        help="Write the nodes without errors, in the form in which they came in.",
    ),
)  # fmt: skip


PLANNED = (
    _option(_OUT, "-o", "output", type=click.Choice(["line", "json"]), help="json: the whole plan, with reasons."),
)


RECORD = (
    _option(_OUT, "--record", metavar="DIR", help="Save what the nodes answered, for ncheck replay DIR."),
    _option(_OUT, "--dry-run", is_flag=True, help="Print every command and file per node, and touch none."),
)


def options(*groups: Sequence[Decorator[Any]]) -> Decorator[Any]:
    """Give a command the options of these groups, in this order."""

    def added(function: F) -> F:
        for option in reversed(list(_flat(groups))):
            function = option(function)
        return function

    return added


def _flat(groups: Sequence[Sequence[Decorator[Any]]]) -> Iterator[Decorator[Any]]:
    for group in groups:
        yield from group
