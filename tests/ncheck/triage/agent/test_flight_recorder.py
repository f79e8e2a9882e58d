"""The agent finds the dumps of real processes where their variables say, and asks only a torch that listens."""

from __future__ import annotations

import base64
import errno
import os
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent import proc
from ncheck.agent.sources import Sources
from ncheck.decode import decoded
from ncheck.triage.agent import flight_recorder
from ncheck.triage.facts.flight_recorder import FlightRecorderAnswer

Said = dict[str, Any]
Start = Callable[..., "Rank"]
PREFIX, PIPE = "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
DUMP = b"{a dump}"

# A rank; with a pipe it does what torch does: makes it anew, opens it without blocking, and dumps when a byte comes.
RANK = """
import os, select, sys, time
pipe, dump = sys.argv[1:3]
if pipe:
    if os.path.exists(pipe):
        os.unlink(pipe)
    os.mkfifo(pipe, 0o666)
    fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("ready", flush=True)
while True:
    ready = select.select([sys.stdin, fd] if pipe else [sys.stdin], [], [])[0]
    if sys.stdin in ready:
        break
    asked = os.read(fd, 128)
    if asked == b"1\\n":
        with open(dump, "wb") as file:
            file.write(b"{a new dump}")
    if not asked:
        time.sleep(0.02)  # a pipe that nobody writes to can be read without an end
"""


class Rank:
    """A process that is rank 3 of a job."""

    def __init__(self, variables: dict[str, str], pipe: str, dump: str, within: tuple[str, ...]) -> None:
        self.process = subprocess.Popen(
            [*within, sys.executable, "-S", "-c", RANK, pipe, dump],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == b"ready\n"

    @property
    def asked(self) -> Said:
        now = proc.stat(self.process.pid)
        assert now
        return {"rank": 3, "pid": self.process.pid, "started": now.started}

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def start() -> Iterator[Start]:
    ranks: list[Rank] = []

    def start(variables: dict[str, str], pipe: str = "", dump: str = "", within: tuple[str, ...] = ()) -> Rank:
        ranks.append(Rank({"HOME": "/nowhere", **variables}, pipe, dump, within))
        return ranks[-1]

    yield start
    for rank in ranks:
        rank.end()


def said(rank: Rank | Said, **words: Any) -> Said:
    asked = rank.asked if isinstance(rank, Rank) else rank
    value = flight_recorder.answer(Sources({}), {"ranks": [asked], **words}, 10.0)
    assert decoded(value, FlightRecorderAnswer)
    return value["ranks"][0]  # type: ignore[no-any-return]


def content(said: Said) -> bytes:
    return zlib.decompress(base64.b64decode(said["dump"]["data"]))


def test_the_dump_is_where_the_variable_says_with_its_size_and_time(tmp_path: Path, start: Start) -> None:
    dump = tmp_path / "trace_3"
    dump.write_bytes(DUMP)
    os.utime(dump, (1_700_000_000, 1_700_000_000))
    found = said(start({PREFIX: f"{tmp_path}/trace_"}))
    assert found["tried"] == [str(dump)]
    assert {**found["dump"], "data": content(found)} == {
        "path": str(dump), "size": 8, "mtime": 1_700_000_000.0, "owner": os.getuid(), "data": DUMP, "read": 8,
        "error": "",
    }  # fmt: skip
    assert (found["error"], found["asked"]) == ("", "")
    assert found["began"] > 1_700_000_000


@pytest.mark.parametrize("name", ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "NCCL_DEBUG_INFO_TEMP_FILE"])
def test_older_names_of_the_variable_are_known(name: str, tmp_path: Path, start: Start) -> None:
    (tmp_path / "trace_3").write_bytes(DUMP)
    assert content(said(start({name: f"{tmp_path}/trace_"}))) == DUMP


