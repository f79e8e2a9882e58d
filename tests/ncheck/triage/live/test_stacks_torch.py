"""Ranks of the real torch, over gloo: what their stacks say while they hang, and while they train."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from ncheck.triage.certainty import Grade

from tests.ncheck.triage.agent.test_stacks import with_py_spy
from tests.ncheck.triage.live.running import Running, clues, environs, met, motions

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, with_py_spy]

HEAD = """
import os, sys, threading, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
rank = int(os.environ["RANK"])
def here():
    print("here", flush=True)
dist.init_process_group("gloo")
x = torch.ones(1000)
dist.all_reduce(x)
"""
STUCK_LOADER = """
class Images(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, number):
        if rank == 1 and number > 4:
            os.read(os.pipe()[0], 1)
        return torch.ones(3)
if __name__ == "__main__":
    for number, batch in enumerate(DataLoader(Images(), batch_size=1, num_workers=1)):
        if number == 4:
            here()
        dist.all_reduce(batch)
"""
TRAINS = """
import ctypes
libc = ctypes.CDLL(None)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 100))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
said = False
while True:
    loss = model(torch.randn(64, 100)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(loss.detach())
    libc.usleep(20000)  # as for a GPU
    if not said:
        said = True
        here()
"""
IN_BACKWARD = """
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 100))
loss = model(torch.randn(64, 100)).pow(2).mean()
here()
if rank == 1:
    time.sleep(600)
loss.backward()
"""
SAVES_INTO_A_PIPE = """
here()
if rank == 1:
    os.mkfifo(sys.argv[0] + ".pt")
    torch.save(x, sys.argv[0] + ".pt")
dist.barrier()
"""
# It imports torch once, and forks a rank for each line that it reads: a script, its variables, and where it writes.
FORKS = """
import gc, json, os, signal, sys
gc.disable()
import torch, torch._dynamo, torch.distributed, torch.utils.data
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    script, variables, output = json.loads(line)
    if pid := os.fork():
        os.setpgid(pid, pid)
        print(pid, flush=True)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(output, os.O_WRONLY), 1)
    os.environ.update(variables)
    sys.argv = [script]
    exec(compile(open(script).read(), script, "exec"), {"__name__": "__main__"})
    os._exit(0)
"""
OTHERS = {0: (False, True), 2: (False, True)}


@dataclass
class Forked:
    """A rank that was not started from here. It opens the other end of its pipe a moment after it began."""

    pid: int
    stdout: IO[bytes]
    other: IO[bytes]

    def end(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        self.stdout.close()
        self.other.close()


Start = Callable[[str, int], AbstractContextManager[Running]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Return what runs a job of so many ranks, each of which has torch at once."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as parent:  # fmt: skip
        assert parent.stdin
        assert parent.stdout
        asked, said = parent.stdin, parent.stdout

        def fork(script: Path, variables: dict[str, str]) -> Forked:
            read, write = os.pipe()
            print(json.dumps([str(script), variables, f"/proc/{os.getpid()}/fd/{write}"]), file=asked, flush=True)
            return Forked(int(said.readline()), os.fdopen(read, "rb"), os.fdopen(write, "wb"))

        @contextmanager
        def run(text: str, ranks: int) -> Iterator[Running]:
            script = tmp_path_factory.mktemp("job") / "job.py"
            script.write_text(text, encoding="utf-8")
            with ExitStack() as stack:
                started = []
                for variables in environs(ranks):
                    started.append(fork(script, variables))
                    stack.callback(started[-1].end)
                yield met(started)

        yield run
        asked.close()


@pytest.mark.parametrize(
    ("script", "cause", "grade", "doing"),
    [
        ("here()\nif rank == 1:\n    time.sleep(600)\ndist.all_reduce(x)\n", "slow_rank", Grade.LIKELY, "sleeps"),
        ("here()\nif rank == 1:\n    dist.all_gather_object([None] * 3, 1)\ndist.all_reduce(x)\n",
         "collective_mismatch", Grade.LIKELY, "waits in"),
        (SAVES_INTO_A_PIPE, "checkpoint_write", Grade.LIKELY, "writes a checkpoint"),
        (STUCK_LOADER, "data_loader", Grade.LIKELY, "waits for its data loader"),
        (IN_BACKWARD, "slow_rank", Grade.LIKELY, "sleeps"),
    ],
    ids=["sleep", "divergence", "checkpoint", "loader", "backward"],
)  # fmt: skip
def test_the_rank_at_fault_is_named(running: Start, script: str, cause: str, grade: Grade, doing: str) -> None:
    with running(HEAD + script, 3) as started:
        _, found = started.look()
    (clue,) = clues(found)
    assert (clue.cause, clue.grade, clue.ranks) == (cause, grade, (1,)), clue
    assert f"rank 1 (pid {started.processes[1].pid} on here) {doing}" in clue.text
    assert {rank: motions(found)[rank] for rank in OTHERS} == OTHERS


def test_ranks_that_train_are_not_accused(running: Start) -> None:
    with running(HEAD + TRAINS, 2) as started:
        _, found = started.look()
    assert clues(found) == []
