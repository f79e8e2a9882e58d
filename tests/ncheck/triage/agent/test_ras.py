"""Asking NCCL's RAS: of servers that answer as each release does, and of those that do not."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.triage.agent import ras
from ncheck.triage.parse.nccl_ras import parse_ras

from tests.standins.nccl_ras import RELEASES, Server, answer, change, comm

WORLD = comm(0xFA93, 4, ("127.0.0.1",))
LATER = change(WORLD, range(4), counts=(0, 0, 0, 0, 6651))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ras, "APART", 0.2)
    monkeypatch.setattr(ras, "_PATIENCE", 0.3)


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[dict[str, object]]:
    """Have this process be a rank: it has mapped a file that is called as NCCL is."""
    path = tmp_path / "libnccl.so.2"
    path.write_bytes(b"no ELF" * 1000)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        yield {"pid": os.getpid(), "started": started(os.getpid())}


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def ask(rank: Mapping[str, object], at: str | None, timeout: float = 4.0, **words: object) -> Any:
    return ras.answer(None, {"ranks": [rank], "at": at, "spare": None, **words}, timeout)


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_is_asked_twice_in_the_form_that_it_knows(rank: dict[str, object], release: str) -> None:
    one, two = answer([WORLD], release), answer([LATER], release)
    with Server((one, two), release) as server:
        said = ask(rank, server.at)
    assert [(each["text"], each["whole"], each["error"]) for each in said["asked"]] == [
        (one, True, ""), (two, True, ""),
    ]  # fmt: skip
    first, second = (each["at"] for each in said["asked"])
    assert 0 <= first < second >= 0.2
    assert server.heard == ["client protocol 2", "timeout 4", "set format json", "verbose status"] * 2
    assert "127.0.0.1" in said["addresses"]
    (loaded,) = said["ranks"]
    assert loaded == {"pid": os.getpid(), "path": loaded["path"], "version": "", "error": ""}
    assert loaded["path"].endswith("/libnccl.so.2")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("closes", "not NCCL's RAS|Connection reset by peer"),
        ("stranger", "not NCCL's RAS"),
        ("silent", "4 connections to .* were accepted and not answered"),
    ],
)
def test_who_does_not_greet_as_ras_is_asked_nothing(rank: dict[str, object], broken: str, why: str) -> None:
    with Server(("",), broken=broken) as server:
        said = ask(rank, server.at)
    assert [each["text"] for each in said["asked"]] == ["", ""]
    for each in said["asked"]:
        assert re.search(why, each["error"])
    assert set(server.heard) <= {"client protocol 2"}


def test_nobody_listens(rank: dict[str, object]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    assert [each["error"] for each in ask(rank, at)["asked"]] == ["Connection refused"] * 2


def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came(rank: dict[str, object]) -> None:
    whole = answer([WORLD], "2.30.7")
    with Server((whole,), broken="cut") as server:
        said = ask(rank, server.at)
    assert [each["text"] for each in said["asked"]] == [whole[: len(whole) // 2]] * 2
    assert not parse_ras(said["asked"][0]["text"]).whole


def test_garbage_is_carried_as_text(rank: dict[str, object]) -> None:
    with Server(("",), broken="garbage") as server:
        said = ask(rank, server.at)
    assert all("\\xff" in each["text"] for each in said["asked"])


def test_a_flood_is_cut(rank: dict[str, object]) -> None:
    with Server(("",), broken="flood") as server:
        said = ask(rank, server.at, 8.0)
    assert [(len(each["text"]), each["whole"]) for each in said["asked"]] == [(2 * 1024 * 1024, False)] * 2


@pytest.mark.slow
def test_an_endless_answer_leaves_the_second_question_its_time(rank: dict[str, object]) -> None:
    began = time.monotonic()
    with Server(("",), broken="slow") as server:
        said = ask(rank, server.at, 4.0)
    assert time.monotonic() - began < 4.0
    assert [each["whole"] for each in said["asked"]] == [False, False]
    assert all("Rank 1" in each["text"] for each in said["asked"])


def test_a_command_that_ras_does_not_know_is_no_obstacle(rank: dict[str, object]) -> None:
    text = answer([WORLD], "2.24.3")
    with Server((text,), "2.24.3", broken="no-timeout") as server:
        said = ask(rank, server.at)
    assert [each["text"] for each in said["asked"]] == [text, text]


def test_a_rank_without_nccl_is_not_asked() -> None:
    with Server(("",)) as server:
        said = ask({"pid": os.getpid(), "started": started(os.getpid())}, server.at)
    assert [each["error"] for each in said["asked"]] == ["no rank here has loaded NCCL"]
    assert server.heard == []


def test_a_number_that_another_process_has_by_now_is_gone(rank: dict[str, object]) -> None:
    said = ask({**rank, "started": 1}, "127.0.0.1:1")
    assert said["ranks"] == [{"pid": os.getpid(), "path": "", "version": "", "error": "gone"}]
    assert ask({"pid": 2**22 + 1, "started": 1}, None)["ranks"][0]["error"] == "gone"


def test_a_rank_whose_memory_map_does_not_come_costs_the_others_nothing(
    rank: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    library: Any = ras._library
    monkeypatch.setattr(ras, "_library", lambda one: library(one) if one["pid"] == rank["pid"] else never.wait())
    monkeypatch.setattr(ras, "_READING", 1.0, raising=False)
    said = ras.answer(None, {"ranks": [{"pid": 1, "started": 1}, rank], "at": None}, 4.0)
    stuck, loaded = said["ranks"]
    assert stuck == {"pid": 1, "path": "", "version": "", "error": "no answer within 1 s"}
    assert loaded["path"].endswith("/libnccl.so.2")
    never.set()


def test_nothing_is_asked_where_nothing_shall_be(rank: dict[str, object]) -> None:
    assert ask(rank, None)["asked"] == []


@pytest.fixture
def real(tmp_path: Path) -> Callable[[str], Path]:
    """Return a library that says this release of itself."""

    def made(release: str) -> Path:
        path = tmp_path / release / "libnccl.so.2"
        path.parent.mkdir()
        source = f'const char version[] = "NCCL version {release}+cuda12.9";\n'
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)], input=source.encode(), check=True
        )  # fmt: skip
        return path

    return made


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_release_that_a_question_can_crash_is_spared(real: Callable[[str], Path]) -> None:
    spare = {"from": "2.26.2", "to": "2.29.2"}
    said = {}
    for release in ("2.25.1", "2.26.2", "2.28.9", "2.29.2"):
        with real(release).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
            own = {"pid": os.getpid(), "started": started(os.getpid())}
            text = answer([WORLD], release)
            with Server((text,), release) as server:
                answered = ask(own, server.at, spare=spare)
                assert answered["ranks"][0]["version"] == f"{release}+cuda12.9"
                said[release] = answered["asked"][0]["error"]
                assert bool(server.heard) is not bool(said[release])
                assert not ask(own, server.at, spare=None)["asked"][0]["error"]
    assert said == {
        "2.25.1": "",
        "2.26.2": "NCCL 2.26.2 is not asked: a question can end it",
        "2.28.9": "NCCL 2.28.9 is not asked: a question can end it",
        "2.29.2": "",
    }


IN_NAMESPACE = """
import mmap, sys
sys.path.insert(0, sys.argv[1])
from tests.standins.nccl_ras import Server, answer, comm
file = open(sys.argv[2], "rb")
kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
with Server((answer([comm(1, 2, ("127.0.0.1",))], "2.30.7"),)) as server:
    print(server.at, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root")
def test_a_rank_in_a_network_of_its_own_is_asked_there_by_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, own = tmp_path / "libnccl.so.2", str(Path("/proc/self/ns/net").readlink())
    library.write_bytes(b"no ELF" * 1000)
    argv = [sys.executable, "-c", IN_NAMESPACE, str(Path(__file__).parents[3]), str(library)]
    with subprocess.Popen(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *argv],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as inside:  # fmt: skip
        assert inside.stdout is not None
        at = inside.stdout.readline().strip()
        there = {"pid": inside.pid, "started": started(inside.pid)}
        asked = ask(there, at, 8.0)["asked"]
        assert [each["error"] for each in asked] == ["", ""]
        assert str(Path("/proc/self/ns/net").readlink()) == own
        monkeypatch.setattr(os, "geteuid", lambda: 1001)
        assert ask(there, at)["asked"][0]["error"] == "the ranks are in another network namespace: needs root"
        inside.communicate("")