def test_without_a_variable_it_is_in_the_cache_folder_or_in_tmp(tmp_path: Path, start: Start) -> None:
    folder = tmp_path / "cache" / "torch"
    folder.mkdir(parents=True)
    (folder / "comm_lib_trace_rank_3").write_bytes(DUMP)
    found = said(start({"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": "/home/ada"}))
    assert content(found) == DUMP
    assert found["tried"] == [
        f"{folder}/comm_lib_trace_rank_3", "/home/ada/.cache/torch/comm_lib_trace_rank_3", "/tmp/nccl_trace_rank_3",  # noqa: S108
    ]  # fmt: skip


def test_a_relative_path_is_that_of_the_rank(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace_3").write_bytes(DUMP)
    rank = start({PREFIX: "trace_"})
    monkeypatch.chdir("/")
    assert content(said(rank)) == DUMP


def test_no_dump_says_where_it_was_looked_for(tmp_path: Path, start: Start) -> None:
    found = said(start({PREFIX: f"{tmp_path}/trace_"}))
    assert (found["dump"], found["error"], found["tried"]) == (None, "", [f"{tmp_path}/trace_3"])


def test_a_process_that_is_gone_or_another_by_now_is_gone(start: Start) -> None:
    asked = start({}).asked
    assert said({**asked, "started": asked["started"] + 1})["error"] == "gone"
    assert said({**asked, "pid": 2**22 + 1})["error"] == "gone"


def test_a_rank_without_a_number_has_no_dump(start: Start) -> None:
    assert said({**start({}).asked, "rank": None})["error"] == "the number of the rank is not known"


def test_a_link_a_folder_and_a_pipe_are_not_read(tmp_path: Path, start: Start) -> None:
    dump = tmp_path / "trace_3"
    rank = start({PREFIX: f"{tmp_path}/trace_"})
    dump.symlink_to("/etc/passwd")
    assert (said(rank)["dump"]["error"], said(rank)["dump"]["data"]) == ("no regular file", None)
    dump.unlink()
    dump.mkdir()
    assert said(rank)["dump"]["error"] == "no regular file"
    dump.rmdir()
    os.mkfifo(dump)
    assert said(rank)["dump"]["error"] == "no regular file"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's file")
def test_a_file_of_another_user_is_never_read_not_even_for_root(tmp_path: Path, start: Start) -> None:
    dump = tmp_path / "trace_3"
    dump.write_bytes(DUMP)
    os.chown(dump, 4711, 4711)
    found = said(start({PREFIX: f"{tmp_path}/trace_"}))["dump"]
    assert (found["error"], found["owner"], found["data"]) == ("it belongs to another user", 4711, None)


def test_what_does_not_begin_as_a_dump_is_not_sent(tmp_path: Path, start: Start) -> None:
    dump = tmp_path / "trace_3"
    rank = start({PREFIX: f"{tmp_path}/trace_"})
    dump.write_text("root:$6$secret")
    found = said(rank)["dump"]
    assert (found["error"], found["data"]) == ("it is no dump: it begins neither as a pickle nor as JSON", None)
    for data in (b"\x80\x02}.", b" \n{}", b"", b"\0\0"):
        dump.write_bytes(data)
        assert content(said(rank)) == data


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_in_a_container_no_link_leads_to_our_own_files(tmp_path: Path, start: Start) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "trace_3").write_bytes(DUMP)
    (tmp_path / "link").symlink_to(tmp_path / "ours")

    def found(folder: str, *within: str) -> Said:
        return said(start({PREFIX: f"{tmp_path}/{folder}/trace_"}, within=within))

    container = (shutil.which("unshare") or "", "--mount")
    assert content(found("link")) == DUMP
    assert content(found("ours", *container)) == DUMP
    for folder, why in (
        ("link", "a symbolic link is not followed in another mount namespace: link"),
        ("ours/../ours", ".. is not followed in another mount namespace"),
    ):
        refused = found(folder, *container)
        assert (refused["dump"], refused["error"]) == (None, why)
    assert found("nowhere", *container)["error"] == ""


