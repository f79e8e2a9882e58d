"""One frozen Settings, from options, environment variables and ncheck.toml, in this order of precedence.

The command line uses `make_settings`; ncheck.toml is described in doctor/ncheck/settings/file.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ncheck.errors import SettingsError
from ncheck.hostlist import unfold
from ncheck.report import Output
from ncheck.settings.file import LARGEST, FileSettings, anchored, read_settings_file
from ncheck.settings.values import ENVIRONMENT, MOST_AT_ONCE, READ
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.facts.expected import ExpectedFacts
    from ncheck.facts.ranks import RanksFacts
    from ncheck.model.job import Target


@dataclass(frozen=True)
class JobEnvironment:
    """How to enter the environment of the job on a node; None uses the defaults of the node.

    `python` is the interpreter of the job; `setup` a shell line to run before it ("module load nccl"); `enter` a
    command that enters a container ("docker exec -i train"); `rsh` a command to use instead of ssh ("kubectl exec -i
    {node} --").
    """

    python: str | None = None
    setup: str | None = None
    enter: str | None = None
    rsh: str | None = None


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
class Settings:
    """All settings of one run. Times are in seconds."""

    nodes_file: str | None = None  # a path, or "-" for standard input
    hosts: str | None = None  # -H a:8,b:8
    slurm: bool = False
    port: int | None = None
    user: str | None = None
    identity: str | None = None
    ssh_config: str | None = None  # -F; None: ~/.ssh/config and /etc/ssh/ssh_config
    via: str = "ssh"  # ssh; srun: as one step of the Slurm allocation
    transport: str = "auto"  # auto, paramiko, openssh
    accept_new_host_keys: bool = False
    environment: JobEnvironment = JobEnvironment()
    overrides: tuple[HostOverride, ...] = ()
    packages: str = "frameworks"  # which packages of the job's Python are compared; all
    requirements: str | None = None  # a file of pip's requirements on this machine; they are in `expected`
    workdir: str | None = None  # the folder of the job's code, the same path on every node
    sudo: bool = False
    width: int = 64
    connect_timeout: float = 15.0
    command_timeout: float = 10.0
    deadline: float = 50.0
    mesh: str = "auto"  # auto: all pairs up to 16 nodes, Open MPI's connections beyond; all; none
    probe: str = "auto"  # auto, nccl, nccl-tests, gloo, tcp, none
    probe_wanted: bool = False  # ncheck probe: what could not be measured is unknown, not skipped
    probe_time: float = 60.0  # in addition to the deadline, for all rounds together
    probe_launcher: str = "agents"  # agents; mpirun: with the command line of the plan
    sizes: tuple[int, ...] = ()  # bytes per rank; (): a few sizes, as memory allows
    expect: float | None = None  # bus bandwidth in GB/s that the user expects
    expected: ExpectedFacts | None = None  # what else the user expects of every node
    data: tuple[str, ...] = ()  # folders and files that the job reads on every node
    started_in: str | None = None  # the folder that ncheck was started in, where it is on a network file system
    storage_probe: bool = False  # measure how fast the nodes read these
    select: tuple[str, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    fail_on: tuple[str, ...] = ("error", "unknown")
    output: tuple[Output, ...] = (Output("console"),)
    record: str | None = None
    local: bool = False
    rehearsal: bool = False  # ncheck demo: its temporary files must not appear in command lines
    # The launch plan
    launcher: str | None = None  # --for, --with: one of model.plan.LAUNCHERS
    program: tuple[str, ...] = ()  # the words after --
    slots: int | None = None  # ranks per node, unless the host file or the GPUs give it
    profile: str | None = None  # how mpirun places ranks: slot, numa
    ifname: str | None = None  # the interface that the job must use
    master_port: int | None = None  # port where the ranks meet; None: default of the launcher
    need_ports: tuple[int, ...] = ()  # more ports that the job needs on every node
    drop_bad: bool = False  # plan, launch and probe leave out nodes that have errors
    good_nodes: str | None = None  # the file to write the nodes without errors to
    bad_nodes: str | None = None  # the file to write the others to
    force: bool = False  # use the plan although errors affect it
    # Inside a job: ncheck.preflight()
    target: Target | None = None  # the job that triage is asked about
    ranks: Mapping[str, RanksFacts] = field(default_factory=dict)  # by node; the launcher has started them already

    @property
    def longest(self) -> float:
        """The seconds that the run may take: its deadline, and the bandwidth test after it."""
        return self.deadline + (0.0 if self.probe == "none" else self.probe_time)

    def environment_of(self, node: str) -> JobEnvironment:
        """Return how to enter the environment of the job on this node.

        The first override that names the node applies. Values that it leaves out are those of the run; "" means none.
        """
        for override in self.overrides:
            if node in _members(override.nodes):
                return _entered(override.environment, self.environment)
        return self.environment


@lru_cache(maxsize=256)
def _members(nodes: str) -> frozenset[str]:
    return frozenset(unfold(nodes))


def _entered(own: JobEnvironment, run: JobEnvironment) -> JobEnvironment:
    values = {name: getattr(own, name) for name in ENVIRONMENT}
    return replace(run, **{name: value or None for name, value in values.items() if value is not None})


# Environment variables for job scripts and container images. Settings that are commands have none.
VARIABLES: Mapping[str, str] = {
    "NCHECK_PORT": "port",
    "NCHECK_USER": "user",
    "NCHECK_IDENTITY": "identity",
    "NCHECK_SSH_CONFIG": "ssh_config",
    "NCHECK_TRANSPORT": "transport",
    "NCHECK_VIA": "via",
    "NCHECK_WIDTH": "width",
    "NCHECK_DEADLINE": "deadline",
    "NCHECK_FAIL_ON": "fail_on",
}


_FLAGS = {
    "nodes_file": "the nodes file", "hosts": "-H", "ssh_config": "-F", "identity": "-i", "output": "-o",
    "need_ports": "--need-port", "launcher": "--for",
}  # fmt: skip


_SOURCES = ("nodes_file", "hosts", "slurm", "local")


# How to log in by ssh: nothing of it is used with --via srun.
_OF_SSH = ("port", "user", "identity", "ssh_config", "transport", "accept_new_host_keys", "rsh")


def make_settings(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    warn: Callable[[str], None] = lambda _: None,
) -> Settings:
    """Make the settings of one run. Precedence: options, environment variables, ncheck.toml, defaults.

    `flags` maps fields of Settings and of JobEnvironment, and `config`, to text or to what click made of it;
    None, False and () mean: not given. `ignore` and `select` are tuples of text, `fail_on` is text. `warn` gets a line
    about keys of ncheck.toml that are ignored.
    Raises SettingsError: one line that names the option, the variable or the file and key, and a valid value.
    """
    given = {name: value for name, value in flags.items() if value is not None and value is not False and value != ()}
    config = given.pop("config", None) or environ.get("NCHECK_CONFIG") or None
    file = read_settings_file(str(config) if config else None, environ, cwd)
    if file.ignored:
        keys = ", ".join(file.ignored)
        warn(f"ncheck.toml: ignored: {keys} (a file that was found runs commands only after: ncheck allow)")
    typed = {name: _read(name, value, _flag(name)) for name, value in given.items()}
    if "workdir" in typed:
        typed["workdir"] = anchored(cwd, str(typed["workdir"]))
    _one_source(typed)
    variables = {name: _read(name, environ[key], key) for key, name in VARIABLES.items() if environ.get(key)}
    values = {**_without_rivals(file.values, typed), **variables, **typed}
    overrides = _overrides(file, typed)
    if values.get("via") == "srun" and not values.get("local"):
        _refuse_ssh(typed, values, overrides)
        values.setdefault("width", MOST_AT_ONCE)  # all tasks start at once
        values.setdefault("launcher", "srun")  # such nodes often allow no ssh, which mpirun may need
    return _settings(values, overrides)


def _settings(values: Mapping[str, Any], overrides: tuple[HostOverride, ...]) -> Settings:
    environment = JobEnvironment(**{name: values[name] or None for name in ENVIRONMENT if name in values})
    own = {name: value for name, value in values.items() if name not in ENVIRONMENT}
    if "ignore" in own:
        own["ignore"] = tuple(Ignore(check, nodes) for check, nodes in own["ignore"])
    if "expect" in own:
        own["expect"], own["expected"] = own["expect"]
    if own.get("requirements"):
        own["expected"] = _with_requirements(own.get("expected"), str(own["requirements"]))
    settings = Settings(**own, environment=environment, overrides=overrides)
    _require_identity(settings.identity)
    _require_ssh_config(settings.ssh_config)
    _refuse_mpirun_without_nccl(settings)
    return settings


def _with_requirements(expected: ExpectedFacts | None, path: str) -> ExpectedFacts:
    """Return what is expected together with the requirements in this file. Raises SettingsError."""
    from ncheck.facts.expected import ExpectedFacts
    from ncheck.facts.requirements import read_requirements

    try:
        with Path(path).expanduser().open(encoding="utf-8-sig") as file:
            requirements = read_requirements(file.read(LARGEST))
    except OSError as error:
        raise SettingsError(f"--requirements: {printable(path)}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"--requirements: {printable(path)}: {printable(str(error), 400)}") from None
    return replace(expected or ExpectedFacts(), requirements=requirements)


def _read(name: str, value: object, source: str) -> object:
    if name not in READ:
        raise TypeError(f"{name} is not a setting; settings are {', '.join(sorted(READ))}")
    try:
        return READ[name](value)
    except ValueError as error:
        raise SettingsError(f"{source}: {error}") from None


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def _one_source(typed: Iterable[str]) -> None:
    named = [_flag(name) for name in _SOURCES if name in typed]
    if len(named) > 1:
        raise SettingsError(f"{' and '.join(named)} both select the nodes: use only one of them")


def _without_rivals(values: Mapping[str, object], typed: Iterable[str]) -> dict[str, object]:
    """Drop the nodes of the file if the command line selects nodes."""
    rivals = _SOURCES if any(name in typed for name in _SOURCES) else ()
    return {name: value for name, value in values.items() if name not in rivals}


def _refuse_ssh(typed: Iterable[str], values: Mapping[str, object], overrides: Iterable[HostOverride]) -> None:
    """Refuse what contradicts --via srun: options of an ssh login, and a command in place of ssh."""
    if named := [_flag(name) for name in _OF_SSH if name in typed and name != "rsh"]:
        raise SettingsError(
            f"--via srun uses no ssh login: remove {' and '.join(named)}, or log in by ssh with --via ssh"
        )
    if values.get("rsh") or any(override.environment.rsh for override in overrides):
        raise SettingsError("--via srun and --rsh are two ways to the nodes: remove one of them (--via ssh, --rsh '')")


def _overrides(file: FileSettings, typed: Iterable[str]) -> tuple[HostOverride, ...]:
    """Make the overrides, without the values that an option sets for all nodes."""
    kept = [(nodes, {name: rows[name] for name in rows if name not in typed}) for nodes, rows in file.hosts]
    return tuple(HostOverride(nodes, JobEnvironment(**rows)) for nodes, rows in kept)


def _require_identity(identity: str | None) -> None:
    """Refuse a key file that is missing or unreadable: ssh would only print a warning and try other keys."""
    if identity:
        mode = _mode("-i", identity)
        if mode is None or not stat.S_ISREG(mode):
            raise SettingsError(f"-i: {printable(identity)} is not a file; to list your keys: ls ~/.ssh")


def _require_ssh_config(config: str | None) -> None:
    """Refuse a missing or unreadable file before any node is asked; /dev/null and a pipe are allowed."""
    if config not in (None, "none"):
        mode = _mode("-F", str(config))
        if mode is None or stat.S_ISDIR(mode):
            raise SettingsError(f"-F: {printable(str(config))} is not a file; to list the files: ls ~/.ssh")


def _mode(flag: str, path: str) -> int | None:
    """Return the mode of a file that this user can read; None if there is none. Raises SettingsError."""
    try:
        file = Path(path).expanduser()
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: ~nobody/key, and there is no such user
        raise SettingsError(f"{flag}: {printable(path)}: {getattr(error, 'strerror', None) or error}") from None
    if not os.access(file, os.R_OK, effective_ids=True):
        raise SettingsError(f"{flag}: {printable(path)}: permission denied; see: ls -l {quote(printable(path))}")
    return mode


def _refuse_mpirun_without_nccl(settings: Settings) -> None:
    """Refuse --probe-launcher mpirun with a method that starts no ranks of NCCL."""
    if settings.probe_launcher == "mpirun" and settings.probe in ("gloo", "tcp"):
        raise SettingsError(
            f"--probe-launcher mpirun starts NCCL ranks, but --probe {settings.probe} has none: remove one of the two"
        )
