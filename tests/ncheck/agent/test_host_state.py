"""The agent's own control groups, limits and rights; and processes that really do not let themselves be ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ncheck.agent.answers import host_load, host_settings
from ncheck.agent.answers.host_load import stuck_processes

ASK = "import json; from ncheck.agent.answers.host_settings import answer; print(json.dumps(answer(None, None, 1.0)))"


def asked(line: str) -> dict[str, object]:
    """Return what an agent says that a shell starts after a line."""
    done = subprocess.run(
        ["bash", "-c", f'{line}; exec {sys.executable} -c "$1"', "bash", ASK],
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, object] = json.loads(done.stdout)
    return said


def test_the_settings_are_those_of_this_machine() -> None:
    said = host_settings.answer(None, None, 1.0)
    assert said["cpus"] == {
        "online": Path("/sys/devices/system/cpu/online").read_text().strip(),
        "usable": len(os.sched_getaffinity(0)),
    }
    assert said["numa_policy"] in (0, 1, None)
    assert said["capabilities"] in Path("/proc/self/status").read_text()
    assert said["kernel"]["numa_balancing"] in ("0", "1", "2", None)


def test_who_may_become_root_is_told_by_the_groups_that_sudo_usually_lets_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def said(user: int, *groups: int) -> object:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        monkeypatch.setattr(os, "getegid", lambda: 4242)
        monkeypatch.setattr(os, "getgroups", lambda: list(groups))
        return host_settings.answer(None, None, 1.0)["sudo"]

    known = {row.split(":")[0]: int(row.split(":")[2]) for row in Path("/etc/group").read_text().splitlines()}
    (admins,) = [known[name] for name in ("sudo", "wheel") if name in known][:1]
    (tmp_path / "sudo").write_text("#!/bin/sh\n")
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [said(0), said(1000, 4242), said(1000, 4242, admins)] == [True, False, True]
    (tmp_path / "sudo").unlink()
    assert said(1000, admins) is False  # no program to become root with


def test_the_stack_and_the_cpus_of_a_launched_job_count() -> None:
    assert asked("ulimit -S -s unlimited")["stack_unlimited"] is True
    assert asked("ulimit -S -s 8192")["stack_unlimited"] is False
    first = min(os.sched_getaffinity(0))
    said = asked(f"taskset -cp {first} $$ > /dev/null")
    assert said["cpus"] == {"online": Path("/sys/devices/system/cpu/online").read_text().strip(), "usable": 1}


@contextmanager
def group(controller: str, **limits: int) -> Iterator[Path]:
    """Make a control group of version 1 in this machine's own tree, where this user may."""
    made = Path("/sys/fs/cgroup", controller, f"ncheck-test-{os.getpid()}")
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    try:
        for name, value in limits.items():
            (made / f"{controller}.{name}").write_text(str(value))
        yield made
    finally:
        made.rmdir()


def test_a_real_control_group_limits_memory_and_processes() -> None:
    with group("memory", limit_in_bytes=1 << 30) as memory, group("pids", max=100) as pids:
        said = asked(f"echo $$ > {memory}/cgroup.procs; echo $$ > {pids}/cgroup.procs")
    groups = said["groups"]
    assert isinstance(groups, dict)
    assert groups[str(memory)] == {"memory.limit_in_bytes": str(1 << 30)}
    assert {**groups[str(pids)], "pids.current": ""} == {"pids.max": "100", "pids.current": ""}


def test_the_figures_are_those_of_this_machine() -> None:
    said = host_load.answer(None, None, 1.0)
    assert said["cpus"] == len(os.sched_getaffinity(0)) or said["cpus"] == os.cpu_count()
    assert 0 < said["memory"]["MemAvailable"] < said["memory"]["MemTotal"]
    assert said["load"].count(".") == 3