@pytest.mark.slow
def test_a_rank_whose_file_system_hangs_is_said_and_costs_the_others_nothing(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace_3").write_bytes(DUMP)
    stuck, other = start({PREFIX: "/hangs/trace_"}), start({PREFIX: f"{tmp_path}/trace_"})
    never, really = threading.Event(), os.open

    def opened(path: Any, *arguments: Any, **words: Any) -> int:
        if path != "hangs":
            return really(path, *arguments, **words)
        never.wait()
        raise OSError(errno.EIO, "ended with the test")  # a made-up number would be somebody's open file, and be closed

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(flight_recorder, "_PATIENCE", 2.0, raising=False)
    value = flight_recorder.answer(Sources({}), {"ranks": [stuck.asked, other.asked]}, 10.0)
    assert decoded(value, FlightRecorderAnswer)
    one, two = value["ranks"]
    assert (one["error"], one["tried"], one["dump"]) == ("its file system does not answer", ["/hangs/trace_3"], None)
    assert content(two) == DUMP
    monkeypatch.undo()
    never.set()


def test_a_dump_that_is_too_large_is_cut_and_its_size_is_said(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace_3").write_bytes(b"{" * 5000)
    rank = start({PREFIX: f"{tmp_path}/trace_"})
    monkeypatch.setattr(flight_recorder, "_MOST", 1000)
    found = said(rank)
    assert (found["dump"]["size"], found["dump"]["read"], len(content(found))) == (5000, 1000, 1000)
    monkeypatch.setattr(flight_recorder, "_MOST_PACKED", 10)
    assert said(rank)["dump"]["error"] == "left out: the dumps of this node are too large"


# Asking


def listening(start: Start, folder: Path) -> Rank:
    variables = {PREFIX: f"{folder}/trace_", PIPE: f"{folder}/ask_"}
    return start(variables, f"{folder}/ask_3.pipe", f"{folder}/trace_3")


def test_torch_is_asked_through_its_pipe_and_the_new_dump_is_read(tmp_path: Path, start: Start) -> None:
    (tmp_path / "trace_3").write_bytes(b"an old one.")
    rank = listening(start, tmp_path)
    found = said(rank, dump=True)
    assert (found["asked"], content(found)) == ("written", b"{a new dump}")


def test_without_dump_nothing_is_written(tmp_path: Path, start: Start) -> None:
    rank = listening(start, tmp_path)
    found = said(rank, dump=False)
    assert (found["asked"], found["dump"]) == ("", None)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ask_3.pipe"]


def test_what_is_no_pipe_of_the_rank_is_not_written_to(tmp_path: Path, start: Start) -> None:
    variables = {PREFIX: f"{tmp_path}/trace_", PIPE: f"{tmp_path}/ask_"}
    pipe = tmp_path / "ask_3.pipe"
    assert said(start({}), dump=True)["asked"] == f"torch does not listen: {PIPE} is not set"
    assert said(start(variables), dump=True)["asked"] == "No such file or directory"
    pipe.write_text("a file")
    assert said(start(variables), dump=True)["asked"] == "torch does not listen: its pipe is not there"
    assert pipe.read_text() == "a file"
    pipe.unlink()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # somebody else's: the rank does not have it open
    found = said(start(variables), dump=True)
    assert found["asked"] == "torch does not listen: the rank does not have its pipe open"
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_no_other_file_that_the_rank_has_open_is_touched(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = listening(start, tmp_path)
    looked, really = [], os.stat

    def recorded(path: Any, **words: Any) -> os.stat_result:
        if str(path).startswith(f"/proc/{rank.process.pid}/fd/"):
            looked.append(str(Path(path).readlink()))
        return really(path, **words)

    monkeypatch.setattr(os, "stat", recorded)
    assert said(rank, dump=True)["asked"] == "written"
    assert looked == [f"{tmp_path}/ask_3.pipe"]


def test_a_torch_that_writes_nothing_is_said_to_have_been_asked(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = listening(start, tmp_path)
    monkeypatch.setattr(flight_recorder, "_LINE", b"0\n")  # the stand-in takes it for nothing
    value = flight_recorder.answer(Sources({}), {"ranks": [rank.asked], "dump": True}, 2.5)
    assert (value["ranks"][0]["asked"], value["ranks"][0]["dump"]) == ("asked", None)
