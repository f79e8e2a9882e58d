"""The words of the program that name nodes: they follow the job to its other nodes, or the job is not restarted."""

from __future__ import annotations

import pytest
from ncheck.retry.program import NamesNodeError, moved

OLD, SPARED, FEWER = ("n1", "n2", "n3"), ("n9", "n2", "n3"), ("n2", "n3")
KNOWN_AS = {"n1": ("n1", "n1.cluster", "10.0.0.1")}


@pytest.mark.parametrize(("program", "after", "words"), [
    ("python train.py --lr 0.1 --run n10", SPARED, "python train.py --lr 0.1 --run n10"),
    ("torchrun --nnodes=3 --rdzv_endpoint=n1:29500 train.py", SPARED,
     "torchrun --nnodes=3 --rdzv_endpoint=n9:29500 train.py"),
    ("torchrun --nnodes 3 --master-addr 10.0.0.1 train.py", FEWER,
     "torchrun --nnodes 2 --master-addr n2 train.py"),
    ("python -m torch.distributed.launch --nnodes=2:3 --master_addr=n1.cluster t.py", FEWER,
     "python -m torch.distributed.launch --nnodes=2:3 --master_addr=n2 t.py"),
    ("env MASTER_ADDR=n1 accelerate launch --num_machines 3 t.py", FEWER,
     "env MASTER_ADDR=n2 accelerate launch --num_machines 2 t.py"),
    ("torchrun --rdzv_endpoint=n2:29500 t.py", SPARED, "torchrun --rdzv_endpoint=n2:29500 t.py"),
])  # fmt: skip
def test_where_the_ranks_meet_and_how_many_there_are_follows_the_nodes(
    program: str, after: tuple[str, ...], words: str
) -> None:
    assert moved(program.split(), OLD, after, KNOWN_AS) == tuple(words.split())


@pytest.mark.parametrize(("program", "reason"), [
    ("python train.py --hosts n1,n2,n3", "the program names n1 itself, in 'n1,n2,n3'"),
    ("python train.py tcp://10.0.0.1:9", "the program names 10.0.0.1 itself, in 'tcp://10.0.0.1:9'"),
    ("torchrun --nnodes=3:4 t.py", "the program asks for '3:4' nodes, and 2 are left"),
    ("torchrun --nnodes=$N t.py", "the program asks for '$N' nodes, and 2 are left"),
])  # fmt: skip
def test_a_program_that_cannot_follow_says_where(program: str, reason: str) -> None:
    with pytest.raises(NamesNodeError) as refused:
        moved(program.split(), OLD, FEWER, KNOWN_AS)
    assert str(refused.value) == reason
