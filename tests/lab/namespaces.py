"""Entering namespaces: command lines for nsenter and unshare, and who runs inside."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

import psutil

INIT = ("--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL")


def enter(pid: int, argv: Sequence[str], *, rooted: bool = False) -> list[str]:
    """Return the command that runs `argv` in the namespaces of process `pid`; `rooted`: under its root folder too."""
    place = ["-r", "-w"] if rooted else []
    return ["nsenter", "-t", str(pid), "-n", "-m", "-u", "-i", "-p", *place, "--", *argv]


def start(argv: Sequence[str]) -> subprocess.Popen[str]:
    """Start an init that lives as long as its standard input is held open here."""
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def expect(init: subprocess.Popen[str], word: str) -> None:
    """Wait until an init says this word; whatever else it says, or its end, is an error."""
    assert init.stdout
    said = init.stdout.readline().strip()
    if said != word:
        raise RuntimeError(f"{init.args!r} said {said!r} where {word!r} was due (exit status {init.poll()})")


def tell(init: subprocess.Popen[str]) -> None:
    """Let a waiting init go on."""
    assert init.stdin
    init.stdin.write("on\n")
    init.stdin.flush()


def end(init: subprocess.Popen[str]) -> None:
    """End an init and, by its namespace, all that it ever started."""
    for pipe in (init.stdin, init.stdout):
        if pipe and not pipe.closed:
            pipe.close()
    try:
        init.wait(5)
    except subprocess.TimeoutExpired:
        init.kill()
        init.wait()


def innermost(pid: int) -> int:
    """Return the last of a chain of only children: the init behind nsenter and unshare, by its pid out here."""
    while children := psutil.Process(pid).children():
        pid = children[0].pid
    return pid


def child(pid: int) -> int:
    """Return what nsenter runs, by its pid out here."""
    return psutil.Process(pid).children()[0].pid


def run(
    argv: Sequence[str], *, stdin: str = "", check: bool = True, pass_fds: Collection[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, at most two minutes; its words are in the error where it fails."""
    done = subprocess.run(
        argv, input=stdin, capture_output=True, text=True, errors="replace", timeout=120, check=False, pass_fds=pass_fds
    )
    if check and done.returncode:
        raise RuntimeError(f"{argv!r} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def _title(line: str) -> str:
    # sshd: /usr/sbin/sshd -E /run/sshd.log [listener] 0 of 10-100 startups
    return line.partition(" [listener]")[0]


def gone(pid: int, seconds: float) -> bool:
    """Wait until a process is no more; tell whether it ended in time."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], seconds)[0])
    finally:
        os.close(watched)


def processes(root: Path) -> dict[int, str]:
    """Map the processes that /proc under `root` shows to their command lines; kernel-side remains of ended ones not."""
    found = {}
    for process in (path for path in (root / "proc").iterdir() if path.name.isdigit()):
        try:
            line = (process / "cmdline").read_bytes()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            found[int(process.name)] = _title(line.replace(b"\0", b" ").decode(errors="replace").strip())
    return found
