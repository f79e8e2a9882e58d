"""One frozen Settings, made of flags, the environment and ncheck.toml, in that order of weight.

`make_settings` is the only way in for the command line; ncheck.toml is described in doctor/ncheck/settings/file.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ncheck.errors import SettingsError
from ncheck.hostlist import unfold
from ncheck.settings.file import FileSettings, read_settings_file
from ncheck.settings.values import ENVIRONMENT, READ
from ncheck.text import printable


@dataclass(frozen=True)
class JobEnvironment:
    """How the job's environment is entered on a node; None leaves it to what the node has.

    `python` is the job's interpreter; `setup` a shell line run before it ("module load nccl"); `enter` a command that
    enters a container ("docker exec -i train"); `rsh` a command that stands in for ssh ("kubectl exec -i {node} --").
    """

    python: str | None = None
    setup: str | None = None
    enter: str | None = None
    rsh: str | None = None


@dataclass(frozen=True)
class HostOverride:
    """[host."node[01-04]"] in ncheck.toml: what differs for these nodes."""

    nodes: str
    environment: JobEnvironment


@dataclass(frozen=True)
class Ignore:
    """--ignore CHECK[=nodes]: by name or code; no nodes means all."""

    check: str
    nodes: str | None = None


@dataclass(frozen=True)
class Settings:
    """Everything that one run was told. Times are in seconds."""

    nodes_file: str | None = None  # a path, "-" for standard input, None for none
    hosts: str | None = None  # -H a:8,b:8
    slurm: bool = False
    port: int | None = None
    user: str | None = None
    identity: str | None = None
    ssh_config: str | None = None  # -F; None: ~/.ssh/config and /etc/ssh/ssh_config
    transport: str = "auto"  # auto, paramiko, openssh
    accept_new_host_keys: bool = False
    environment: JobEnvironment = JobEnvironment()
    overrides: tuple[HostOverride, ...] = ()
    sudo: bool = False
    width: int = 64
    connect_timeout: float = 15.0
    command_timeout: float = 10.0
    deadline: float = 50.0
    mesh: str = "auto"  # auto: all pairs up to 16 nodes, Open MPI's edges beyond; all; none
    probe: str = "auto"  # auto, nccl, nccl-tests, gloo, tcp, none
    probe_wanted: bool = False  # ncheck probe: what could not be measured is then unknown, not left out
    probe_time: float = 60.0  # beyond the deadline, for all rounds together
    probe_launcher: str = "agents"  # agents; mpirun: under the very line of the plan
    sizes: tuple[int, ...] = ()  # bytes a rank; (): a quick set, as far as memory allows
    expect: float | None = None  # GB/s of bus bandwidth that the user knows to be right
    select: tuple[str, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    fail_on: tuple[str, ...] = ("error", "unknown")
    output: str = "console"  # console, json, html
    record: str | None = None
    local: bool = False
    rehearsal: bool = False  # ncheck demo: its ssh_config and its head end with the run, and no line may name them
    # The job that is planned for
    launcher: str | None = None  # --for, --with: one of model.plan.LAUNCHERS
    program: tuple[str, ...] = ()  # what stands after --
    slots: int | None = None  # ranks a node, where neither the host file nor its GPUs say
    profile: str | None = None  # how mpirun places ranks: slot, numa
    ifname: str | None = None  # the interface that the job is to use, whatever is found
    master_port: int | None = None  # the port of the ranks' rendezvous; None: the launcher's default
    need_ports: tuple[int, ...] = ()  # more ports that the job needs on its first node
    drop_bad: bool = False  # plan, launch and probe go on without the nodes that have errors
    good_nodes: str | None = None  # a file for the nodes without errors
    force: bool = False  # print the line although errors touch it

    def environment_of(self, node: str) -> JobEnvironment:
        """Return how the job's environment is entered on this node.

        The first override that names the node stands, value by value; what it leaves out is the run's, and "" in it
        means none.
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


# Variables for what a job script or a container image may want to settle once. Commands are not among them.
VARIABLES: Mapping[str, str] = {
    "NCHECK_PORT": "port",
    "NCHECK_USER": "user",
    "NCHECK_IDENTITY": "identity",
    "NCHECK_SSH_CONFIG": "ssh_config",
    "NCHECK_TRANSPORT": "transport",
    "NCHECK_WIDTH": "width",
    "NCHECK_DEADLINE": "deadline",
    "NCHECK_FAIL_ON": "fail_on",
}


