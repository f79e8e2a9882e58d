"""How a healthy node is set up, and what is on it before a job: an idle machine with 192 CPUs and 2 TB of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.host_load import HOST_LOAD
from ncheck.facts.host_settings import HOST_SETTINGS
from ncheck.facts.maintenance import SHUTDOWN
from ncheck.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host

GIB = 2**30


def host_state_replies(host: Host) -> dict[str, Reply]:
    """Return the settings and the load, by source key."""
    session = "/sys/fs/cgroup/user.slice/user-1001.slice/session-7.scope"
    settings: JsonValue = {
        "cpus": {"online": "0-191", "usable": 192},
        "frequencies": [["powersave", "intel_pstate", 3800000, 3800000, 192]],
        "kernel": {
            "transparent_hugepages": "always [madvise] never", "numa_balancing": "1", "ptrace_scope": "1", "smt": "on",
            "clocksource": "tsc",
        },
        "groups": {session: {"memory.max": "max", "cpu.max": "max 100000", "pids.max": "max", "pids.current": "5"}},
        "clock_error": 120_000 + host.number,
        "numa_policy": 0,
        "capabilities": "0000000000000000",
        "own_user_namespace": False,
        "gpu_devices": host.gpus,
        "stack_unlimited": False,
    }  # fmt: skip
    load: JsonValue = {
        "memory": {
            "MemTotal": 2015 * GIB, "MemAvailable": 1980 * GIB, "SwapTotal": 8 * GIB, "SwapFree": 8 * GIB, "Hugetlb": 0,
        },
        "pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
        "load": "0.42 0.31 0.20 1/2214 48211",
        "cpus": 192,
        "files": "8416\t0\t9223372036854775807",
        "most_threads": 16506226,
        "most_processes": 4194304,
        "hidden": False,
        "stuck": [],
        "stuck_more": 0,
    }  # fmt: skip
    shutdown: JsonValue = {"systemd": True, "scheduled": None, "now": None}
    said = {HOST_SETTINGS: settings, HOST_LOAD: load, SHUTDOWN: shutdown}
    return {source.key: Reply(Status.OK, value=value, seconds=0.01) for source, value in said.items()}
