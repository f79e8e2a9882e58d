"""The rank program by itself: under a launcher's variables, through a whole session, and when its head goes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import MissingError
from ncheck.agent.sources import Sources
from ncheck.fleet.bootstrap import module_text, rank_program
from ncheck.model.evidence import Answer, Evidence
from ncheck.probe.agent import meeting

Standins = Callable[..., Path]
Ask = Callable[..., Evidence]
Met = Callable[..., dict[str, Any]]
FAR = 120.0
SHM = Path("/dev/shm")  # noqa: S108  where NCCL puts its segments
LARGEST_ARGUMENT = 128 * 1024  # what Linux takes of one

# A head of its own, which waits for a step that does not come to an end.
HEAD = """
import json, sys, time
from ncheck.model.evidence import Answer
from ncheck.model.node import Node
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.session import Known, Request, Session, SessionTerms
asked = json.loads(sys.argv[1])
known = Known(Node("here"))
environment = {"python": sys.executable}
wanted = SessionTerms("0123456789ab", time.monotonic() + 300, connect_timeout=60, environment=environment)
session = Session(LocalEngine().connect(known.node, 60), known, wanted, module_text)
session.greet(time.monotonic())
session.start()
session.collect(Request((Answer("step", 300.0, asked, round=1),)))
"""


def plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "NCCL_", "CUDA_"))}


@pytest.fixture
def met(standins: Standins, alone_in_shm: None) -> Iterator[Met]:  # noqa: ARG001  for as long as it runs
    """Return a function that opens a meeting here, under variables of the job's. It ends with the test."""
    opened: list[Sources] = []

    def at(folder: Path | None = None, **asked: object) -> dict[str, Any]:
        sources = Sources({**plain(), "LD_LIBRARY_PATH": str(folder or standins())})
        sources.start({"environment": {"python": sys.executable}})
        opened.append(sources)
        variables = {"NCCL_SOCKET_IFNAME": "=lo"}
        said: dict[str, Any] = meeting.answer(sources, {"method": "nccl", "variables": variables, **asked}, FAR)
        return said

    yield at
    for child in [child for sources in opened for child in sources.kept["meetings"]]:
        child.end()
        child.process.stdin.close()
        child.process.stdout.close()


def step(name: str, **more: object) -> dict[str, Any]:
    return {
        "method": "nccl", "round": 1, "stage": "inside", "group": ["here"], "ranks": [2], "sizes": [8], "planned": [],
        "launcher": "agents", "net": "", "op": "all-reduce", "expect": None, "node": "here", "timeout": FAR,
        "id": name, "first": 0, "repeats": 5, "variables": {"NCCL_SOCKET_IFNAME": "=lo"}, "gpus": [0, 1], **more,
    }  # fmt: skip


def test_it_is_one_argument_that_any_system_takes_and_a_shell_reads_in_single_quotes() -> None:
    assert len(rank_program()) < LARGEST_ARGUMENT / 2
    assert "'" not in rank_program()
    assert "\n" not in rank_program()
    assert module_text("rank-program") == rank_program()


@pytest.mark.slow
@pytest.mark.parametrize("names", [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
])  # fmt: skip
def test_a_launchers_variables_tell_the_rank_and_lines_go_to_its_output(
    met: Met, standins: Standins, tmp_path: Path, names: tuple[str, str, str]
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    asked = {"id": met()["ids"][0], "sizes": [4096], "seconds": FAR, "counters": True, "planned": ["lo"]}
    ranks = []
    for number in range(2):
        own = {"NCCL_SOCKET_IFNAME": "=lo", "LD_LIBRARY_PATH": str(standins())}
        environ = {**plain(), **own, **dict(zip(names, (str(number), str(number), "2"), strict=True))}
        argv = [sys.executable, "-B", "-S", "-c", rank_program(), json.dumps(asked)]
        ranks.append(subprocess.Popen(argv, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True))
    said = [told(process.communicate(timeout=FAR)[0]) for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0]
    for number in range(2):
        rows = [line for line in said[number] if line["is"] == "row"]
        assert [(row["rank"], row["size"], row["in_place"], row["wrong"]) for row in rows] == [
            (number, 4096, False, 0), (number, 4096, True, 0),
        ]  # fmt: skip
        assert said[number][-1] == {"is": "done", "rank": number}
    moved = [line["moved"] for line in said[0] + said[1] if line["is"] == "carried"]
    assert moved[0]["lo"]["sent"] > 4096
    assert len(moved) == 1, "one rank of a node tells what its interfaces moved"


def told(output: str) -> list[dict[str, Any]]:
    return [json.loads(line[len("ncheck:") :]) for line in output.splitlines() if line.startswith("ncheck:{")]


def test_without_any_rank_it_says_which_variables_it_looked_for() -> None:
    argv = [sys.executable, "-B", "-S", "-c", rank_program(), '{"seconds": 60, "sizes": [8]}']
    environ = {name: value for name, value in plain().items() if "RANK" not in name and "PROCID" not in name}
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=FAR)
    assert ended.returncode == 1
    assert told(ended.stdout)[-1]["words"].startswith("no rank: neither the parent nor a launcher's variable (OMPI_")