_FLAGS = {
    "nodes_file": "the nodes file", "hosts": "-H", "ssh_config": "-F", "identity": "-i", "output": "-o",
    "need_ports": "--need-port", "launcher": "--for",
}  # fmt: skip


_SOURCES = ("nodes_file", "hosts", "slurm", "local")


def make_settings(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Settings:
    """Make the settings of one run. A flag outweighs a variable, a variable ncheck.toml, and that the default.

    `flags` maps fields of Settings and of JobEnvironment, and `config`, to what was typed or what click made of it;
    None, False, "" for no text and () mean: not given. `ignore` and `select` are tuples of texts, `fail_on` is a text.
    Raises SettingsError, one line that names the flag, the variable or the file with its key, and what would be right.
    """
    given = {name: value for name, value in flags.items() if value is not None and value is not False and value != ()}
    config = given.pop("config", None) or environ.get("NCHECK_CONFIG") or None
    file = read_settings_file(str(config) if config else None, environ, cwd)
    typed = {name: _read(name, value, _flag(name)) for name, value in given.items()}
    _one_source(typed)
    told = {name: _read(name, environ[key], key) for key, name in VARIABLES.items() if environ.get(key)}
    values = {**_without_rivals(file.values, typed), **told, **typed}
    return _settings(values, _overrides(file, typed))


def _settings(values: Mapping[str, Any], overrides: tuple[HostOverride, ...]) -> Settings:
    environment = JobEnvironment(**{name: values[name] or None for name in ENVIRONMENT if name in values})
    own = {name: value for name, value in values.items() if name not in ENVIRONMENT}
    if "ignore" in own:
        own["ignore"] = tuple(Ignore(check, nodes) for check, nodes in own["ignore"])
    settings = Settings(**own, environment=environment, overrides=overrides)
    _identity_is_there(settings.identity)
    _ssh_config_is_there(settings.ssh_config)
    _mpirun_has_ranks_to_start(settings)
    return settings


def _read(name: str, value: object, source: str) -> object:
    if name not in READ:
        raise TypeError(f"{name} is no setting; those are {', '.join(sorted(READ))}")
    try:
        return READ[name](value)
    except ValueError as error:
        raise SettingsError(f"{source}: {error}") from None


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def _one_source(typed: Iterable[str]) -> None:
    named = [_flag(name) for name in _SOURCES if name in typed]
    if len(named) > 1:
        raise SettingsError(f"{' and '.join(named)} each say which nodes: give one of them")


def _without_rivals(values: Mapping[str, object], typed: Iterable[str]) -> dict[str, object]:
    """Drop which nodes the file names where the command line names them in another way."""
    rivals = _SOURCES if any(name in typed for name in _SOURCES) else ()
    return {name: value for name, value in values.items() if name not in rivals}


def _overrides(file: FileSettings, typed: Iterable[str]) -> tuple[HostOverride, ...]:
    """Make the overrides, less what a flag settles for every node."""
    kept = [(nodes, {name: rows[name] for name in rows if name not in typed}) for nodes, rows in file.hosts]
    return tuple(HostOverride(nodes, JobEnvironment(**rows)) for nodes, rows in kept)


def _identity_is_there(identity: str | None) -> None:
    """Refuse a key that is not there: ssh would only warn, and go on with others."""
    if identity and not Path(identity).expanduser().is_file():
        raise SettingsError(f"-i: {printable(identity)} is no file; the keys that are there: ls ~/.ssh")


def _ssh_config_is_there(config: str | None) -> None:
    """Refuse it before any node is asked; /dev/null and a pipe are as good as a file."""
    path = Path(config or "none").expanduser()
    if config not in (None, "none") and (path.is_dir() or not path.exists()):
        raise SettingsError(f"-F: {printable(str(config))} is no file; those that are there: ls ~/.ssh")


def _mpirun_has_ranks_to_start(settings: Settings) -> None:
    """Refuse it before any node is asked: what is measured without NCCL is measured without mpirun."""
    if settings.probe_launcher == "mpirun" and settings.probe in ("gloo", "tcp"):
        told = f"--probe-launcher mpirun starts ranks of NCCL, and --probe {settings.probe} has none"
        raise SettingsError(f"{told}: leave out one of the two")
