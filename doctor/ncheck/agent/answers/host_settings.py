"""How this node is set up for a job: CPUs, control groups, kernel settings, clock, and what a container may do."""

import ctypes
import os
import re
import resource
import shutil
import sys

from ncheck.agent import control_groups
from ncheck.agent.files import line_of, matching, number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple, Union

_CPUS, _FREQUENCY = "/sys/devices/system/cpu", "/sys/devices/system/cpu/cpufreq/policy*"
_KERNEL = {
    "transparent_hugepages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "ptrace_scope": "/proc/sys/kernel/yama/ptrace_scope",
    "smt": _CPUS + "/smt/control",
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
_GROUP_FILES = (
    "memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "pids.max",
    "pids.current",
)  # fmt: skip
_ALL_USERS = "0 0 4294967295"  # the map of the first user namespace, and of a kernel that has no others
_GET_MEMPOLICY = {"x86_64": 239, "aarch64": 236}  # number of the system call

_ADMINISTRATORS = ("sudo", "wheel", "admin", "google-sudoers")

READS = (
    "the groups of this user, and their names in /etc/group",
    "sched_getaffinity, {}/online, {}/scaling_*".format(_CPUS, _FREQUENCY),
    "the limits of the agent's own control groups in /sys/fs/cgroup: memory.max, cpu.max, pids.max",
    ", ".join(sorted(_KERNEL.values())),
    "getrlimit of stack, adjtimex, get_mempolicy, /proc/self/{status,uid_map}, and the names of /dev/nvidia*",
)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return the settings."""
    folders = control_groups.folders(os.getpid(), ("memory", "cpu", "pids"))
    return {
        "cpus": {"online": line_of(_CPUS + "/online"), "usable": len(os.sched_getaffinity(0))},
        "frequencies": _frequencies(),
        "kernel": {name: line_of(path) for name, path in _KERNEL.items()},
        "groups": {folder: _limits(folder) for folder in folders},
        "clock_error": _clock_error(),
        "numa_policy": _numa_policy(),
        "capabilities": _status("CapEff"),
        "own_user_namespace": (line_of("/proc/self/uid_map") or _ALL_USERS).split() != _ALL_USERS.split(),
        "gpu_devices": sum(bool(re.match(r"/dev/nvidia\d+$", path)) for path in matching("/dev/nvidia*")),
        "sudo": _may_sudo(),
        "stack_unlimited": resource.getrlimit(resource.RLIMIT_STACK)[0] == resource.RLIM_INFINITY,
    }


def _may_sudo() -> "Optional[bool]":
    """Tell whether this user is root, or in a group that the sudoers file of a distribution or a cloud names.

    The file itself is root's to read, and asking sudo writes to the log that administrators read.
    """
    if os.geteuid() == 0:
        return True
    if not shutil.which("sudo"):
        return False
    own = {str(group) for group in (os.getegid(), *os.getgroups())}
    try:
        with open("/etc/group", encoding="utf-8", errors="replace") as file:
            rows = [line.split(":") for line in file]
    except OSError:
        return None
    return any(row[0] in _ADMINISTRATORS and own.intersection(row[2:3]) for row in rows)


def _frequencies() -> "List[List[Union[str, int, None]]]":
    """Return [governor, driver, limit in kHz, the CPU's own maximum, how many CPUs' policies are like this]."""
    found: "Dict[Tuple[Union[str, int, None], ...], int]" = {}
    for policy in matching(_FREQUENCY):
        own = (
            line_of(policy + "/scaling_governor"), line_of(policy + "/scaling_driver"),
            number_in(policy + "/scaling_max_freq"), number_in(policy + "/cpuinfo_max_freq"),
        )  # fmt: skip
        found[own] = found.get(own, 0) + 1
    return [[*own, count] for own, count in found.items()][:64]


def _limits(folder: str) -> "Dict[str, str]":
    texts = {name: line_of(folder + "/" + name) for name in _GROUP_FILES}
    return {name: text[:100] for name, text in texts.items() if text}


class _Timex(ctypes.Structure):
    """The first fields of the kernel's struct timex, and room for the others."""

    _fields_ = (
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("frequency", ctypes.c_long),
        ("max_error", ctypes.c_long), ("rest", ctypes.c_char * 256),
    )  # fmt: skip


def _clock_error() -> "Optional[int]":
    """Return the kernel's bound of the clock's error in microseconds; null where it cannot be asked."""
    if sys.maxsize < 2**32:
        return None  # there are two forms of the structure
    clock = _Timex()  # modes 0: nothing is set
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(clock))
    except (OSError, AttributeError):
        return None
    return clock.max_error if state >= 0 else None


def _numa_policy() -> "Optional[int]":
    """Return the error number of get_mempolicy, 0 where it works; null where it cannot be asked."""
    number = _GET_MEMPOLICY.get(os.uname().machine)
    if number is None or sys.maxsize < 2**32:
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
    zero = ctypes.c_long(0)
    return ctypes.get_errno() if call(ctypes.c_long(number), zero, zero, zero, zero, zero) < 0 else 0


def _status(name: str) -> "Optional[str]":
    for line in (line_of("/proc/self/status") or "").splitlines():
        if line.startswith(name + ":"):
            return line.split()[1]
    return None