def test_a_rank_of_another_world_is_refused() -> None:
    argv = [sys.executable, "-B", "-S", "-c", rank_program(), '{"seconds": 60, "sizes": [8], "world": 2, "local": 0}']
    environ = {**plain(), "OMPI_COMM_WORLD_RANK": "2"}
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=FAR)
    assert told(ended.stdout)[-1]["words"] == "rank 2 of 2: the launcher started other ranks than requested"


def test_a_meeting_gives_as_many_identifiers_as_are_wanted(met: Met) -> None:
    said = met(count=3)
    assert len(set(said["ids"])) == 3
    assert {len(name) for name in said["ids"]} == {256}
    assert said["version"] == "2.27.3"
    assert said["path"].endswith("/libnccl.so.2")


def test_a_meeting_that_nccl_refuses_says_why(met: Met) -> None:
    with pytest.raises(MissingError, match=r"^ncclGetUniqueId: Bootstrap : no socket interface found \(result 5\)$"):
        met(variables={"NCCL_SOCKET_IFNAME": "=nowhere9"})


@pytest.mark.parametrize("release", ["2.21.5", "2.27.5"])
def test_a_real_nccl_opens_a_meeting_that_listens(met: Met, nccl_folder: Callable[[str], Path], release: str) -> None:
    import socket

    said = met(nccl_folder(release), count=2, variables={"NCCL_SOCKET_IFNAME": "=lo"})
    assert said["version"] == release
    for name in said["ids"]:
        raw = bytes.fromhex(name)
        address = (socket.inet_ntoa(raw[12:16]), int.from_bytes(raw[10:12], "big"))
        socket.create_connection(address, timeout=FAR).close()


@pytest.mark.slow
def test_a_turn_goes_through_a_session_in_the_jobs_environment(met: Met, standins: Standins, ask: Ask) -> None:
    setup = f"export LD_LIBRARY_PATH={standins()}"
    source = Answer("step", FAR, step(met()["ids"][0]), round=1)
    reply = ask(source, environment={"setup": setup, "python": sys.executable}).reply(source)
    assert isinstance(reply.value, dict), reply.reason
    assert (reply.value["failure"], reply.value["version"]) == (None, "2.27.3")
    assert [(row["size"], row["wrong"]) for row in reply.value["rows"]] == [(8, 0), (8, 0)]  # type: ignore[union-attr,index,call-overload]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["init", "collective"])
def test_when_the_head_is_killed_no_rank_and_no_segment_is_left(met: Met, standins: Standins, where: str) -> None:
    mark = os.urandom(8).hex()
    job = {"LD_LIBRARY_PATH": str(standins()), "STANDIN_MARK": mark, "STANDIN_NCCL": f"shm=leave,at=4,hang={where}"}
    argv = [sys.executable, "-c", HEAD, json.dumps(step(met()["ids"][0], timeout=300.0))]
    head = subprocess.Popen(argv, env={**plain(), **job})
    try:
        wait_for(lambda: len(marked(mark)) >= 2)
        if where == "collective":
            wait_for(lambda: len(list(SHM.glob(f"nccl-{mark}*"))) >= 2)
    finally:
        head.send_signal(signal.SIGKILL)
        head.wait()
    wait_for(lambda: not marked(mark))
    wait_for(lambda: not list(SHM.glob(f"nccl-{mark}*")))


def wait_for(what: Callable[[], object]) -> None:
    """Wait for what happens by itself; the bound is for what hangs."""
    ends = time.monotonic() + 60.0
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.02)


def marked(mark: str) -> list[int]:
    """Return the rank processes that carry a test's mark."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            environ = (folder / "environ").read_bytes() if folder.name.isdecimal() else b""
        except OSError:  # it has ended meanwhile, or is another user's
            continue
        if f"STANDIN_MARK={mark}".encode() in environ and b"NCHECK_RANK=" in environ:
            found.append(int(folder.name))
    return found
