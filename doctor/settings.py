"""One frozen Settings, made of flags, the environment and ncheck.toml, in that order of weight."""

from __future__ import annotations

from dataclasses import dataclass


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
    probe: str = "auto"  # auto, none
    select: tuple[str, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    fail_on: tuple[str, ...] = ("error", "unknown")
    output: str = "console"  # console, json
    record: str | None = None
    local: bool = False

    def environment_of(self, node: str) -> JobEnvironment:
        """Return how the job's environment is entered on this node: the first override that names it, else the run's."""
        raise NotImplementedError
