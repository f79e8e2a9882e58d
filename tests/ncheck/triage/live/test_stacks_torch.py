"""Ranks of the real torch, over gloo: what their stacks say while they hang, and while they train."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.triage.certainty import Grade

from tests.ncheck.triage.agent.test_stacks import with_py_spy
from tests.ncheck.triage.live.running import clues, motions, running

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
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 100))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
said = False
while True:
    loss = model(torch.randn(64, 100)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(loss.detach())
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
OTHERS = {0: (False, True), 2: (False, True)}


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
def test_the_rank_at_fault_is_named(tmp_path: Path, script: str, cause: str, grade: Grade, doing: str) -> None:
    with running(tmp_path, HEAD + script, 3) as started:
        _, found = started.look()
    (clue,) = clues(found)
    assert (clue.cause, clue.grade, clue.ranks) == (cause, grade, (1,)), clue
    assert f"rank 1 (pid {started.processes[1].pid} on here) {doing}" in clue.text
    assert {rank: motions(found)[rank] for rank in OTHERS} == OTHERS


def test_ranks_that_train_are_not_accused(tmp_path: Path) -> None:
    with running(tmp_path, HEAD + TRAINS, 2) as started:
        _, found = started.look()
    assert clues(found) == []
