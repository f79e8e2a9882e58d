"""Ranks of a job on this host: in threads of the test, or as bare sockets that say what the test wants."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest
from ncheck.hook.meeting.attendance import Attendance
from ncheck.hook.meeting.messages import Outcome
from ncheck.hook.meeting.ports import candidates
from ncheck.hook.meeting.sockets import meet
from ncheck.hook.meeting.wire import End, job_token
from ncheck.rank_variables import Rank

VERDICT = {"problems": [], "summary": "all is well"}
PATIENCE = 20.0  # seconds after which a test that waits for an event has failed

StartExaminer = Callable[[Attendance, Mapping[str, socket.socket], float], Popen[bytes]]


def free_port() -> int:
    """Return a port of loopback that nobody listened on a moment ago."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def child(*argv: str, stdin: int = DEVNULL, stdout: int = DEVNULL, pass_fds: tuple[int, ...] = ()) -> Popen[bytes]:
    stderr = PIPE if stdout == PIPE else DEVNULL  # a part of a node has no pipes
    return subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=pass_fds, start_new_session=True)


def echo(sock: socket.socket) -> Popen[bytes]:
    """Be a node's agent: repeat what comes, until the end."""
    return subprocess.Popen(["cat"], stdin=sock.fileno(), stdout=sock.fileno(), start_new_session=True)


class Job:
    """A job on loopback with a token of its own."""

    def __init__(self, size: int, master: str = "127.0.0.1", *, timeout: float = 10.0, **fields: Any) -> None:
        named = {"master": f"MASTER_ADDR={master}"}
        self.fields = {"size": size, "master": master, "master_port": free_port(), "named": named, **fields}
        self.fields.setdefault("job", os.urandom(8).hex())
        self.timeout = timeout
        self.attendances: list[Attendance] = []  # that examiners got
        self.seconds: list[float] = []
        self.machines: list[tuple[str, ...]] = []
        self.started: dict[int, threading.Event] = {}
        self.children: list[Popen[bytes]] = []

    def rank(self, number: int, **fields: Any) -> Rank:
        return Rank(rank=number, **{**self.fields, **fields})

    @property
    def token(self) -> bytes:
        return job_token(self.rank(0), "", "user")

    @property
    def ports(self) -> tuple[int, ...]:
        return candidates(self.token, self.fields["master_port"])

    def examine(self, attendance: Attendance, sockets: Mapping[str, socket.socket], seconds: float) -> Popen[bytes]:
        """Start an examiner that finds nothing wrong."""
        self.note(attendance, sockets, seconds)
        return self.keep(child("echo", json.dumps(VERDICT), stdout=PIPE))

    def note(self, attendance: Attendance, sockets: Mapping[str, socket.socket], seconds: float) -> None:
        self.attendances.append(attendance)
        self.machines.append(tuple(sockets))
        self.seconds.append(seconds)

    def keep(self, process: Popen[bytes]) -> Popen[bytes]:
        self.children.append(process)
        return process

    def meet(self, number: int, **words: Any) -> Outcome:
        """Be a rank in this thread."""
        rank = words.pop("rank", self.rank(number))
        words = {"timeout": self.timeout, "start_node_part": echo, "start_examiner": self.examine, **words}
        return meet(rank, words.pop("token", job_token(rank, "", "user")), **words)

    def start(self, number: int, **words: Any) -> Future[Outcome]:
        """Be a rank in a thread of its own."""
        future: Future[Outcome] = Future()

        def run() -> None:
            try:
                future.set_result(self.meet(number, **words))
            except BaseException as error:  # noqa: BLE001  the test gets it
                future.set_exception(error)

        threading.Thread(target=run, name=f"rank {number}").start()
        return future

    def outcomes(self, *numbers: int, **words: Any) -> list[Outcome]:
        """Start these ranks in this order, and return their outcomes in this order."""
        futures = [self.start(number, **words) for number in numbers]
        return [future.result(PATIENCE) for future in futures]

    def member(self, number: int, **fields: Any) -> dict[str, Any]:
        """Return what a rank says of itself."""
        return {
            "rank": number, "size": self.fields["size"], "local_rank": None, "host_name": f"host{number}",
            "node_name": "", "machine": f"machine {number}", "pid": 1000 + number, "version": "0.1.0", **fields,
        }  # fmt: skip


class Bare:
    """A connection that says what the test wants, to the hub of a job, or to a rank that takes it for the hub."""

    def __init__(self, sock: socket.socket, token: bytes, *, hub: bool = False) -> None:
        self.sock, self.end = sock, End(token, hub=hub)
        sock.settimeout(PATIENCE)
        self.messages: list[Any] = []

    def __enter__(self) -> Bare:  # noqa: PYI034  Self is newer than Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def flush(self) -> None:
        data, self.end.outgoing[:] = b"".join(self.end.outgoing), []
        if data:
            self.sock.sendall(data)

    def step(self) -> bool:
        """Read once; return whether the other side is still there."""
        try:
            data = self.sock.recv(self.end.wanted)
        except ConnectionResetError:
            return False
        self.messages += self.end.feed(data)
        self.flush()
        return bool(data)

    def prove(self) -> Bare:
        self.flush()
        while not self.end.proved:
            assert self.step(), "the other side hung up before the proof"
        return self

    def say(self, message: object) -> None:
        self.end.say(json.dumps(message).encode())
        self.flush()

    def hear(self) -> Any:
        """Return the next message; None if the other side hangs up."""
        while not self.messages:
            if not self.step():
                return None
        return self.messages.pop(0)

    def enter(self, member: Mapping[str, object], seconds: float = 30.0) -> Bare:
        """Come as a rank."""
        self.say({"what": "rank", "member": member, "seconds": seconds})
        assert self.hear()["what"] == "welcome"
        return self

    def is_closed(self) -> bool:
        """Wait for the other side to hang up."""
        with suppress(ConnectionResetError):
            while self.sock.recv(65536):
                pass
        return True


def dial(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Connect, as soon as somebody listens there."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((host, port), PATIENCE)
        except ConnectionRefusedError:  # noqa: PERF203
            assert time.monotonic() < deadline, f"nobody listens on port {port}"
            time.sleep(0.01)


def files() -> dict[str, str]:
    """Return the open files of this process."""
    found = {}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            found[name] = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
    return found


def all_ended(leaders: list[Popen[bytes]]) -> bool:
    """Wait until nothing is left of these process groups."""
    groups, deadline = {process.pid for process in leaders}, time.monotonic() + PATIENCE
    while any(group in groups and state != "Z" for _, state, _, group in processes()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children() -> set[int]:
    """Return the children of this process, ended ones too."""
    return {pid for pid, _, parent, _ in processes() if parent == os.getpid()}


def processes() -> Iterator[tuple[int, str, int, int]]:
    """Yield pid, state, parent and process group of every process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # 4711 (tmux: server) S 1 4711 4711 0 -1 ...
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), fields[0], int(fields[1]), int(fields[2])


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Expect that the test leaves no socket, no child and no thread."""
    opened, started, threads = files(), children(), set(threading.enumerate())  # what others left may end meanwhile
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(PATIENCE)
    more = files().items() - opened.items(), children() - started, set(threading.enumerate()) - threads
    assert more == (set(), set(), set())
