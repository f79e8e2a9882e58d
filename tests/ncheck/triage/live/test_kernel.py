from __future__ import annotations

from typing import Any

import pytest
from ncheck.model.job import Job
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.facts.activity import ActivityFacts, Look, ProcessActivity
from ncheck.triage.facts.gpu_activity import GpuActivity, GpuActivityFacts, GpuLook
from ncheck.triage.facts.kernel_messages import KernelMessage, KernelMessagesFacts
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.live.kernel import signs

from .jobs import cluster, job, process, rank

# Rank 0 is pid 4000 and began 400 s after boot; 4100 is beneath it.
JOB = job(rank(0, "gpu01", children=(process(4100),)), rank(1, "gpu02"))


def clues(*lines: str, seconds: float = 900.0, gpu: str = "") -> list[tuple[Any, ...]]:
    """Return what these messages say; `gpu` is the PCI address of the one that rank 0 uses, where it is known."""
    messages = tuple(KernelMessage(seconds + at, line) for at, line in enumerate(lines))
    look = GpuLook(use=0)
    gpus = GpuActivityFacts((GpuActivity(0, (look, look), gpu, processes={4000: 1}),) if gpu else ())
    facts = {KernelMessagesFacts: KernelMessagesFacts(messages, "dmesg"), GpuActivityFacts: gpus}
    known = cluster({"gpu01": facts, "gpu02": {}})
    found = list(signs(JOB, known))
    assert all(isinstance(one, Clue) and one.source == "kernel" and one.nodes == ("gpu01",) for one in found)
    return [(one.cause, one.grade, one.ranks, one.still, one.text) for one in found if isinstance(one, Clue)]


def test_a_quiet_kernel_is_no_clue() -> None:
    assert clues("Linux version 6.8.0", "EXT4-fs (sda1): mounted filesystem", "eth0: renamed from veth1") == []


OOM = "Out of memory: Killed process {} ({}) total-vm:512000000kB"


def test_a_rank_or_its_child_that_the_kernel_killed_is_certain() -> None:
    line = OOM.format(4100, "python3")
    assert clues(line) == [
        ("rank_crashed", Grade.CERTAIN, (0,), False,
         f"the kernel of gpu01 says about rank 0 (pid 4000 on gpu01): {line}"),
    ]  # fmt: skip


ENDED = (
    "{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=ab,task_memcg={group},task={name},pid=77,uid=0",
    "Memory cgroup out of memory: Killed process 77 ({name}) total-vm:9000kB, anon-rss:8000kB, file-rss:0kB, UID:0",
    "oom_reaper: reaped process 77 ({name}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
)
SHORT = job(rank(0, "gpu01"), rank(1, "gpu02"), size=3)
GROUPS = ("/sys/fs/cgroup/slurm/job_7/task_0", "/sys/fs/cgroup/slurm/job_7", "/sys/fs/cgroup/slurm", "/sys/fs/cgroup")


def of_an_end(job: Job, name: str, group: str) -> list[tuple[Any, ...]]:
    """Return what the kernel of gpu01 says of a job when it has ended a process that is none of the job's now."""
    messages = tuple(KernelMessage(900.0, line.format(name=name, group=group)) for line in ENDED)
    own = ProcessActivity(4000, 4000, "python3", (Look("S"), Look("S")), groups=GROUPS)
    known = {KernelMessagesFacts: KernelMessagesFacts(messages, "dmesg"), ActivityFacts: ActivityFacts({4000: own})}
    found = signs(job, cluster({"gpu01": known, "gpu02": {}}))
    return [(one.cause, one.grade, one.ranks, one.nodes) for one in found if isinstance(one, Clue)]


@pytest.mark.parametrize(("name", "group"), [
    ("java", "/docker/ab"),
    ("java", "/slurm/job_7/task_0"),
    ("python3", "/docker/ab"),
    ("python3", "/slurm"),
    ("python3", "/slurm/job_8/task_0"),
    ("python3", "/slurm/job_7/task_1"),
])  # fmt: skip
def test_an_end_of_another_process_for_lack_of_memory_is_no_matter_of_a_job_that_is_whole(
    name: str, group: str
) -> None:
    assert of_an_end(JOB, name, group) == []


@pytest.mark.parametrize("group", ["/slurm/job_7/task_0", "/slurm/job_7/task_0/step_1"])
def test_an_end_in_the_control_group_of_a_rank_is_one_of_the_job(group: str) -> None:
    assert of_an_end(JOB, "python3", group) == [("rank_crashed", Grade.LIKELY, (), ("gpu01",))]
    assert of_an_end(JOB, "pt_data_worker", group) == [("rank_crashed", Grade.LIKELY, (), ("gpu01",))]


def test_an_end_of_the_same_program_may_be_that_of_a_missing_rank_and_another_job_s_is_not() -> None:
    assert of_an_end(SHORT, "python3", "/slurm/job_7/task_1") == [("rank_crashed", Grade.LIKELY, (2,), ("gpu01",))]
    assert of_an_end(SHORT, "python3", "/docker/ab/cd") == []
    assert of_an_end(SHORT, "java", "/slurm/job_7/task_1") == []


