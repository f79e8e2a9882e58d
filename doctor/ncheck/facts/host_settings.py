"""How a node is set up: the CPUs and the memory that a job may use, kernel settings, clock, a container's rights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from ncheck.decode import Count, Maybe, Null, Positive
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.text import printable


@dataclass(frozen=True)
class Frequency:
    """The frequency settings of CPUs. `limit`: kHz at which they may run; `most`: kHz at which they can.
    `policies`: so many groups of CPUs have these settings.
    """

    governor: str
    driver: str
    limit: int | None = None
    most: int | None = None
    policies: int = 1


@dataclass(frozen=True)
class GroupLimit:
    """The strictest limit among the control groups that the login is in. `limit` and `used`: how many threads, or
    how much memory in bytes. `folder`: the control group's.
    """

    limit: int
    folder: str
    used: int | None = None


@dataclass(frozen=True)
class HostSettingsFacts:
    """What the kernel and the control groups set; None is what could not be read.

    `usable_cpus`: so many the login may use, by its CPU set and its quota; `online_cpus`: so many the node has.

    `kernel`: settings by name: transparent_hugepages, numa_balancing, ptrace_scope, smt, clocksource; those that it
    shows. `synchronized`: whether something keeps the clock right. `numa_refused`: whether a container forbids to
    ask for the NUMA policy. `locks_memory`: whether the login may lock memory beyond its limit. `gpu_devices`: how
    many /dev/nvidia0, 1, ... there are. `stack_unlimited`: whether `ulimit -s` is unlimited. `sudo`: whether the user
    is root, or in a group that may become it on most systems.
    """

    usable_cpus: int
    online_cpus: int | None = None
    memory: GroupLimit | None = None
    threads: GroupLimit | None = None
    frequencies: tuple[Frequency, ...] = ()
    kernel: Mapping[str, str] = field(default_factory=dict)
    synchronized: bool | None = None
    numa_refused: bool | None = None
    locks_memory: bool | None = None
    gpu_devices: int = 0
    stack_unlimited: bool = False
    sudo: bool | None = None


@dataclass(frozen=True)
class Cpus:
    online: Annotated[str, Null("")]
    usable: Positive


Texts = Mapping[str, str]


@dataclass(frozen=True)
class HostSettingsAnswer:
    """Settings as the kernel prints them."""

    cpus: Cpus
    frequencies: tuple[Annotated[Frequency, _frequency], ...]
    kernel: Mapping[str, str | None]
    groups: Mapping[str, Texts]
    clock_error: int | None
    numa_policy: int | None
    capabilities: str | None
    own_user_namespace: bool
    gpu_devices: Count
    stack_unlimited: bool
    sudo: Maybe[bool] = None


HOST_SETTINGS = Answer("host-settings", shape=HostSettingsAnswer)

KERNEL = ("transparent_hugepages", "numa_balancing", "ptrace_scope", "smt", "clocksource")

_UNLIMITED = 1 << 60  # version 1 of control groups writes its largest number for "no limit"

# Beyond it, the kernel counts the clock as not synchronized, and so does timedatectl: systemd, timedated.c, ntp_synced.
_LARGEST_ERROR = 16_000_000  # microseconds

_IPC_LOCK = 14  # the number of CAP_IPC_LOCK

_PERMISSION = 1  # EPERM

# always [madvise] never
_CHOSEN = expression(r"\[(\w{1,20})\]")

# 0-47,96-143
_RANGE = expression(r"(\d{1,7})(?:-(\d{1,7}))?")


@reading(HOST_SETTINGS)
def host_settings(answer: HostSettingsAnswer) -> HostSettingsFacts:
    """Read the settings. Raises ValueError for numbers that no kernel prints."""
    groups, error, refused = answer.groups, answer.clock_error, answer.numa_policy
    capabilities = answer.capabilities
    # Beyond its limit, only who has the capability in the first user namespace may lock memory.
    locks = None if capabilities is None else bool(int(capabilities, 16) >> _IPC_LOCK & 1)
    return HostSettingsFacts(
        usable_cpus=min([answer.cpus.usable, *_quotas(groups)]),
        online_cpus=_count(answer.cpus.online),
        memory=_strictest(groups, ("memory.max", "memory.limit_in_bytes")),
        threads=_strictest(groups, ("pids.max",), "pids.current"),
        frequencies=answer.frequencies,
        kernel={name: _setting(text) for name in KERNEL if (text := answer.kernel.get(name))},
        synchronized=None if error is None else error < _LARGEST_ERROR,
        numa_refused=None if refused is None else refused == _PERMISSION,
        locks_memory=locks and not answer.own_user_namespace,
        gpu_devices=answer.gpu_devices,
        stack_unlimited=answer.stack_unlimited,
        sudo=answer.sudo,
    )


def _quotas(groups: Mapping[str, Texts]) -> list[int]:
    """Return how many CPUs each group may use: cpu.max has "200000 100000", or "max 100000"."""
    found = []
    for texts in groups.values():
        quota, _, period = texts.get("cpu.max", "").partition(" ")
        allowed = _whole(quota or texts.get("cpu.cfs_quota_us"))
        every = _whole(period or texts.get("cpu.cfs_period_us"))
        if allowed and every:
            found.append(max(1, allowed // every))
    return found


def _strictest(groups: Mapping[str, Texts], names: tuple[str, ...], used: str = "") -> GroupLimit | None:
    limits = [
        GroupLimit(limit, printable(folder, 200), _whole(texts.get(used)))
        for folder, texts in groups.items()
        for name in names
        if (limit := _whole(texts.get(name))) is not None and limit < _UNLIMITED
    ]
    return min(limits, key=lambda one: one.limit, default=None)


def _count(ranges: str) -> int | None:
    """Count the CPUs of "0-47,96-143"."""
    found = _RANGE.findall(ranges)
    return sum(int(last or first) - int(first) + 1 for first, last in found) or None


def _frequency(row: tuple[str | None, str | None, int | None, int | None, int]) -> Frequency:
    governor, driver = (printable(name or "", 40) for name in row[:2])
    limit, most = (None if value is None or value <= 0 else value for value in row[2:4])
    return Frequency(governor, driver, limit, most, row[4])


def _setting(text: str) -> str:
    chosen = _CHOSEN.search(text)
    return chosen[1] if chosen else printable(text, 40)


def _whole(text: str | None) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,20}", (text or "").strip()) and text else None


FACTS = (Fact(HostSettingsFacts, (HOST_SETTINGS,), host_settings),)
