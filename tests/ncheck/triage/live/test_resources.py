from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.cluster import FactType
from ncheck.model.fact import Unread
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.facts.activity import ActivityFacts, Group, MountUse, NodeActivity, Space, Written
from ncheck.triage.live.resources import signs

from .jobs import cluster, spread
from .watching import facts, seen, watched

R0, R1 = "rank 0 (pid 4000 on node0)", "rank 1 (pid 4001 on node0)"

GIB = 1 << 30
WELL = NodeActivity(512 * GIB, 300 * GIB, cpu=0.4, pressure={"memory full": 0.0}, disks={"nvme0n1": 0.1})


def clues(*odd: Any, **words: Any) -> list[tuple[str, Grade, str, tuple[int, ...], bool, bool]]:
    found = [one for one in signs(*seen(*odd, **words)) if isinstance(one, Clue)]
    return [(one.cause, one.grade, one.text, one.ranks, one.still, one.slow) for one in found]


def of_nodes(*nodes: NodeActivity) -> list[tuple[str, Grade, str, tuple[str, ...], bool]]:
    known: dict[str, dict[FactType, object]] = {
        f"node{at}": {ActivityFacts: facts([watched(4000 + at)], node=node)} for at, node in enumerate(nodes)
    }  # fmt: skip
    found = [one for one in signs(spread(len(nodes), len(nodes)), cluster(known)) if isinstance(one, Clue)]
    return [(one.cause, one.grade, one.text, one.nodes, one.still) for one in found]


def test_a_node_with_room_is_no_clue() -> None:
    assert clues(node=WELL) == []
    assert of_nodes(WELL, WELL) == []


SHM = "/dev/shm"  # noqa: S108  only named
FULL = Space(1 << 40, 4096, 1000, 900)


def test_a_full_file_system_counts_where_a_rank_writes() -> None:
    writer = watched(4001, written=(Written("/home/a/ckpt/x.pt", 5, 5),))
    assert clues(writer, spaces={"/home/a/ckpt": FULL}) == [
        ("disk_full", Grade.LIKELY, (f"/home/a/ckpt, where {R1} writes, is full: 4 KiB of 1024 GiB"
         " free"), (1,), True, False),
    ]  # fmt: skip
    assert clues(spaces={"/other": FULL}) == []


def test_a_file_system_without_free_files_is_full() -> None:
    (found,) = clues(spaces={"/home/a": Space(1 << 40, 1 << 39, 1000, 0)}, ranks=1)
    assert found[:3] == ("disk_full", Grade.POSSIBLE, (f"/home/a, where {R0} writes, is full: none of"
                         " 1000 files free"))  # fmt: skip


@pytest.mark.parametrize("mount", [
    MountUse("/", "squashfs", "image", used="/home/a"),
    MountUse("/", "ext4", "/dev/vda", read_only=True, used="/home/a"),
])  # fmt: skip
def test_an_image_that_is_always_full_is_no_fault(mount: MountUse) -> None:
    assert clues(spaces={"/home/a": FULL}, usual={"mounts": (mount,)}) == []


def test_a_file_system_that_does_not_say_its_room_hangs() -> None:
    (found,) = clues(spaces={"/home/a": Unread("no answer within 1.5 s")}, ranks=1)
    assert found[:3] == ("storage_hang", Grade.LIKELY, (f"the file system of /home/a, where {R0} works,"
                         " does not answer (ext4 /dev/vda)"))  # fmt: skip
    assert clues(spaces={"/home/a": Unread("Permission denied")}) == []


def test_a_full_shared_memory_is_named() -> None:
    (found,) = clues(spaces={SHM: Space(64 << 20, 0, 0, 0)}, ranks=1)
    assert found[:3] == ("shm_too_small", Grade.POSSIBLE, (f"{SHM} of {R0} is full: 0 B of 64 MiB"
                         " free"))  # fmt: skip


