"""The settings of one run: one row each, with its flags, type, help, environment variable and key in ncheck.toml.

To add a setting: a row here, then `make docs`. Its default and type are the field's; `read` checks what the user gives,
the same for an option, a variable, a line of ncheck.toml and an argument in Python. Its group says which commands have
the option. From the rows, `make docs` writes settings/given.py, the arguments in Python, and their tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from ncheck.hostlist import unfold
from ncheck.launchers import LAUNCHERS
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.settings import values as read
from ncheck.settings.values import COLUMNS, FORMATS, Output

if TYPE_CHECKING:
    from ncheck.facts.expected import ExpectedFacts
    from ncheck.facts.ranks import RanksFacts
    from ncheck.model.earlier import Earlier
    from ncheck.model.job import Target
    from ncheck.settings.own_checks import OwnCheck

T = TypeVar("T")
ALWAYS, OUTSIDE = "always", "outside"


@dataclass(frozen=True, eq=False)
class Group:
    """Settings that a command has all of, or none; cli/ names the groups of each. `heading`: that of --help."""

    heading: str = ""


# How deep a run looks: what each level sets. An option, a variable or a key that sets the same still wins.
LEVELS: Mapping[str, Mapping[str, object]] = {
    "quick": {"probe": "none"},
    "standard": {},
    "acceptance": {
        "gpu_test": "long", "repeats": 20, "mesh": "all", "storage_probe": True, "nic_test": True,
        "deadline": 300.0, "probe_time": 600.0,
    },
}  # fmt: skip
NOWHERE = Group()  # no command has an option for these
DEPTH, AGAIN, WHICH, SSH = Group("Depth"), Group("Depth"), Group("Nodes"), Group("SSH")
JOB, STORAGE = Group("Job environment"), Group("Job environment")
FOR, RANKS, NETWORK, KEPT, FORCE = (Group("Job launch") for _ in range(5))
PACE, LIMITS = Group("Limits"), Group("Limits")
PROBE = Group("Bandwidth test")
EXPECTED, SELECT, COUNTS = (Group("Checks") for _ in range(3))
OUTPUT, RECORD, HISTORY, GOOD, LANGUAGE = (Group("Output") for _ in range(5))


@dataclass(frozen=True)
class Option:
    """How a setting is given.

    `read` takes text, or what TOML or click made of it, and raises ValueError. `not_in_file` says what to use instead
    of ncheck.toml. `approval`: of a file that was only found, the value counts after an approval: ALWAYS, because it
    can contain commands, is a file to write or a link to follow, or OUTSIDE, because it is a file to open: one that
    lies in the folder of ncheck.toml came with it. `milder`: the value may hide what is wrong. `python`: the type of
    the argument in Python, where the field's does not say it; None where there is no argument.
    """

    group: Group
    flags: tuple[str, ...]
    read: read.Read
    metavar: str | None
    help: str
    variable: str = ""
    key: str = ""
    not_in_file: str = ""
    approval: str = ""
    milder: bool = False
    repeated: bool = False
    python: str | None = ""

    @property
    def flag(self) -> str:
        """The option in messages."""
        return self.flags[-1]


def _row(  # noqa: PLR0913, PLR0917  a row
    default: T, group: Group, flags: str, read: read.Read, metavar: str | None, help: str, **more: Any  # noqa: A002, ANN401
) -> T:  # fmt: skip
    """Return a field of Settings; `flags` are separated by |, and `more` are the other fields of its Option."""
    option = Option(group, tuple(flags.split("|")), read, metavar, help, **more)
    return field(default=default, metadata={"option": option})


def _switch(group: Group, flag: str, help: str, **more: Any) -> bool:  # noqa: A002, ANN401
    return _row(False, group, flag, read.flag, None, help, **more)  # noqa: FBT003


_EACH_RUN = "give it as an option of each run"
MOST_AT_ONCE = 1024
_MOST_SLOTS = 4096
REPEATS, _MOST_REPEATS = 5, 500


@dataclass(frozen=True)
class JobEnvironment:
    """How to enter the environment of the job on a node; None uses the defaults of the node.

    `python` is the interpreter of the job; `setup` a shell line to run before it ("module load nccl"); `enter` a
    command that enters a container ("docker exec -i train"); `rsh` a command to use instead of ssh ("kubectl exec -i
    {node} --").
    """

    # fmt: off
    python: str | None = _row(
        None, JOB, "--python", read.shell_line, "PATH", "Python interpreter of the job.", approval=ALWAYS,
    )
    setup: str | None = _row(
        None, JOB, "--setup", read.shell_line, "LINE",
        "Shell line that sets up the environment: --setup 'module load nccl'.", approval=ALWAYS,
    )
    enter: str | None = _row(
        None, JOB, "--enter", read.argv, "COMMAND",
        "Command that enters the container of the job: --enter 'docker exec -i train'.", approval=ALWAYS,
    )
    rsh: str | None = _row(
        None, JOB, "--rsh", read.argv, "COMMAND",
        "Command to use instead of ssh: --rsh 'kubectl exec -i {node} --'.", approval=ALWAYS,
    )
    # fmt: on


@dataclass(frozen=True)
class HostOverride:
    """[host."node[01-04]"] in ncheck.toml: other settings for these nodes."""

    nodes: str
    environment: JobEnvironment


@dataclass(frozen=True)
class Ignore:
    """--ignore CHECK[=nodes], by name or code; None means all nodes."""

    check: str
    nodes: str | None = None


@dataclass(frozen=True)
class RunContext:
    """What kind of run this is, who started it where, and where its settings came from.

    `expected`: what the user expects of every node, from --expect and --requirements. `probe_wanted`: it is ncheck
    probe, so what could not be measured is unknown, not skipped. `started_in`: the folder that ncheck was started in,
    where that is on a network file system. `rehearsal`: it is ncheck demo, whose temporary files must not appear in
    command lines. `target`: the job that ncheck triage is asked about. `ranks`: inside a job, by node, those that its
    launcher started. `milder`: settings of an ncheck.toml that was only found, and that may hide what is wrong, as
    "fail-on never". `sources`: by setting, the variable, the key of the file or the argument in Python that gave it;
    nothing for a typed option. `own_checks`: [[check]] of ncheck.toml and of the folder checks.d.
    `earlier`: what was wrong in the report of --failed-of. `groups`: those of --groups, by name.
    """

    expected: ExpectedFacts | None = None
    probe_wanted: bool = False
    started_in: str | None = None
    rehearsal: bool = False
    target: Target | None = None
    ranks: Mapping[str, RanksFacts] = field(default_factory=dict)
    milder: tuple[str, ...] = field(default=(), compare=False)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    own_checks: tuple[OwnCheck, ...] = ()
    earlier: Earlier | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """All settings of one run. Times are in seconds."""

    # fmt: off
    level: str = _row(
        "standard", DEPTH, "--level", read.OneOf(tuple(LEVELS)), None,
        "How deep to look. quick: no bandwidth test and no other load, some seconds. standard: about a minute. "
        "acceptance: also --gpu-test long, --storage-probe, --mesh all, --repeats 20; some minutes, 15 at most. Each "
        "of these options, where it is given, still counts.  [standard]",
        variable="NCHECK_LEVEL",
    )
    failed_of: str | None = _row(
        None, AGAIN, "--failed-of", read.path, "REPORT",
        "Check again only what failed or was unknown in this report (-o json=REPORT), on its nodes if none are named; "
        "where nothing was, check all.",
        not_in_file="use the option --failed-of",
    )
    nodes_file: str | None = _row(  # "-" is standard input
        None, NOWHERE, "the nodes file", read.path, None, "", key="nodes", approval=OUTSIDE, python=None,
    )
    hosts: str | None = _row(
        None, WHICH, "-H", read.text, "HOSTS", "Node names: -H a:8,b:8 or -H 'node[01-16]'.",
        not_in_file='name a host file by nodes = "hosts.txt", or use the option -H', python=None,
    )
    slurm: bool = _switch(WHICH, "--slurm", "Use the nodes of the current Slurm allocation.")
    local: bool = _switch(NOWHERE, "--local", "", not_in_file="run ncheck local", python=None)
    port: int | None = _row(
        None, SSH, "-p|--port", read.PORT, "PORT", "Port of sshd on the nodes.", variable="NCHECK_PORT",
    )
    user: str | None = _row(
        None, SSH, "-l|--user", read.user, "USER", "Log in as this user.", variable="NCHECK_USER",
    )
    identity: str | None = _row(
        None, SSH, "-i", read.path, "KEY", "Log in with this private key.", variable="NCHECK_IDENTITY",
        approval=OUTSIDE,
    )
    ssh_config: str | None = _row(
        None, SSH, "-F", read.path, "FILE", "Use this ssh_config instead of ~/.ssh/config.",
        variable="NCHECK_SSH_CONFIG", approval=ALWAYS,
    )
    transport: str = _row(
        "auto", SSH, "--transport", read.OneOf(("auto", "paramiko", "openssh")), None,
        "auto: paramiko, or the ssh program if a node's configuration needs it.  [auto]", variable="NCHECK_TRANSPORT",
    )
    via: str = _row(
        "ssh", WHICH, "--via", read.OneOf(("ssh", "srun")), None,
        "How to reach the nodes. srun: as one step of the current Slurm allocation, without ssh.  [ssh]",
        variable="NCHECK_VIA",
    )
    accept_new_host_keys: bool = _switch(SSH, "--accept-new-host-keys",
        "Trust hosts that are not in known_hosts. A changed key is still refused.", not_in_file=_EACH_RUN,
    )
    environment: JobEnvironment = JobEnvironment()
    overrides: tuple[HostOverride, ...] = ()
    packages: str = _row(
        "frameworks", JOB, "--packages", read.OneOf(("frameworks", "all")), None,
        "Which packages of the job's Python are compared between the nodes.  [frameworks]",
    )
    workdir: str | None = _row(
        None, JOB, "--workdir", read.path, "DIR",
        "Folder of the job's code: its git commit and source files must be the same on all nodes.",
    )
    sudo: bool = _switch(JOB, "--sudo", "Use sudo -n to read what only root can read.", approval=ALWAYS)
    data: tuple[str, ...] = _row(
        (), STORAGE, "--data", read.paths, "PATH",
        "Folder or file that the job reads on every node. Can be repeated.", repeated=True,
    )
    storage_probe: bool = _switch(STORAGE, "--storage-probe",
        "Measure how fast every node reads --data, or the current folder: alone and all at once.",
    )
    width: int = _row(
        64, PACE, "--width", read.whole(1, MOST_AT_ONCE), "N", "Number of nodes to examine in parallel.  [64]",
        variable="NCHECK_WIDTH",
    )
    connect_timeout: float = _row(
        15.0, PACE, "--connect-timeout", read.time_limit, "S", "Time limit of one login in seconds.  [15]",
    )
    command_timeout: float = _row(
        10.0, PACE, "--command-timeout", read.time_limit, "S",
        "Time limit of one command on a node in seconds.  [10]",
    )
    deadline: float = _row(
        50.0, LIMITS, "--deadline", read.time_limit, "S", "Time limit of the whole run in seconds.  [50]",
        variable="NCHECK_DEADLINE",
    )
    mesh: str = _row(
        "auto", LIMITS, "--mesh", read.OneOf(("auto", "all", "none")), None,
        "Tests between nodes: TCP between all addresses (auto: of up to 256 nodes; beyond, each dials some 40 others), "
        "and ssh between all pairs (auto: up to 16 nodes; beyond, the connections that Open MPI makes). none: no such "
        "tests.  [auto]",
    )
    probe: str = _row(
        "auto", PROBE, "--probe", read.OneOf(("auto", "nccl", "nccl-tests", "gloo", "tcp", "none")), None,
        "Method of the test. auto: NCCL if the nodes have GPUs, gloo if they only have torch, else TCP.  [auto]",
    )
    probe_time: float = _row(
        60.0, PROBE, "--probe-time", read.at_most_a_day, "S",
        "Time limit of the test in seconds, after --deadline.  [60]",
    )
    probe_launcher: str = _row(
        "agents", PROBE, "--probe-launcher", read.OneOf(("agents", "mpirun")), None,
        "What starts the ranks: agents (ncheck itself) or mpirun with the line of the plan.  [agents]",
    )
    groups: str | None = _row(
        None, PROBE, "--groups", read.text, "GROUPS",
        "Nodes that share a switch: a file with one NAME=NODES per line, or 'leaf1=node[01-16];leaf2=node[17-32]'. "
        "Where all nodes together are slow, the test searches between them.  [Slurm's topology]",
        not_in_file=_EACH_RUN,
    )
    gpu_test: str = _row(
        "none", PROBE, "--gpu-test", read.OneOf(("quick", "long", "none")), None,
        "Test each idle GPU alone before that: compute, memory, links and results, for some seconds (quick) or two "
        "minutes (long).  [none]",
    )
    nic_test: bool = _switch(PROBE, "--nic-test",
        "Measure each node by itself over its NICs, too: the path between GPU and NIC, without another node.",
    )
    sizes: tuple[int, ...] = _row(
        (), PROBE, "--sizes", read.sizes, "SIZES",
        "Bytes per rank: 8-1G for all powers of two, or 1M,64M,1G.  [a few sizes up to 1G, if memory allows]",
        repeated=True, python="str | Sequence[int]",
    )
    ops: tuple[Op, ...] = _row(
        (Op.ALL_REDUCE,), PROBE, "--op", read.ops, "OPS",
        "What is measured, one after the other: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, "
        "send-recv; training: the first three; moe: the first four.  [all-reduce]",
        repeated=True, python="str | Sequence[str]",
    )
    repeats: int = _row(
        REPEATS, PROBE, "--repeats", read.whole(1, _MOST_REPEATS), "N",
        f"How often each size is timed after a warm-up; fewer times if there is no time for it.  [{REPEATS}]",
        variable="NCHECK_REPEATS",
    )
    expect: float | None = _row(  # the bus bandwidth; all else is in `run.expected`
        None, EXPECTED, "--expect", read.expected, "NAME=VALUE,..",
        "What every node must have: gpus=8,nccl=2.21.5,driver>=550 (also gpu, hcas, rate, cuda, mpi, torch ...; "
        "commit, with --workdir). busbw=380, or a number alone: bus bandwidth in GB/s that all nodes together should "
        "reach.",
        python="str | float",
    )
    requirements: str | None = _row(
        None, EXPECTED, "--requirements", read.path, "FILE",
        "pip requirements that the job's Python must meet on every node.", approval=OUTSIDE,
    )
    select: tuple[str, ...] = _row(
        (), SELECT, "--select", read.names, "CHECK",
        "Run only these checks: a code, a prefix (NC1), a name or a topic. Can be repeated, or a,b.", repeated=True,
        milder=True,
    )
    ignore: tuple[Ignore, ...] = _row(
        (), COUNTS, "--ignore", read.ignores, "CHECK[=NODES]",
        "Do not fail because of this check (on these nodes). It is still printed. Can be repeated, or a,b.",
        repeated=True, milder=True, python="str | Sequence[str]",
    )
    fail_on: tuple[str, ...] = _row(
        ("error", "unknown"), COUNTS, "--fail-on", read.fail_on, "WORDS",
        "What causes exit code 1: error, warning, info, unknown, never.  [error,unknown]", variable="NCHECK_FAIL_ON",
        milder=True,
    )
    output: tuple[Output, ...] = _row(
        (Output("console"),), OUTPUT, "-o", read.outputs, "FORMAT[=FILE]",
        f"Format of the report: {', '.join(FORMATS)}. Can be repeated: -o html=report.html -o console.  [console]",
        repeated=True, python=None,
    )
    columns: tuple[str, ...] = _row(
        COLUMNS, OUTPUT, "--columns", read.columns, "NAMES",
        f"Columns of -o table, in this order: {','.join(COLUMNS)}.  [all]", python=None,
    )
    lang: str = _row(
        "en", LANGUAGE, "--lang", read.OneOf(("en", "zh", "auto")), None,
        "Language of the words around the findings, in formats for people. zh: Simplified Chinese; auto: that of the "
        "locale. Messages, commands and this help are English.  [en]",
        variable="NCHECK_LANG", python=None,
    )
    docs: str | None = _row(
        None, OUTPUT, "--docs", read.site_address, "URL",
        "Where the documents are (make site): the report leads to the page of each check there.",
        variable="NCHECK_DOCS", approval=ALWAYS,
    )
    record: str | None = _row(
        None, RECORD, "--record", read.path, "DIR", "Save the answers of the nodes, for ncheck replay DIR.",
        not_in_file="use the option --record",
    )
    history: str | None = _row(
        None, HISTORY, "--history", read.path, "FILE",
        "Add this run to a file that keeps what was found, and say what is new; ncheck history shows it.",
        variable="NCHECK_HISTORY", approval=ALWAYS,
    )
    keep_days: int = _row(
        90, HISTORY, "--keep-days", read.whole(1, 3650), "N", "How long the history keeps a run.  [90]",
    )
    job_ended: int | None = _row(
        None, HISTORY, "--job-ended", read.whole(0, 255), "CODE",
        "Note in --history that a job on these nodes ended with this exit code, and which links counted errors since "
        "the run before it.",
        not_in_file="use the option --job-ended", python=None,
    )
    notify: str | None = _row(
        None, HISTORY, "--notify", read.web_address, "URL",
        "Post to this webhook where a node or the cluster is not as the history knows it.", variable="NCHECK_NOTIFY",
        not_in_file="it is a secret: use the variable NCHECK_NOTIFY",
    )
    good_nodes: str | None = _row(
        None, GOOD, "--good-nodes", read.path, "FILE",
        "Write the nodes without errors to this file, in the format of the input.",
        not_in_file="use the option --good-nodes", python=None,
    )
    bad_nodes: str | None = _row(
        None, GOOD, "--bad-nodes", read.path, "FILE",
        "Write the others to this file: unreachable, with an error, or with a check that could not run.",
        not_in_file="use the option --bad-nodes", python=None,
    )
    max_drain: float = _row(
        5.0, GOOD, "--max-drain", read.percent, "PERCENT",
        "With -o slurm or kubernetes: the largest share of the nodes to drain, the worst first; at least one.  [5%]",
    )
    launcher: str | None = _row(
        None, FOR, "--for", read.OneOf(LAUNCHERS), "LAUNCHER",
        f"{', '.join(LAUNCHERS)}.  [srun with --via srun, else mpirun if found, else torchrun if "
        "torch is found, else env]",
        not_in_file="use ncheck plan --for or ncheck launch --with", python="str",
    )
    program: tuple[str, ...] = _row(
        (), NOWHERE, "--program", read.program, None, "", not_in_file="write it after --", python="Sequence[str]",
    )
    slots: int | None = _row(
        None, RANKS, "--slots", read.whole(1, _MOST_SLOTS), "N",
        "Ranks per node, unless the list or the number of GPUs gives it.  [1]",
    )
    profile: str | None = _row(
        None, RANKS, "--profile", read.OneOf(("slot", "numa")), None,
        "How mpirun places ranks: slot (in order, unbound) or numa (bound to NUMA domains in turn).  [slot]",
    )
    ifname: str | None = _row(
        None, NETWORK, "--ifname", read.interface, "NAME", "Network interface that the job must use.",
    )
    master_port: int | None = _row(
        None, NETWORK, "--master-port", read.PORT, "PORT",
        "Port on the first node where the ranks meet.  [default of the launcher]",
    )
    need_ports: tuple[int, ...] = _row(
        (), NETWORK, "--need-port", read.ports, "PORT",
        "A port that the job needs on every node. Can be repeated, or a,b.", repeated=True,
    )
    drop_bad: bool = _switch(KEPT, "--drop-bad",
        "Continue with the nodes that have no errors, and print which were left out. With --force, keep nodes "
        "whose results are unknown.",
        not_in_file=_EACH_RUN,
    )
    force: bool = _switch(FORCE, "--force",
        "Continue (print, start, measure) although errors affect the launch plan. They are still printed.",
        not_in_file=_EACH_RUN,
    )
    # fmt: on
    run: RunContext = RunContext()

    def named(self, name: str, value: str = "") -> str:
        """Return what a message calls a setting that has this value: "--via srun", or "NCHECK_VIA=srun"."""
        source = self.run.sources.get(name, "")
        if not source:
            return f"{OPTIONS[name].flag} {value}".strip()
        return f"{source}={value}" if value else source

    @property
    def longest(self) -> float:
        """The seconds that the run may take: its deadline, and the bandwidth test after it."""
        return self.deadline + (0.0 if self.probe == "none" else self.probe_time)

    @property
    def beside_level(self) -> tuple[str, ...]:
        """The settings that are not as the level has them: "probe tcp"."""
        usual = {name: getattr(Settings, name) for level in LEVELS.values() for name in level} | dict(
            LEVELS[self.level]
        )
        own = {name: getattr(self, name) for name in usual}
        return tuple(f"{OPTIONS[name].key} {_toml(value)}" for name, value in own.items() if value != usual[name])

    def environment_of(self, node: str) -> JobEnvironment:
        """Return how to enter the environment of the job on this node.

        The first override that names the node applies. Values that it leaves out are those of the run; "" means none.
        """
        for override in self.overrides:
            if node in _members(override.nodes):
                return _entered(override.environment, self.environment)
        return self.environment


def _toml(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


@lru_cache(maxsize=256)
def _members(nodes: str) -> frozenset[str]:
    return frozenset(unfold(nodes))


def _entered(own: JobEnvironment, run: JobEnvironment) -> JobEnvironment:
    values = {name: getattr(own, name) for name in ENVIRONMENT}
    return replace(run, **{name: value or None for name, value in values.items() if value is not None})


def _options(*records: type[JobEnvironment | Settings]) -> dict[str, Option]:
    rows = ((one.name, one.metadata["option"]) for record in records for one in fields(record) if one.metadata)
    return {name: replace(row, key=row.key or name.replace("_", "-")) for name, row in rows}


ENVIRONMENT: tuple[str, ...] = tuple(_options(JobEnvironment))
OPTIONS: Mapping[str, Option] = _options(JobEnvironment, Settings)
# Environment variables for job scripts and container images. Settings that are commands have none.
VARIABLES: Mapping[str, str] = {row.variable: name for name, row in OPTIONS.items() if row.variable}