@pytest.mark.parametrize(("up", "said", "found"), [
    (2000.0, 1700.0, [("rank_crashed", Grade.LIKELY, (2,), ("gpu03",))]),
    (2000.0, 1200.0, []),  # before the job began, which is 600 s old
    (0.0, 1700.0, []),  # it is not known when that was, by the clock of that node
])  # fmt: skip
def test_a_node_that_has_no_rank_is_looked_at_for_the_missing_one(up: float, said: float, found: list[Any]) -> None:
    line, other = OOM.format(77, "python3"), "EXT4-fs (sda1): Remounting filesystem read-only"
    known = cluster({
        "gpu01": {ProcessesFacts: ProcessesFacts((), {}, uptime=1000.0)},
        "gpu02": {},
        "gpu03": {
            ProcessesFacts: ProcessesFacts((), {}, uptime=up),
            KernelMessagesFacts: KernelMessagesFacts((KernelMessage(said, line), KernelMessage(said, other)), "dmesg"),
        },
    })  # fmt: skip
    clues = [(one.cause, one.grade, one.ranks, one.nodes) for one in signs(SHORT, known) if isinstance(one, Clue)]
    assert clues == found
    assert list(signs(JOB, known)) == []  # nobody is missing


def test_a_crash_of_the_same_program_counts_where_a_rank_is_missing() -> None:
    line = "python3[77]: segfault at 10 ip 00007f3a sp 00007ffc error 4 in libc.so.6[7f3a+200000]"
    known = cluster({"gpu01": {KernelMessagesFacts: KernelMessagesFacts((KernelMessage(900.0, line),), "dmesg")}})
    assert [one.grade for one in signs(SHORT, known) if isinstance(one, Clue)] == [Grade.POSSIBLE]
    assert clues(line) == []
    assert clues(line.replace("python3", "chrome")) == []


def test_what_came_before_the_job_is_no_matter_of_it() -> None:
    assert clues(OOM.format(4000, "python3"), seconds=390.0) == []


def test_a_segfault_of_a_rank_names_it() -> None:
    line = "python3[4000]: segfault at 10 ip 00007f3a sp 00007ffc error 4 in libtorch.so[7f3a+200000]"
    assert clues(line)[0][:4] == ("rank_crashed", Grade.LIKELY, (0,), True)


@pytest.mark.parametrize(("gone", "back", "cause"), [
    ("nfs: server filer not responding, still trying", "nfs: server filer OK", "storage_hang"),
    ("mlx5_core 0000:3b:00.0 ens1f0np0: Link down", "mlx5_core 0000:3b:00.0 ens1f0np0: Link up", "ib_fabric"),
    ("igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down", "igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps",
     "ib_fabric"),
    ("bond0: (slave eth1): link status definitely down, disabling slave",
     "bond0: (slave eth1): link status definitely up, 10000 Mbps full duplex", "ib_fabric"),
])  # fmt: skip
def test_what_is_gone_counts_until_it_is_back(gone: str, back: str, cause: str) -> None:
    assert [found[0] for found in clues(back, gone)] == [cause]
    assert clues(gone, back) == []
    assert clues(gone, back.replace("filer", "other").replace("eth", "eno").replace("ens", "eno")) != []


def test_many_messages_of_one_kind_are_one_clue() -> None:
    hung = "INFO: task python3:4000 blocked for more than {} seconds."
    assert clues(hung.format(120), hung.format(240)) == [
        ("storage_hang", Grade.POSSIBLE, (0,), True,
         f"the kernel of gpu01 says about rank 0 (pid 4000 on gpu01), 2 such messages: {hung.format(240)}"),
    ]  # fmt: skip


def test_a_gpu_that_fell_off_the_bus_is_certain_and_a_harmless_xid_is_nothing() -> None:
    lost = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    assert clues(lost)[0][:4] == ("gpu_fault", Grade.CERTAIN, (), True)
    assert clues(lost, gpu="0000:3b:00.0")[0][:4] == ("gpu_fault", Grade.CERTAIN, (), False)
    assert clues(lost, gpu="0000:5c:00.0") == []  # of somebody else
    assert clues("NVRM: Xid (PCI:0000:3b:00): 43, pid=4000, name=python3, Ch 00000010") == []


def test_a_node_that_answers_has_not_gone_down() -> None:
    assert clues("mce: [Hardware Error]: Machine check events logged")[0][:4] == (
        "node_failed", Grade.POSSIBLE, (), True
    )  # fmt: skip


@pytest.mark.parametrize(("line", "cause"), [
    ("EXT4-fs (sda1): Remounting filesystem read-only", "node_failed"),
    ("XFS (sdb1): Filesystem has been shut down due to log error (0x2).", "node_failed"),
    ("nvme nvme0: I/O 123 QID 4 timeout, aborting", "node_failed"),
    ("nvme nvme0: I/O tag 17 (0011) opcode 0x1 (I/O Cmd) QID 4 timeout, aborting req_op:WRITE(1)", "node_failed"),
    ("mlx5_core 0000:3b:00.0: health poll failed: device's health compromised - reached miss count", "ib_fabric"),
    ("mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error, Cable is unplugged", "ib_fabric"),
    ("mlx5_core 0000:3b:00.0: Health issue observed, High temperature, severity(2) CRITICAL:", "ib_fabric"),
    ("pcieport 0000:3a:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer", "gpu_fault"),
    ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", "node_failed"),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)", "node_failed"),
])  # fmt: skip
def test_storage_and_adapters_that_fail_are_read(line: str, cause: str) -> None:
    assert [found[0] for found in clues(line)] == [cause]


@pytest.mark.parametrize("line", [
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
    "nvme nvme0: Shutdown timeout set to 10 seconds",
    "mlx5_core 0000:3b:00.0: Port module event: module 0, Cable plugged",
    "mlx5_core 0000:3b:00.0: Health issue observed, High temperature, severity(6) INFO:",
    "XFS (sdb1): Mounting V5 Filesystem",
])  # fmt: skip
def test_messages_of_a_healthy_start_are_none(line: str) -> None:
    assert clues(line) == []
