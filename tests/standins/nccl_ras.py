"""A stand-in for NCCL's RAS: what the releases print, and a server that sends it as they do, or as a broken one might.

The layouts and the rules of what is listed were read in src/ras/client_support.cc of 2.24.3, 2.26.2, 2.28.3, 2.28.9,
2.29.7 and 2.30.7, and of RCCL 2.27; that file of four releases, built alone, prints the same. A status is verbose.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

KINDS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
TEXT_RELEASES = ("2.24.3", "2.25.1", "2.26.2", "2.27.7", "2.28.3")
RELEASES = (*TEXT_RELEASES, "2.28.7", "2.28.9", "2.29.7", "2.30.7", "2.32.3")

ERRORS = {
    1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument", 5: "Invalid usage",
    6: "Remote process error",
}  # fmt: skip


@dataclass(frozen=True)
class Rank:
    """A rank of a communicator, as its process knows it. `lost`: "", unresponsive, dead, or no-member."""

    rank: int
    host: str
    pid: int
    counts: tuple[int, ...] = (0, 0, 0, 0, 0)
    init: int = 0
    error: int = 0
    finalize: bool = False
    abort: bool = False
    gpu: int = 0
    lost: str = ""

    @property
    def state(self) -> str:
        if self.lost:
            return "NOCOMM"
        return "ABORT" if self.abort else "FINALIZE" if self.finalize else "RUNNING" if self.init == 0 else "INIT"


@dataclass(frozen=True)
class Comm:
    key: int
    ranks: tuple[Rank, ...]

    @property
    def here(self) -> list[Rank]:
        return [one for one in self.ranks if not one.lost]

    @property
    def gone(self) -> list[Rank]:
        return [one for one in self.ranks if one.lost]


def comm(key: int, count: int, hosts: Sequence[str], all_reduce: int = 6650, **words: object) -> Comm:
    """Return a communicator of one rank per GPU, in blocks; rank N is process 4000 + N."""
    counts = (0, 0, 0, 0, all_reduce)
    ranks = (
        Rank(number, hosts[number * len(hosts) // count], 4000 + number, counts, gpu=number % 8)
        for number in range(count)
    )
    return Comm(key, tuple(replace(one, **words) for one in ranks))  # type: ignore[arg-type]


def change(of: Comm, numbers: Iterable[int], **words: object) -> Comm:
    """Return the communicator with some of its ranks changed."""
    chosen = set(numbers)
    return replace(
        of, ranks=tuple(replace(one, **words) if one.rank in chosen else one for one in of.ranks)  # type: ignore[arg-type]
    )  # fmt: skip


# Text


def text(comms: Sequence[Comm], release: str = "2.26.2", *, rccl: bool = False, timeouts: int = 0) -> str:
    """Return what VERBOSE STATUS prints."""
    return "".join(_text(comms, release, rccl=rccl, timeouts=timeouts))


def _text(  # noqa: C901  one document from its top to its end
    comms: Sequence[Comm], release: str, *, rccl: bool, timeouts: int
) -> Iterator[str]:
    if rccl:
        yield f"RCCL version {release} compiled with ROCm 7.0.0.0-38-9428210\n"
        yield "HIP runtime version 70051831, amdgpu driver version 70051831\n\n"
    else:
        yield f"NCCL version {release} compiled with CUDA 12.8\nCUDA runtime version 12080, driver version 12080\n\n"
    processes = {(one.host, one.pid): one for each in comms for one in each.ranks}
    nodes = len({host for host, _ in processes})
    yield "Job summary\n===========\n\n"
    yield "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
    yield f"{nodes:7d}  {len(processes) // max(nodes, 1):9d}  {1:11d}  {len(processes):9d}  {len(processes):7d}\n"
    yield "\nCommunicators... (0.00s)\n=============\n\n"
    ordered = sorted(comms, key=lambda one: -len(one.ranks))
    if ordered:
        yield "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
        yield "    #  in group  per comm  per node  per comm  in group\n"
    for number, each in enumerate(ordered):
        on_nodes = Counter(one.host for one in each.here)
        span = (
            f"{min(on_nodes.values())}-{max(on_nodes.values())}"
            if len(set(on_nodes.values())) > 1
            else str(next(iter(on_nodes.values()), 0))
        )
        status = max((one.state for one in each.here), key=("NOCOMM", "INIT", "RUNNING", "FINALIZE", "ABORT").index)
        errors = ",".join(_errors_of(each)) or "OK"
        yield (
            f"{number:5d}  {1:8d}  {len(on_nodes):8d}  {span:>8}  {len(each.ranks):8d}  {len(each.here):8d}"
            f"  {status:>8}  {errors:>6}\n"
        )
    yield "\nErrors\n======\n\n"
    for title, lost in (("INCOMPLETE", "unresponsive"), ("DEAD", "dead")):
        those = sorted({(one.host, one.pid, one.gpu) for each in comms for one in each.ranks if one.lost == lost})
        if not those:
            continue
        many = len(those) > 1
        if lost == "dead":
            yield f"DEAD\n  {len(those)} job process{'es are' if many else ' is'}"
            yield " considered dead (unreachable via the RAS network)\n"
        else:
            yield f"{title}\n  Missing communicator data from {len(those)} job process{'es' if many else ''}\n"
        for host, pid, gpu in those:
            yield f"  Process {pid} on node {host} managing GPU {gpu}\n"
        yield "\n"
    for number, each in enumerate(ordered):
        yield from _incomplete(f"#{number}-0 ({each.key:016x})", each, release)
        yield from _error(f"#{number}-0 ({each.key:016x})", each)
    yield "Warnings\n========\n\n"
    if timeouts:
        yield f"TIMEOUT\n  Encountered {timeouts} communication timeout{'s' if timeouts > 1 else ''}"
        yield " while gathering communicator data\n\n"
    for number, each in enumerate(ordered):
        yield from _mismatch(f"#{number}-0 ({each.key:016x})", each, release)


def _old(release: str) -> bool:
    return release < "2.26"


def _differ(each: Comm) -> bool:
    states = {one.state for one in each.here} | {"NOCOMM" for one in each.gone if one.lost == "no-member"}
    return len(states) > 1


def _errors_of(each: Comm) -> Iterator[str]:
    if any(one.lost in {"unresponsive", "dead"} for one in each.ranks):
        yield "INCOMPLETE"
    if any(code not in {0, 7} for one in each.here for code in (one.init, one.error)):
        yield "ERROR"
    if _differ(each) or len({one.counts for one in each.here}) > 1:
        yield "MISMATCH"


def _outlier(count: int, total: int) -> bool:
    return count == 1 or count < total * 0.5


def _place(one: Rank) -> str:
    return f"GPU {one.gpu} managed by process {one.pid} on node {one.host}"


def _incomplete(head: str, each: Comm, release: str) -> Iterator[str]:
    lost = [one for one in each.gone if one.lost != "no-member"]
    if not lost:
        return
    many = "s" if len(lost) > 1 else ""
    yield f"{head} INCOMPLETE\n  Missing communicator data from {len(lost)} rank{many}\n"
    if _old(release):
        yield f"  The missing rank{many}: {','.join(str(one.rank) for one in lost)}\n"
    else:
        yield from (f"  Rank {one.rank} -- {_place(one)}\n" for one in lost)
    yield "\n"


def _error(head: str, each: Comm) -> Iterator[str]:
    if "ERROR" not in _errors_of(each):
        return
    yield f"{head} ERROR\n"
    code_of: tuple[tuple[str, Callable[[Rank], int]], ...] = (
        ("Initialization", lambda one: one.init), ("Asynchronous", lambda one: one.error),
    )  # fmt: skip
    for kind, code in code_of:
        wrong = [one for one in each.here if code(one) not in {0, 7}]
        if not wrong:
            continue
        yield f"  {kind} error{'s' if len(wrong) > 1 else ''} on {len(wrong)} rank{'s' if len(wrong) > 1 else ''}\n"
        for number, count in Counter(code(one) for one in wrong).most_common():
            if count > 1:
                yield f"  {count} ranks reported {ERRORS[number]}\n"
            for one in wrong:
                if code(one) == number:
                    said = "" if count > 1 else f" reported {ERRORS[number]}"
                    yield f"  Rank {one.rank}{said} -- {_place(one)}\n"
    yield "\n"


def _mismatch(head: str, each: Comm, release: str) -> Iterator[str]:  # noqa: C901, PLR0912  as the original does
    if "MISMATCH" not in _errors_of(each):
        return
    yield f"{head} MISMATCH\n"
    if _differ(each):
        yield "  Communicator ranks have different status\n"
        members = [one for one in each.ranks if not one.lost or one.lost == "no-member"]
        for state, count in Counter(one.state for one in members).most_common():
            name = "UNKNOWN" if state == "NOCOMM" and _old(release) else state
            those = [one for one in members if one.state == state]
            if count > 1:
                yield f"  {count} ranks have status {name}\n"
            if not _outlier(count, len(each.ranks)):
                continue
            if name == "UNKNOWN":
                numbers = ",".join(str(one.rank) for one in those)
                yield f"  The unknown ranks: {numbers}\n" if count > 1 else f"  Rank {numbers} has status {name}\n"
                continue
            for one in those:
                yield f"  Rank {one.rank}{'' if count > 1 else f' has status {name}'} -- {_place(one)}\n"
    columns: tuple[tuple[str, Callable[[Rank], int]], ...] = (
        (("collective", lambda one: sum(one.counts)),)
        if _old(release)
        else tuple((kind, lambda one, at=at: one.counts[at]) for at, kind in enumerate(KINDS))  # type: ignore[misc]
    )
    for kind, column in columns:
        counts = Counter(column(one) for one in each.here)
        if len(counts) < 2:
            continue
        yield f"  Communicator ranks have different {kind} operation counts\n"
        for value, count in sorted(counts.items(), key=lambda item: (-item[1], -item[0])):
            none = value == 0 and not _old(release)
            said = "not launched any operations" if none else f"launched up to operation {value}"
            if count > 1:
                yield f"  {count} ranks have {said}\n"
            if _outlier(count, len(each.ranks)):
                for one in each.here:
                    if column(one) == value:
                        yield f"  Rank {one.rank}{'' if count > 1 else f' has {said}'} -- {_place(one)}\n"
        if not _old(release):
            yield "\n"
    if _old(release):
        yield "\n"


# JSON


def as_json(comms: Sequence[Comm], release: str = "2.30.7", *, timeouts: int = 0) -> str:
    """Return the JSON of a status. That of 2.28.7 and 2.28.9 lacks a comma in each missing rank."""
    value = {
        "nccl_version": release, "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
        "timestamp": "2026-11-22 19:06:53", "communicators_count": len(comms),
        "communicators": [_comm(one) for one in comms],
        "ras": {"collection_time_sec": 0.004, "timeouts_count": timeouts},
    }  # fmt: skip
    written = json.dumps(value, indent=2) + "\n"
    return written.replace('"nvml_dev": 99,', '"nvml_dev": 1' if release in {"2.28.7", "2.28.9"} else '"nvml_dev": 1,')


def _comm(each: Comm) -> dict[str, object]:
    return {
        "hash": hex(each.key), "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e", "size": len(each.ranks),
        "ranks_count": len(each.here), "missing_ranks_count": len(each.gone),
        "ranks": [
            {
                "rank": one.rank, "host": one.host, "pid": one.pid, "cuda_dev": one.gpu, "nvml_dev": one.gpu,
                "status": {
                    "init_state": one.init, "async_error": one.error, "finalize_called": one.finalize,
                    "destroy_flag": False, "abort_flag": one.abort,
                },
                "collective_counts": dict(zip(KINDS, one.counts, strict=True)),
            }
            for one in each.here
        ],
        "missing_ranks": [
            {
                "rank": one.rank, "host": one.host, "pid": one.pid, "cuda_dev": one.gpu, "nvml_dev": 99,
                "status": {"unresponsive": one.lost != "no-member", "considered_dead": one.lost == "dead"},
            }
            for one in each.gone
        ],
    }  # fmt: skip


def answer(comms: Sequence[Comm], release: str, *, rccl: bool = False, timeouts: int = 0) -> str:
    """Return what our client gets of a release: JSON where it knows that."""
    if release in TEXT_RELEASES:
        return text(comms, release, rccl=rccl, timeouts=timeouts)
    return as_json(comms, release, timeouts=timeouts)


# The server


@dataclass
class Server:
    """Listens on a port of loopback and answers each connection in a thread; `answers` one after the other.

    `broken`: how it misbehaves: "closes" at once, "silent", "stranger" (another greeting), "garbage", "cut" (ends in
    the middle), "flood" (never stops), "slow" (an endless answer, a line at a time), "no-timeout" (an unknown command).
    """

    answers: Sequence[str]
    release: str = "2.30.7"
    broken: str = ""
    pieces: int = 7
    heard: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.asked = 0
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client hung up
            self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        if self.broken == "closes":
            return
        if self.broken == "silent":
            self.over.wait(60)
            return
        as_json = False
        lines = connection.makefile("r", encoding="utf-8", newline="\n")
        for line in lines:
            command = line.rstrip("\r\n").lower()
            self.heard.append(command)
            if command.startswith("client protocol "):
                greeting = "SSH-2.0-OpenSSH_9.2" if self.broken == "stranger" else "SERVER PROTOCOL 2"
                connection.sendall(f"{greeting}\n".encode())
            elif command.startswith("timeout ") and self.broken != "no-timeout":
                connection.sendall(b"OK\n")
            elif command.startswith("set format json") and self.release not in TEXT_RELEASES:
                as_json = True
                connection.sendall(b"OK\n")
            elif command in {"status", "verbose status"}:
                self._status(connection, as_json=as_json)
                return
            else:
                connection.sendall(f"ERROR: Unknown command {line.strip()}\n".encode())

    def _status(self, connection: socket.socket, *, as_json: bool) -> None:
        data = self.answers[min(self.asked, len(self.answers) - 1)].encode()
        assert data.startswith(b"{") == as_json or self.broken
        self.asked += 1
        if self.broken == "garbage":
            data = bytes(range(256)) * 40
        if self.broken == "cut":
            data = data[: len(data) // 2]
        while self.broken == "flood":
            connection.sendall(b"x" * 65536)
        while self.broken == "slow" and not self.over.wait(0.2):
            connection.sendall(b"  Rank 1 -- GPU 1 managed by process 4001 on node 10.0.0.1\n")
        step = len(data) // self.pieces + 1
        for at in range(0, len(data), step):
            connection.sendall(data[at : at + step])
