from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread
from ncheck.triage.facts.activity import (
    ACTIVITY,
    ActivityFacts,
    Group,
    Look,
    MountUse,
    NodeActivity,
    ProcessActivity,
    Space,
    Thread,
    Written,
    activity,
)

Answered = Callable[[Mapping[Any, Reply]], Evidence]

LOOK = {
    "state": "S", "user": 10, "system": 1, "minor": 5, "major": 0, "exit_code": 0, "rss": 4096, "swap": 0,
    "ran": 10**9, "turns": 7, "read": None, "written": None, "disk_read": None, "disk_written": None,
}  # fmt: skip
PROCESS = {
    "pid": 4000, "rank_pid": 4000, "name": "python3", "parent": 1, "looks": [LOOK, {**LOOK, "ran": 3 * 10**9}],
    "threads": [{"tid": 4000, "name": "python3", "states": ["S", "D"], "ran": 5, "wait": "rpc_wait", "call": ""}],
    "thread_count": 2, "cpus": 64, "oom_score_adj": 0, "files": 9, "files_limit": 1024, "cwd": "/home/a",
    "output": ["/home/a/log", None], "written": [{"path": "/home/a/log", "from": 3, "to": 5}],
    "mounts": [{"point": "/", "type": "nfs4", "source": "filer:/", "options": "ro,noatime", "used": "/home/a"}],
    "groups": ["/sys/fs/cgroup/job"], "libraries": {"/usr/lib/libnccl.so.2": "2.21.5"},
}  # fmt: skip
NODE = {
    "stat": "cpu  100 0 100 700 100 0 0 0 0 0\n",
    "meminfo": "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 8 kB\n",
    "vmstat": "pswpin 10\npswpout 0\noom_kill 1\n", "loadavg": "1.50 2.00 3.00 1/2 3", "pressure/memory": "",
    "diskstats": "   8       0 sda 1 2 3 4 5 6 7 8 0 1000 11\n",
}  # fmt: skip
LATER = {
    **NODE, "stat": "cpu  300 0 300 1000 200 0 0 0 0 0\n", "vmstat": "pswpin 30\npswpout 0\noom_kill 2\n",
    "diskstats": "   8       0 sda 1 2 3 4 5 6 7 8 0 2500 11\n",
    "pressure/memory": "some avg10=5.00 avg60=0 avg300=0 total=1\nfull avg10=2.50 avg60=0 avg300=0 total=1\n",
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "seconds": 2.0, "gone": [4001], "left_out": 0, "processes": [PROCESS], "groups": {}, "node": [NODE, LATER],
    "cpus": 64,
    "spaces": {"/home/a": {"size": 10, "free": 5, "files": 3, "files_free": 2}, "/data": {"error": "no answer"}},
}  # fmt: skip


def read(answered: Answered, **words: Any) -> ActivityFacts:
    value = {**ANSWER, **words}
    facts = activity(answered({ACTIVITY: Reply(Status.OK, value=value)}))
    assert isinstance(facts, ActivityFacts)
    return facts


def test_an_answer_is_read_whole(answered: Answered) -> None:
    look = Look("S", 10, 1, 5, 0, 0, 4096, 0, 10**9, 7, None, None, None, None)
    later = Look("S", 10, 1, 5, 0, 0, 4096, 0, 3 * 10**9, 7, None, None, None, None)
    own = ProcessActivity(
        4000, 4000, "python3", (look, later), (Thread(4000, "python3", ("S", "D"), 5, "rpc_wait"),), 2, 64, 0, 9, 1024,
        "/home/a", ("/home/a/log", None), (Written("/home/a/log", 3, 5),),
        (MountUse("/", "nfs4", "filer:/", read_only=True, used="/home/a"),), ("/sys/fs/cgroup/job",),
        {"/usr/lib/libnccl.so.2": "2.21.5"},
    )  # fmt: skip
    node = NodeActivity(
        1024000, 409600, 8192, 10.0, 0.5, 0.125, 1.5, 1, {"memory some": 0.05, "memory full": 0.025},
        {"sda": 0.75},
    )  # fmt: skip
    assert read(answered) == ActivityFacts(
        {4000: own}, frozenset({4001}), 2.0, {}, {"/home/a": Space(10, 5, 3, 2), "/data": Unread("no answer")}, node, 64
    )
    assert (own.cpu_seconds, own.grown("read"), own.ended) == (2.0, None, False)


def test_a_control_group_of_version_2_is_read(answered: Answered) -> None:
    texts = {"memory.max": "8192\n", "memory.current": "8000\n", "memory.events": "max 3\noom 1\noom_kill 1\n",
             "memory.stat": "inactive_file 1000\nactive_file 500", "cpu.max": "200000 100000\n"}  # fmt: skip
    before = {**texts, "cpu.stat": "nr_periods 10\nnr_throttled 0\n"}
    after = {**texts, "cpu.stat": "nr_periods 30\nnr_throttled 15\n"}
    assert read(answered, groups={"/g": [before, after]}).groups == {"/g": Group("/g", 8192, 6500, 1, 2.0, 0.75)}


def test_a_control_group_of_version_1_is_read(answered: Answered) -> None:
    texts = {"memory.limit_in_bytes": "9223372036854771712\n", "memory.usage_in_bytes": "8000\n",
             "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "cpu.cfs_quota_us": "-1\n",
             "memory.stat": "total_inactive_file 1000", "cpu.cfs_period_us": "100000\n"}  # fmt: skip
    assert read(answered, groups={"/g": [texts, texts]}).groups == {"/g": Group("/g", None, 7000, 2, None, 0.0)}


def test_a_kernel_that_shows_nothing_of_a_node_is_read_as_that(answered: Answered) -> None:
    assert read(answered, node=[{}, {}]).node == NodeActivity(pressure={}, disks={})


def test_a_file_system_that_hung_leaves_no_room_known(answered: Answered) -> None:
    assert read(answered, spaces=None).spaces == {}


def test_a_process_that_was_not_seen_says_why(answered: Answered) -> None:
    facts = read(answered)
    assert facts.of(4001) == Unread("it had ended")
    assert facts.of(4002) == Unread("it was not looked at")
