"""How a node is set up and what is on it, from the answers of nodes of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.host_load import HOST_LOAD, HostLoadFacts, Stuck, Use
from ncheck.facts.host_settings import HOST_SETTINGS, Frequency, GroupLimit, HostSettingsFacts
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

# What a process without privileges says on a machine whose kernel shows nothing else.
BARE: dict[str, JsonValue] = {
    "cpus": {"online": None, "usable": 4}, "frequencies": [], "kernel": {}, "groups": {}, "clock_error": None,
    "numa_policy": None, "capabilities": None, "own_user_namespace": False, "gpu_devices": 0, "stack_unlimited": False,
}  # fmt: skip
IDLE: dict[str, JsonValue] = {
    "memory": {}, "pressure": None, "load": None, "cpus": 0, "files": None, "most_threads": None,
    "most_processes": None, "hidden": False, "stuck": [], "stuck_more": 0,
}  # fmt: skip


def settings(answered: Answered, **changed: JsonValue) -> object:
    reply = Reply(Status.OK, value={**BARE, **changed})
    return facts_of(answered({HOST_SETTINGS: reply}), [HostSettingsFacts])[HostSettingsFacts]


def load(answered: Answered, **changed: JsonValue) -> object:
    reply = Reply(Status.OK, value={**IDLE, **changed})
    return facts_of(answered({HOST_LOAD: reply}), [HostLoadFacts])[HostLoadFacts]


def test_a_kernel_that_shows_nothing_leaves_everything_unknown(answered: Answered) -> None:
    assert settings(answered) == HostSettingsFacts(4)
    assert load(answered) == HostLoadFacts(0)


def test_what_zfs_gives_back_of_its_cache_is_available(answered: Answered) -> None:
    memory: dict[str, JsonValue] = {"MemTotal": 1000, "MemAvailable": 40, "ZfsCache": 700}
    assert load(answered, memory=memory) == HostLoadFacts(0, 1000, 740)
    assert load(answered, memory={**memory, "ZfsCache": 5000}) == HostLoadFacts(0, 1000, 1000)  # that of a whole host
    assert load(answered, memory={"ZfsCache": 700}) == HostLoadFacts(0)


def test_the_strictest_of_the_control_groups_counts_in_both_versions(answered: Answered) -> None:
    job, step = "/sys/fs/cgroup/memory/slurm/job_7", "/sys/fs/cgroup/memory/slurm/job_7/step_0"
    unlimited: JsonValue = {"memory.limit_in_bytes": "9223372036854771712", "cpu.cfs_quota_us": "-1", "pids.max": "max"}
    first: dict[str, JsonValue] = {
        "/sys/fs/cgroup/memory": unlimited,
        job: {"memory.limit_in_bytes": "4096"},
        step: unlimited,
    }
    assert settings(answered, groups=first) == HostSettingsFacts(4, memory=GroupLimit(4096, job))
    second: dict[str, JsonValue] = {
        "/sys/fs/cgroup": {},
        "/sys/fs/cgroup/a": {"memory.max": "max", "cpu.max": "250000 100000", "pids.max": "100", "pids.current": "7"},
        "/sys/fs/cgroup/a/b": {"memory.max": "8192", "cpu.max": "max 100000", "pids.max": "200", "pids.current": "2"},
    }
    assert settings(answered, groups=second) == HostSettingsFacts(
        2, memory=GroupLimit(8192, "/sys/fs/cgroup/a/b"), threads=GroupLimit(100, "/sys/fs/cgroup/a", 7)
    )


def test_half_a_cpu_is_one(answered: Answered) -> None:
    assert settings(answered, groups={"/g": {"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}}) == (
        HostSettingsFacts(1)
    )


def test_a_bare_machine_says_how_it_is_set_up(answered: Answered) -> None:
    facts = settings(
        answered,
        cpus={"online": "0-47,96-143", "usable": 96},
        frequencies=[["powersave", "intel_pstate", 3800000, 3800000, 96], ["", None, None, None, 1]],
        kernel={"transparent_hugepages": "always [madvise] never", "numa_balancing": "1", "smt": None, "other": "x"},
        clock_error=1234,
        numa_policy=0,
        capabilities="000001ffffffffff",
        gpu_devices=8,
        stack_unlimited=True,
        sudo=False,
    )
    assert facts == HostSettingsFacts(
        96, 96,
        frequencies=(Frequency("powersave", "intel_pstate", 3800000, 3800000, 96), Frequency("", "", policies=1)),
        kernel={"transparent_hugepages": "madvise", "numa_balancing": "1"},
        synchronized=True, numa_refused=False, locks_memory=True, gpu_devices=8, stack_unlimited=True,
        sudo=False,
    )  # fmt: skip


def test_docker_refuses_numa_calls_and_root_without_the_capability_locks_no_memory(answered: Answered) -> None:
    docker = HostSettingsFacts(4, numa_refused=True, locks_memory=False)
    assert settings(answered, numa_policy=1, capabilities="00000000a80425fb") == docker
    rootless = settings(answered, capabilities="000001ffffffffff", own_user_namespace=True)
    assert rootless == HostSettingsFacts(4, locks_memory=False)
    assert settings(answered, clock_error=16_000_000) == HostSettingsFacts(4, synchronized=False)


def test_the_load_of_a_machine(answered: Answered) -> None:
    facts = load(
        answered,
        memory={"MemTotal": 4096, "MemAvailable": 2048, "SwapTotal": 100, "SwapFree": 60, "Hugetlb": 512},
        pressure="some avg10=1.00 avg60=2.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=12.50 avg300=0.20 total=7",
        load="1.89 3.00 6.10 5/372 7750",
        cpus=2,
        files="986\t0\t2466170",
        most_threads=192730,
        most_processes=32768,
        stuck=[{"pid": 17, "name": "ls\x1b[2J", "wait": "rpc_wait_bit_killable"}],
        stuck_more=1,
        hidden=True,
    )
    assert facts == HostLoadFacts(
        2, 4096, 2048, 512, Use(40, 100), 3.0, 0.125, Use(986, 2466170), Use(372, 32768),
        (Stuck(17, "ls?[2J", "rpc_wait_bit_killable"),), 1, True,  # noqa: FBT003
    )  # fmt: skip


@pytest.mark.parametrize(
    "nonsense",
    [
        {"cpus": {"online": "0-1", "usable": 0}}, {"frequencies": [["powersave"]]}, {"capabilities": "x"},
        {"gpu_devices": -1}, {"groups": {"/g": {"memory.max": 7}}}, {"clock_error": "0"},
    ],
)  # fmt: skip
def test_what_no_kernel_says_is_unread(answered: Answered, nonsense: dict[str, JsonValue]) -> None:
    assert isinstance(settings(answered, **nonsense), Unread)


def test_a_node_that_does_not_answer_is_unread_and_never_absent(answered: Answered) -> None:
    reply = Reply(Status.MISSING, reason="no such answer")
    facts = facts_of(answered({HOST_LOAD: reply, HOST_SETTINGS: reply}), [HostLoadFacts, HostSettingsFacts])
    assert isinstance(facts[HostLoadFacts], Unread)
    assert isinstance(facts[HostSettingsFacts], Unread)