def test_a_rank_that_reads_its_memory_from_swap_is_slow() -> None:
    node = NodeActivity(8 * GIB, GIB, swapped_in=500.0)
    assert clues(watched(4001, major=1000), node=node) == [
        ("host_memory", Grade.LIKELY, (f"{R1} reads its own memory back from swap: 500 major page"
         " faults per second"), (1,), False, False),
    ]  # fmt: skip
    assert clues(watched(4001, major=1000), node=WELL) == []  # a program that is loaded from a file


def group(**words: Any) -> dict[str, Any]:
    return {"groups": {"/sys/fs/cgroup/job": Group("/sys/fs/cgroup/job", **words)},
            "usual": {"groups": ("/sys/fs/cgroup/job",)}, "ranks": 1}  # fmt: skip


def test_a_control_group_at_its_limit_is_named_and_cached_files_do_not_count() -> None:
    assert clues(**group(limit=8 * GIB, used=8 * GIB)) == [
        ("host_memory", Grade.LIKELY, (f"the control group of {R0} (8 GiB) is full: 8 GiB used, without"
         " cached files"), (0,), True, False),
    ]  # fmt: skip
    assert clues(**group(limit=8 * GIB, used=6 * GIB)) == []
    assert clues(**group(used=8 * GIB)) == []


def test_processes_that_the_kernel_killed_in_the_group_are_counted() -> None:
    (found,) = clues(**group(limit=8 * GIB, used=GIB, killed=1))
    assert found[2] == f"the kernel has killed a process of the control group of {R0} (8 GiB) for lack of memory"
    assert clues(**group(used=GIB, killed=1)) == []  # a group of the whole machine remembers other jobs


def test_a_rank_that_its_group_holds_back_is_slow() -> None:
    assert clues(**group(cpus=2.0, throttled=0.9)) == [
        ("slow_rank", Grade.LIKELY, (f"{R0} is throttled in 90% of its time: its control group may use"
         " 2 CPUs"), (0,), False, True),
    ]  # fmt: skip
    assert clues(**group(cpus=2.0, throttled=0.1)) == []


def test_a_rank_that_shares_one_cpu_with_its_loaders_is_slow() -> None:
    loader = watched(5001, 4001, cpu=1.0)
    assert clues(watched(4001, cpus=1), loader)[0][:3] == (
        "slow_rank", Grade.POSSIBLE, f"{R1} and 1 processes beneath it share one CPU of 64"
    )  # fmt: skip
    assert clues(watched(4001, cpus=1)) == []
    assert clues(watched(4001, cpus=8), loader) == []


def test_a_rank_at_its_limit_of_open_files_is_named() -> None:
    assert clues(watched(4001, files=1024, files_limit=1024))[0][:3] == (
        "nofile_limit", Grade.LIKELY, f"{R1} has 1024 files open, of 1024 allowed"
    )  # fmt: skip


def test_a_node_without_memory_is_named() -> None:
    scarce = NodeActivity(512 * GIB, GIB, pressure={"memory full": 0.5})
    assert of_nodes(WELL, scarce) == [
        ("host_memory", Grade.LIKELY, "node1 has 1 GiB of 512 GiB memory left, and its processes wait for memory",
         ("node1",), False),
    ]  # fmt: skip


def test_one_busy_node_among_idle_ones_is_a_lead_and_a_job_that_uses_all_its_nodes_is_none() -> None:
    busy = replace(WELL, cpu=0.95)
    assert of_nodes(busy, WELL) == [
        ("slow_rank", Grade.POSSIBLE, "the CPUs of node0 are 95% busy, those of the other nodes at most 40%",
         ("node0",), False),
    ]  # fmt: skip
    assert of_nodes(busy, busy) == of_nodes(busy) == []
    disk = replace(WELL, disks={"nvme0n1": 0.97})
    assert of_nodes(disk, WELL) == [
        ("data_loader", Grade.POSSIBLE, "disk nvme0n1 of node0 is 97% busy, those of the other nodes at most 10%",
         ("node0",), False),
    ]  # fmt: skip
    assert of_nodes(disk, disk) == of_nodes(disk) == []
