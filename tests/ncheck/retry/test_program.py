"""The words of the program that name nodes: they follow the job to its other nodes, or the job is not restarted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ncheck.cli.retry import Place
from ncheck.fleet.recording import encode, loaded, trusted
from ncheck.model.node import Node
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.retry.program import NamesNodeError, moved, require_movable
from ncheck.settings import Settings

from tests.recorded.clusters import cluster
from tests.recorded.make import evidence

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


@pytest.mark.parametrize(("program", "spare"), [
    ("python train.py --run n10", ""), ("torchrun --nnodes=3 --rdzv_endpoint=n1:29500 t.py", "n9"),
    ("torchrun --nnodes=3 --rdzv_endpoint=n1:29500 t.py", ""), ("torchrun --nnodes=$N t.py", "n9"),
])  # fmt: skip
def test_a_program_that_can_follow_is_let_in(program: str, spare: str) -> None:
    require_movable(program.split(), OLD, spare)
    require_movable(("python", "--hosts", "n1"), ("n1",))  # nobody is left without it


@pytest.mark.parametrize(("launcher", "hosts"), [
    ("mpirun", "-np 24 -H gpu001:8,gpu009:8,gpu003:8"), ("horovodrun", "-np 24 -H gpu001:8,gpu009:8,gpu003:8"),
    ("srun", "-N 3 -w gpu[001,003,009]"),
    ("deepspeed", "gpu001 slots=8\ngpu009 slots=8\ngpu003 slots=8\n--hostfile deepspeed.hosts"),
])  # fmt: skip
def test_each_launcher_is_given_the_hosts_of_the_next_try(launcher: str, hosts: str, tmp_path: Path) -> None:
    """The line of deepspeed, which reads a file, is run with a deepspeed that prints it."""
    before = Place(tuple(map(Node, ("gpu001", "gpu002", "gpu003"))), (Node("gpu009"),), ("python", "train.py"))
    place = before.on(("gpu001", "gpu009", "gpu003"), {})
    names = [node.name for node in place.nodes]
    files = [
        (host.name, encode(evidence(host, at + 1), at, len(names)).encode()) for at, host in enumerate(cluster(*names))
    ]
    answers = trusted("recording", loaded(files))
    command = judge_again(answers, Settings(launcher=launcher, program=place.program), Silent()).plan.command
    assert command
    given = " ".join(command.argv)
    if launcher == "deepspeed":
        (tmp_path / "deepspeed").write_text('#!/bin/sh\ncat deepspeed.hosts\necho "$@"\n')
        (tmp_path / "deepspeed").chmod(0o755)
        environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        given = subprocess.run(
            command.argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
        ).stdout
    assert hosts in given
    assert "gpu002" not in given


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
