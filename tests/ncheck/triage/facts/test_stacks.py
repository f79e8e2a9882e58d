"""The stacks of ranks: what py-spy and the kernel said, as records."""

from __future__ import annotations

import pytest
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.text import LONGEST_MESSAGE
from ncheck.triage.facts.stacks import STACKS, Frame, ProcessStacks, PythonThread, StacksFacts, Task

SITE = "/opt/venv/lib/python3.11/site-packages"
FRAMES: list[JsonValue] = [
    ["all_reduce", f"{SITE}/torch/distributed/distributed_c10d.py", "torch/distributed/distributed_c10d.py", 3252, ""],
    ["train", "/home/ann/train.py", "train.py", 40, "dist.all_reduce(x)"],
]
THREAD: dict[str, JsonValue] = {
    "name": "MainThread", "id": "1403", "tid": 4711, "active": False, "gil": True, "stack": [0, 1],
}  # fmt: skip
TASK: dict[str, JsonValue] = {
    "tid": 4711, "name": "python", "state": "S", "ticks": 150, "switches": 7, "wchan": "pipe_read",
    "syscall": "0 0x5 0x7f 0x1", "file": "/data/a.tar", "stack": [],
}  # fmt: skip
PROCESS: dict[str, JsonValue] = {
    "pid": 4711, "rank": 4711, "gone": False, "hangs": False, "py_spy": "/opt/venv/bin/py-spy", "not_run": "",
    "samples": [[THREAD], None], "native": None, "error": "", "tasks": [[TASK], [TASK]], "seconds": 2.0,
}  # fmt: skip


def read(
    changed: dict[str, JsonValue] | None = None, *, frames: list[JsonValue] = FRAMES, scope: int | None = None
) -> object:
    value: JsonValue = {
        "processes": [{**PROCESS, **(changed or {})}], "frames": frames, "machine": "x86_64", "ptrace_scope": scope,
        "ticks_per_second": 100, "left_out": 0,
    }  # fmt: skip
    evidence = Evidence("n1", Login(reached=True), replies={STACKS.key: Reply(Status.OK, value=value)})
    return facts_of(evidence, [StacksFacts])[StacksFacts]


def test_each_look_has_its_threads_and_the_kernel_its_own() -> None:
    library, own = (Frame(*row) for row in FRAMES)  # type: ignore[misc]
    thread = PythonThread("MainThread", (library, own), 4711, idle=True, gil=True)
    task = Task(4711, "python", "S", 1.5, 7, "pipe_read", "read", "/data/a.tar")
    process = ProcessStacks(4711, ((thread,), (thread,)), (), (task,), (task,), 2.0)
    assert read() == StacksFacts({4711: process})


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"gone": True}, Absent("it has ended")),
        ({"py_spy": ""}, Unread("no py-spy on this node", fix="pip install py-spy")),
        ({"hangs": True}, Unread("the look at it did not come back: a file system hangs")),
        (
            {"py_spy": "", "not_run": "/home/bob/py-spy"},
            Unread("root does not run a py-spy that others may write: /home/bob/py-spy", fix="pip install py-spy"),
        ),
        ({"error": "Error: Failed to find python version from target process"}, Absent("it is no Python program")),
        ({"error": "sudo: a password is required"}, Unread("py-spy: sudo: a password is required")),
        (
            {"error": "Permission Denied: Try running again with elevated permissions by going 'sudo env'"},
            Unread("py-spy may not read it as this user (kernel.yama.ptrace_scope is 1): it needs root",
                   needs_root=True, fix="ncheck triage --sudo"),
        ),
        (
            {"error": "Error: Unsupported version of Python: 3.19.0"},
            Unread("py-spy: Unsupported version of Python: 3.19.0", fix="pip install py-spy"),
        ),
        ({"error": "ended because of its time limit"}, Unread("py-spy: ended because of its time limit")),
        ({}, Unread("py-spy: no answer")),
    ],
)  # fmt: skip
def test_what_has_no_stacks_says_why(changed: dict[str, JsonValue], why: Unread | Absent) -> None:
    found = read({"samples": [], **changed}, scope=1)
    assert isinstance(found, StacksFacts)
    assert found.unread == ((why,) if isinstance(why, Unread) else ())
    assert found.of(4711) == ProcessStacks(
        4711, why, (), *(((Task(4711, "python", "S", 1.5, 7, "pipe_read", "read", "/data/a.tar"),),) * 2), 2.0,
        gone="gone" in changed,
    )  # fmt: skip


def test_calls_of_another_kind_of_machine_have_no_name() -> None:
    found = read({"tasks": [[{**TASK, "syscall": "running", "file": "/data/a"}]]})
    assert isinstance(found, StacksFacts)
    assert found.processes[4711].before == (Task(4711, "python", "S", 1.5, 7, "pipe_read"),)
    assert found.processes[4711].after == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"samples": [[{**THREAD, "stack": [2]}]]}, {"samples": [None]}, {"pid": "4711"}, {"tasks": [[{}]]},
        {"seconds": None},
    ],
)  # fmt: skip
def test_nonsense_is_unread(changed: dict[str, JsonValue]) -> None:
    assert isinstance(read(changed), Unread)


@pytest.mark.parametrize("row", [[], ["f", "a.py", "a.py", "1", ""], [1, "a.py", "a.py", 1, ""], "abcde"])
def test_a_frame_that_is_none_is_unread(row: JsonValue) -> None:
    assert isinstance(read(frames=[row, row]), Unread)


def test_text_of_the_process_is_cleaned_and_bounded() -> None:
    found = read(frames=[["\x1b[2Jf", "/a/" + "x" * 999 + ".py", "\x07", 1, "\x9b31m" + "y" * 999], FRAMES[1]])
    assert isinstance(found, StacksFacts)
    looks = found.processes[4711].looks
    assert isinstance(looks, tuple)
    frame = looks[0][0].frames[0]
    assert (frame.function, frame.short, frame.source[:5]) == ("?[2Jf", "?", "?31my")
    assert max(map(len, (frame.file, frame.source))) <= LONGEST_MESSAGE


def test_nodes_without_ranks_are_not_asked() -> None:
    assert isinstance(facts_of(Evidence("n1", Login(reached=True)), [StacksFacts])[StacksFacts], Unread)