def test_the_cache_of_zfs_is_read_without_what_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = tmp_path / "arcstats"
    monkeypatch.setattr(host_load, "_ZFS", str(stats))
    assert host_load.answer(None, None, 1.0)["memory"]["ZfsCache"] == 0
    stats.write_text(
        "13 1 0x01 147 39984 1 2\nname                            type data\n"
        "c_min                           4    2000\nsize                            4    50000\n"
        "compressed_size                 4    70000\n"
    )
    assert host_load.answer(None, None, 1.0)["memory"]["ZfsCache"] == 48000


STUCK = """
#include <unistd.h>
int main() { if (vfork() == 0) { pause(); _exit(0); } return 0; }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make a program with")
def test_a_process_that_waits_in_the_kernel_is_found_and_named(tmp_path: Path) -> None:
    """The parent of a child that vfork made sleeps uninterruptibly until the child ends: the one sleep like this that
    needs no broken device. A file system or a driver that hangs looks the same.
    """
    (tmp_path / "stuck.c").write_text(STUCK)
    subprocess.run(["cc", "-o", str(tmp_path / "stuck"), str(tmp_path / "stuck.c")], check=True)
    with subprocess.Popen([str(tmp_path / "stuck")], start_new_session=True) as process:
        try:
            while "\nState:\tD" not in Path(f"/proc/{process.pid}/status").read_text():
                assert process.poll() is None
            found = {one["pid"]: one for one in stuck_processes(looks=(0.2,))}
        finally:
            os.killpg(process.pid, 9)
    assert found[process.pid]["name"] == "stuck"


def laid(  # noqa: PLR0913  each is one figure of /proc
    folder: Path, pid: int, *, state: str = "D", kernel: bool = False, switches: int = 7, wait: str = "0"
) -> None:
    """Lay a process as /proc shows it."""
    made = folder / str(pid)
    made.mkdir(exist_ok=True)
    flags = 0x208040 if kernel else 0x400100
    (made / "stat").write_text(f"{pid} (nfs (1) read) {state} 2 0 0 0 -1 {flags} {'0 ' * 12}4242 0 0")
    (made / "status").write_text(f"Name:\tx\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t0\n")
    (made / "wchan").write_text(wait)


def test_only_user_processes_that_never_woke_between_the_looks_count(tmp_path: Path) -> None:
    laid(tmp_path, 10, wait="rpc_wait_bit_killable")
    laid(tmp_path, 11)
    laid(tmp_path, 12, state="S")
    laid(tmp_path, 13, kernel=True)
    laid(tmp_path, 14, wait="__refrigerator")
    laid(tmp_path, 15)
    laid(tmp_path, 16)
    (tmp_path / "version").write_text("no process")
    slept: list[float] = []

    def meanwhile(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            laid(tmp_path, 15, switches=8)  # it was woken: the disk is only busy
            shutil.rmtree(tmp_path / "16")

    assert stuck_processes(root=str(tmp_path), sleep=meanwhile) == [
        {"pid": 10, "name": "nfs (1) read", "wait": "rpc_wait_bit_killable"},
        {"pid": 11, "name": "nfs (1) read", "wait": ""},
    ]
    assert sum(slept) == pytest.approx(3.0)


def test_the_looks_end_as_soon_as_no_process_is_in_its_first_sleep(tmp_path: Path) -> None:
    laid(tmp_path, 10)
    laid(tmp_path, 11)
    slept: list[float] = []

    def meanwhile(seconds: float) -> None:
        slept.append(seconds)
        laid(tmp_path, 10 if len(slept) == 1 else 11, switches=8)  # in state D again, in another sleep

    assert stuck_processes(root=str(tmp_path), sleep=meanwhile) == []
    assert slept == pytest.approx([0.05, 0.15])


def test_no_time_is_spent_where_the_first_look_finds_none(tmp_path: Path) -> None:
    laid(tmp_path, 12, state="S")
    laid(tmp_path, 14, wait="__refrigerator")
    assert stuck_processes(root=str(tmp_path), sleep=lambda _: pytest.fail("it waited")) == []
