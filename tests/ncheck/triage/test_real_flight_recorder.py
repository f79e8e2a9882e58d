"""Dumps of the real torch: three ranks of gloo on this machine that really stand still, rank 0 at fault."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from ncheck.model.fact import Unread
from ncheck.triage.certainty import Grade
from ncheck.triage.flight_recorder import analyse
from ncheck.triage.parse.flight_recorder import Dump, is_dump, read

from tests.skips import cannot

pytestmark = pytest.mark.slow
SIZE = 3

# One process imports torch, and forks the ranks of every job: they dump when all have come as far as they will.
PROGRAM = """
import gc, multiprocessing, os, pickle, sys, time
gc.disable()
import torch
import torch._dynamo  # the first dump would import it, in each rank
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def work(rank, folder, fault, all_ranks):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=3)
    pair = dist.new_group([0, 2])
    dist.all_reduce(torch.ones(4))
    if rank != 1:
        dist.all_reduce(torch.ones(4), group=pair)
    dist.barrier()
    # A call is marked as ended by another thread, a moment after it returned.
    while not all(call["retired"] for call in pickle.loads(c10d._dump_fr_trace())["entries"]):
        time.sleep(0.01)
    step(rank, fault)
    all_ranks.wait(60)
    for name, dump in (("", c10d._dump_fr_trace), (".json", c10d._dump_fr_trace_json)):
        with open(f"{folder}/comm_lib_trace_rank_{rank}{name}", "wb") as file:
            held = dump()
            file.write(held if isinstance(held, bytes) else held.encode())
    all_ranks.wait(60)
    os._exit(0)


def step(rank, fault):
    if fault == "other" and rank == 0:
        dist.reduce(torch.ones(4), 1, async_op=True)
    elif rank:
        dist.all_reduce(torch.ones(4), async_op=True)


fork = multiprocessing.get_context("fork")
for fault in sys.argv[1:]:
    os.mkdir(fault)
    all_ranks = fork.Barrier(3)
    ranks = [fork.Process(target=work, args=(rank, os.path.abspath(fault), fault, all_ranks)) for rank in range(3)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
        assert one.exitcode == 0
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the dumps of two jobs; skip where no torch is."""
    if not find_spec("torch"):
        cannot("torch is not installed beside the tests: make test TORCH=1")
    folder = tmp_path_factory.mktemp("jobs")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TORCH_FR_BUFFER_SIZE": "100", "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, "-W", "ignore", "-c", PROGRAM, "missing", "other"]
    subprocess.run(argv, env=environment, cwd=folder, check=True)
    return folder


def dumped(folder: Path) -> tuple[dict[int, Dump], dict[int, Dump]]:
    """Return the dumps of all ranks: the pickles, and the same as JSON."""
    made: list[dict[int, Dump]] = [{}, {}]
    for rank in range(SIZE):
        for held, name in zip(made, ("", ".json"), strict=True):
            data = (folder / f"comm_lib_trace_rank_{rank}{name}").read_bytes()
            assert is_dump(data[:4096])
            dump = read(data)
            assert not isinstance(dump, Unread)
            held[rank] = dump
    return made[0], made[1]


def test_the_first_rank_that_never_came_is_named_with_the_lines_of_the_program(jobs: Path) -> None:
    for dumps in dumped(jobs / "missing"):
        (clue,) = analyse(dumps)
        assert (clue.cause, clue.grade, clue.ranks) == ("slow_rank_timeout", Grade.LIKELY, (0,))
        assert clue.text.startswith("rank 0 never called it, and ranks 1 and 2 wait in all_reduce of 4 Float (number 3")
        (clue,) = analyse({rank: dumps[rank] for rank in (1, 2)}, SIZE)
        assert (clue.cause, clue.grade, clue.ranks) == ("rank_crashed", Grade.LIKELY, (0,))
    dump = read((jobs / "missing" / "comm_lib_trace_rank_2").read_bytes())
    assert isinstance(dump, Dump)
    assert [group.calls for group in dump.groups] == [
        ("all_reduce of 4 Float", "barrier", "all_reduce of 4 Float"), ("all_reduce of 4 Float",),
    ]  # fmt: skip


def test_the_first_rank_that_calls_another_collective_is_named(jobs: Path) -> None:
    for dumps in dumped(jobs / "other"):
        (clue,) = analyse(dumps)
        assert (clue.cause, clue.ranks) == ("collective_mismatch", (0,))
        assert "rank 0 called reduce of 4 Float" in clue.text
