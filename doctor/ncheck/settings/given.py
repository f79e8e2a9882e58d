"""The settings that a call in Python may give. `make docs` writes this from the rows of settings/options.py."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Literal, TypedDict

OnePath = str | PathLike[str]


class Given(TypedDict, total=False):
    """The settings that a call may give, named as in ncheck.toml. Times are in seconds, sizes in bytes."""

    level: Literal["quick", "standard", "acceptance"]
    port: int
    user: str
    identity: OnePath
    ssh_config: OnePath
    transport: Literal["auto", "paramiko", "openssh"]
    via: Literal["ssh", "srun"]
    accept_new_host_keys: bool
    python: str
    setup: str
    enter: str
    rsh: str
    packages: Literal["frameworks", "all"]
    workdir: OnePath
    sudo: bool
    data: OnePath | Sequence[OnePath]
    storage_probe: bool
    width: int
    connect_timeout: float
    command_timeout: float
    deadline: float
    mesh: Literal["auto", "all", "none"]
    probe: Literal["auto", "nccl", "nccl-tests", "gloo", "tcp", "none"]
    probe_time: float
    probe_launcher: Literal["agents", "mpirun"]
    groups: str
    gpu_test: Literal["quick", "long", "none"]
    nic_test: bool
    sizes: str | Sequence[int]
    ops: str | Sequence[str]
    repeats: int
    expect: str | float
    requirements: OnePath
    select: str | Sequence[str]
    ignore: str | Sequence[str]
    fail_on: str | Sequence[str]
    docs: str
    record: OnePath
    history: OnePath
    keep_days: int
    notify: str
    max_drain: float
    launcher: str
    program: Sequence[str]
    slots: int
    profile: Literal["slot", "numa"]
    ifname: str
    master_port: int
    need_ports: int | Sequence[int]
    drop_bad: bool
    force: bool
    config: OnePath


class GivenToRun(Given, total=False):
    """The settings of `run`: with slurm=True, the nodes are those of the current Slurm allocation.

    `config`: the ncheck.toml to read; without it, none is read. `program`: the words of the job's command line.
    """

    failed_of: OnePath
    slurm: bool
