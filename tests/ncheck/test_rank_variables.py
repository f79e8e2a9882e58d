"""Which rank a process is, by the variables of each launcher.

environments/*.txt are of real jobs: one block per rank, less what has nothing to do with the launcher. Those of
horovodrun, paddle and oneflow follow the source of the launcher.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest
from ncheck.launchers import RANK_VARIABLES, RankVariables
from ncheck.rank_variables import (
    LauncherVariablesError,
    Rank,
    counts_of_slurm,
    hosts_of_slurm,
    read_rank,
)

Environment = Mapping[str, str]

PATHS = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
FOLDER = Path(__file__).with_name("environments")
DOCS = Path(__file__).parents[2] / "docs" / "integrations.md"


def environments(name: str) -> tuple[Environment, ...]:
    """Return what each rank of a recorded job found in its environment."""
    _, *blocks = (FOLDER / f"{name}.txt").read_text().split("\n\n")
    return tuple(dict(line.split("=", 1) for line in block.splitlines()) for block in blocks)


def read(environ: Environment) -> Rank:
    return replace(read_rank(environ), named={})


OPEN_MPI = "OMPI_MCA_orte_precondition_transports={} PMIX_NAMESPACE={}"
ENDPOINTS = "10.20.0.11:41231,10.20.0.11:41977,10.20.0.12:38851,10.20.0.12:39013"
NODES = ("node01", "node02", "node03")

# What the last rank of each recorded job is.
LAST = {
    "accelerate": Rank(3, 4, 1, 2, 1, 2, master="10.20.0.11", master_port=29612, launcher="accelerate"),
    "deepspeed": Rank(3, 4, 1, 2, 1, 2, master="10.20.0.11", master_port=29500, launcher="deepspeed"),
    "horovodrun": Rank(
        2, 3, 0, 1, node_name="node02", master="10.20.0.11", launcher="horovodrun",
        job="HOROVOD_GLOO_RENDEZVOUS_ADDR=10.20.0.11 HOROVOD_GLOO_RENDEZVOUS_PORT=36363",
    ),
    "intel-mpi": Rank(
        3, 4, 1, 2, 1, node_name="node02", launcher="Intel MPI",
        job="I_MPI_HYDRA_UUID=0b380000-a4ce-343c-e060-06009e5dea26",
    ),
    "mpich": Rank(3, 4, 1, 2, node_name="node02", launcher="MPICH"),
    "mpich-in-sbatch": Rank(
        3, 4, 1, 2, node_name="node02", master="node01", launcher="MPICH", job="SLURM_JOB_ID=12"
    ),
    "oneflow": Rank(3, 4, 1, master="10.20.0.11", master_port=9988, launcher="variables"),
    "open-mpi-4": Rank(
        3, 4, 1, 2, nodes=2, node_name="node02", master="node01", addresses=("10.20.0.11",), launcher="Open MPI",
        job=OPEN_MPI.format("6edcfd806acbc47d-77370ded6b4ec686", "699400193"), secret=True,
    ),
    "open-mpi-4-by-node": Rank(
        3, 4, 1, 2, nodes=2, node_name="node02", master="node01", addresses=("10.20.0.11",), launcher="Open MPI",
        job=OPEN_MPI.format("e884d4e22b2aa8fc-d949d5f45a4b3d73", "697630721"), secret=True,
    ),
    "open-mpi-4-in-salloc": Rank(
        2, 3, 0, 1, nodes=3, node_name="node03", master="node01", launcher="Open MPI",
        job=OPEN_MPI.format("da6440e3f8b80be8-c95aab9e011c179c", "3970170881"), secret=True,
    ),
    "open-mpi-4-login": Rank(
        3, 4, 1, 2, nodes=2, node_name="node02", master="node01", launcher="Open MPI",
        job=OPEN_MPI.format("e0f046e6c642b2a9-ade4eaed8790cf80", "847314945"), secret=True,
    ),
    "open-mpi-5": Rank(
        3, 4, 1, 2, node_name="node02", master="node01", launcher="Open MPI",
        job="PMIX_NAMESPACE=prterun-node01-14203@1",
    ),
    "open-mpi-5-login": Rank(
        3, 4, 1, 2, node_name="node02", launcher="Open MPI", job="PMIX_NAMESPACE=prterun-login-14092@1"
    ),
    "paddle": Rank(
        3, 4, 1, 2, 1, 2, "10.20.0.12", ("10.20.0.11", "10.20.0.12"), "10.20.0.11", 40017, launcher="paddle",
        job=f"PADDLE_TRAINER_ENDPOINTS={ENDPOINTS}", layout=(0, 0, 1, 1),
    ),
    "pmi": Rank(1, 2, launcher="PMI"),
    "salloc-interactive-step": Rank(
        0, 1, 0, 1, 0, 1, "node01", ("node01",), "node01", launcher="srun",
        job="SLURM_JOB_ID=11 SLURM_STEP_ID=4294967290", layout=(0,),
    ),
    "salloc-shell": Rank(0, 1),
    "sbatch-script": Rank(0, 1),
    "srun": Rank(
        10, 11, 2, 3, 2, 3, "node03", NODES, "node01", launcher="srun", job="SLURM_JOB_ID=2 SLURM_STEP_ID=0",
        layout=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2),
    ),
    "srun-arbitrary": Rank(
        3, 4, 0, 1, 1, 3, "node02", launcher="srun", job="SLURM_JOB_ID=5 SLURM_STEP_ID=0"
    ),
    "srun-cyclic": Rank(
        7, 8, 3, 4, 0, 3, "node01", NODES, "node01", launcher="srun", job="SLURM_JOB_ID=3 SLURM_STEP_ID=0",
        layout=(0, 1, 2, 0, 1, 0, 1, 0),
    ),
    "srun-plane": Rank(
        7, 8, 2, 3, 1, 3, "node02", NODES, "node01", launcher="srun", job="SLURM_JOB_ID=4 SLURM_STEP_ID=0",
        layout=(0, 0, 1, 1, 2, 0, 0, 1),
    ),
    "srun-pmi2": Rank(
        1, 2, 0, 1, 1, 2, "node02", NODES[:2], "node01", launcher="srun", job="SLURM_JOB_ID=6 SLURM_STEP_ID=0",
        layout=(0, 1),
    ),
    "srun-pmix": Rank(
        1, 2, 1, 2, 0, 1, "node01", NODES[:1], "node01", launcher="srun", job="SLURM_JOB_ID=7 SLURM_STEP_ID=0",
        layout=(0, 0),
    ),
    "srun-two-components": Rank(
        2, 3, 0, 1, 2, 3, "node03", master="node01", launcher="srun", job="SLURM_JOB_ID=8 SLURM_STEP_ID=0"
    ),
    "torch-distributed-launch": Rank(1, 2, 1, 2, 0, 1, master="127.0.0.1", master_port=29511, launcher="torchrun"),
    "torchrun": Rank(3, 4, 1, 2, 1, 2, master="10.20.0.11", master_port=29578, launcher="torchrun"),
    "torchrun-c10d": Rank(
        3, 4, 1, 2, 1, 2, master="node01", master_port=34685, launcher="torchrun", job="TORCHELASTIC_RUN_ID=job7"
    ),
    "torchrun-c10d-restarted": Rank(
        1, 2, 0, 1, 1, 2, master="node01", master_port=34619, launcher="torchrun", job="TORCHELASTIC_RUN_ID=job7"
    ),
    "torchrun-in-srun": Rank(
        3, 4, 1, 2, 1, 2, "node02", NODES[:2], "10.20.0.11", 29500, launcher="torchrun",
        job="SLURM_JOB_ID=1 SLURM_STEP_ID=0",
    ),
    "torchrun-standalone": Rank(
        1, 2, 1, 2, 0, 1, master="localhost", master_port=38433, launcher="torchrun", attempt=1,
        job="TORCHELASTIC_RUN_ID=dcdd2249-dcd6-4cc4-9b5d-c05df6878391",
    ),
    "variables": Rank(3, 4, 1, master="node01", master_port=29500, launcher="variables"),
}  # fmt: skip


def test_each_recorded_job_is_held_to_what_is_read_of_it() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(LAST)


def test_a_rank_is_read_from_the_variables_of_its_launcher() -> None:
    assert {name: read(environments(name)[-1]) for name in LAST} == LAST


@pytest.mark.parametrize("name", LAST)
def test_the_ranks_of_a_job_agree_on_it_and_each_field_names_the_variable_that_it_came_from(name: str) -> None:
    environs = environments(name)
    ranks = [read_rank(environ) for environ in environs]
    assert len({rank.rank for rank in ranks}) == len(ranks)
    assert len({(rank.size, rank.job, rank.attempt, rank.hosts, rank.launcher, rank.layout) for rank in ranks}) == 1
    assert len({rank.master for rank in ranks} - {""}) <= 1
    assert all(reader.host_of(rank.rank) in ("", rank.node_name) for reader in ranks for rank in ranks)
    for rank, environ in zip(ranks, environs, strict=True):
        assert {text.partition("=")[0] for text in rank.named.values()} <= environ.keys()
        known = {key for key in ("local_rank", "node_name", "master", "master_port") if getattr(rank, key)}
        assert known <= rank.named.keys()


def test_a_process_without_a_launcher_is_a_job_of_its_own() -> None:
    assert read_rank({"PATH": "/usr/bin"}) == Rank(0, 1)


def test_a_host_beyond_what_the_launcher_says_is_unknown() -> None:
    rank = read_rank(environments("srun")[0])
    assert [rank.host_of(number) for number in (-1, 0, 3, 4, 8, 10, 11)] == [
        "", "node01", "node01", "node02", "node03", "node03", "",
    ]  # fmt: skip
    assert read_rank(environments("torchrun")[0]).host_of(0) == ""


TORCH = {
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "MASTER_ADDR": "node01",
    "MASTER_PORT": "29500",
}


def step(task: int, tasks: int, step_id: int = 0) -> dict[str, str]:
    """Return the environment of a task of srun: one task per node."""
    return {
        **environments("srun-pmi2")[0],
        "SLURM_PROCID": str(task), "SLURM_NODEID": str(task), "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURM_STEP_NUM_NODES": str(tasks), "SLURM_STEP_TASKS_PER_NODE": f"1(x{tasks})",
        "SLURM_STEP_NODELIST": f"node[01-0{tasks}]", "SLURM_STEP_ID": str(step_id),
    }  # fmt: skip


def agent(node: int, nodes: int, per_node: int) -> dict[str, str]:
    """Return what torchrun sets for the last rank on a node."""
    rank = node * per_node + per_node - 1
    return {
        **TORCH, "RANK": str(rank), "WORLD_SIZE": str(nodes * per_node), "LOCAL_RANK": str(per_node - 1),
        "LOCAL_WORLD_SIZE": str(per_node), "GROUP_RANK": str(node), "GROUP_WORLD_SIZE": str(nodes),
    }  # fmt: skip


BATCH = environments("sbatch-script")[0]
MPI = environments("open-mpi-4")[3]  # rank 3 of 4, the second of two on node02
MASTER = {"MASTER_ADDR": "node07", "MASTER_PORT": "29500"}

# what is inside what -> its environment, launcher, rank and size
NESTED: Mapping[str, tuple[Environment, str, int, int]] = {
    "torchrun in a step of srun": ({**step(1, 2), **agent(1, 2, 4)}, "torchrun", 7, 8),
    "torchrun, one for each of several srun": ({**step(0, 1, 3), **agent(1, 2, 4)}, "torchrun", 7, 8),
    "torchrun in a batch script": ({**BATCH, **agent(0, 1, 4)}, "torchrun", 3, 4),
    "torchrun --standalone, once per task": ({**step(3, 4), **agent(0, 1, 1)}, "torchrun", 0, 1),
    "torchrun in a Kubernetes pod with its own RANK": ({**agent(1, 2, 4), "PET_NNODES": "2"}, "torchrun", 7, 8),
    "deepspeed in a batch script": ({**BATCH, **environments("deepspeed")[3]}, "deepspeed", 3, 4),
    "deepspeed, which starts mpirun": ({**MPI, "UCX_TLS": "tcp"}, "Open MPI", 3, 4),
    "deepspeed, which starts Intel MPI": (
        {**environments("intel-mpi")[3], **MASTER, "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1",
         "LOCAL_SIZE": "2"},
        "Intel MPI", 3, 4,
    ),
    "horovodrun, which starts mpirun": ({**MPI, "HOROVOD_FUSION_THRESHOLD": "67108864"}, "Open MPI", 3, 4),
    "horovodrun in a batch script": ({**BATCH, **environments("horovodrun")[1]}, "horovodrun", 1, 3),
    "mpirun in a batch script": ({**BATCH, **MPI}, "Open MPI", 3, 4),
    "mpirun whose daemons srun started": ({**step(1, 2), **MPI}, "Open MPI", 3, 4),
    "paddle in a step of srun": ({**step(1, 2), **environments("paddle")[3]}, "paddle", 3, 4),
    "python in a batch script": (BATCH, "", 0, 1),
    "python in the shell of salloc": (environments("salloc-shell")[0], "", 0, 1),
    "a process per GPU, started by one task per node": (
        {**step(1, 2), **MASTER, "RANK": "9", "WORLD_SIZE": "16"}, "variables", 9, 16,
    ),
    "srun with the same RANK and WORLD_SIZE": ({**step(1, 2), **MASTER, "RANK": "1", "WORLD_SIZE": "2"}, "srun", 1, 2),
    "srun with WORLD_SIZE alone": ({**step(1, 2), "WORLD_SIZE": "16"}, "srun", 1, 2),
    "srun with a RANK left from another job": ({**step(1, 2), "RANK": "0", "WORLD_SIZE": "1"}, "srun", 1, 2),
    "mpirun with RANK and WORLD_SIZE of the pod": ({**MPI, **MASTER, "RANK": "1", "WORLD_SIZE": "2"}, "Open MPI", 3, 4),
    "ranks counted node by node under mpirun --map-by node": (
        {**environments("open-mpi-4-by-node")[1], "RANK": "2", "WORLD_SIZE": "4"}, "variables", 2, 4,
    ),
    "Lightning's own variables": ({**MASTER, "WORLD_SIZE": "16", "NODE_RANK": "1"}, "", 0, 1),
    "a script that will start its ranks itself": ({**MASTER, "WORLD_SIZE": "8", "RANK": ""}, "", 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", NESTED)
def test_the_innermost_launcher_counts(case: str) -> None:
    environ, launcher, number, size = NESTED[case]
    rank = read_rank(environ)
    assert (rank.launcher, rank.rank, rank.size) == (launcher, number, size)


def test_the_ids_of_a_step_join_torchruns_where_the_step_started_every_agent() -> None:
    ids = "SLURM_JOB_ID=6 SLURM_STEP_ID=0"
    assert [read_rank({**step(node, 2), **agent(node, 2, 4)}).job for node in (0, 1)] == [ids, ids]
    assert [read_rank({**step(0, 1, node), **agent(node, 2, 4)}).job for node in (0, 1)] == ["", ""]
    assert (
        read_rank({**step(0, 1), **agent(0, 1, 4), "TORCHELASTIC_RUN_ID": "mine"}).job
        == f"TORCHELASTIC_RUN_ID=mine {ids}"
    )


def test_a_job_that_slurm_started_again_is_another_attempt() -> None:
    again = read_rank({**step(1, 2), "SLURM_RESTART_COUNT": "2"})
    assert (again.job, again.attempt) == ("SLURM_JOB_ID=6 SLURM_STEP_ID=0 SLURM_RESTART_COUNT=2", 2)


def test_restarts_count_only_where_one_torchrun_started_all_ranks() -> None:
    """Each torchrun counts its own: after the same restart one says 1 and the other 0."""
    first, second = environments("torchrun-c10d-restarted")
    assert (first["TORCHELASTIC_RESTART_COUNT"], second["TORCHELASTIC_RESTART_COUNT"]) == ("0", "1")
    assert (read_rank(first).attempt, read_rank(second).attempt) == (0, 0)
    alone = {**agent(0, 1, 4), "TORCHELASTIC_RESTART_COUNT": "3"}
    assert read_rank(alone).attempt == 3


def test_the_masters_address_of_the_user_comes_before_a_guess() -> None:
    given = {"MASTER_ADDR": "node07", "MASTER_PORT": "29500"}
    for name in ("open-mpi-4", "open-mpi-5-login", "mpich", "intel-mpi", "horovodrun", "srun", "srun-arbitrary"):
        rank = read_rank({**environments(name)[-1], **given})
        assert (rank.master, rank.master_port, rank.named["master"]) == ("node07", 29500, "MASTER_ADDR=node07")


def test_rank_0_is_taken_to_be_on_the_first_node_of_the_allocation() -> None:
    rank = read_rank({**environments("open-mpi-5-login")[3], **environments("salloc-shell")[0]})
    assert (rank.master, rank.named["master"]) == ("node01", "SLURM_JOB_NODELIST=node[01-03]")


def test_rank_0_of_a_step_is_on_its_first_node_and_not_on_that_of_the_allocation() -> None:
    parts = {"SLURM_STEP_NODELIST": "node[02-03]", "SLURM_STEP_TASKS_PER_NODE": "garbled"}
    rank = read_rank({**step(1, 2), "SLURM_JOB_NODELIST": "node[01-03]", **parts})
    assert (rank.master, rank.hosts) == ("node02", ())


@pytest.mark.parametrize(
    "garbled",
    [
        {"OMPI_MCA_orte_local_daemon_uri": "x"},
        {"OMPI_MCA_orte_local_daemon_uri": "699400192.0;tcp://10.20.0.12:54477"},  # rank 3 is not on mpirun's host
        {"OMPI_MCA_orte_local_daemon_uri": "699400192.9;tcp://10.20.0.12:54477"},
        {"OMPI_MCA_orte_node_regex": "node[2:1-"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE": "3"},
    ],
)
def test_a_master_that_open_mpi_does_not_say_is_unknown(garbled: Environment) -> None:
    rank = read_rank({**MPI, **garbled})
    assert (rank.rank, rank.size, rank.master) == (3, 4, "")


@pytest.mark.parametrize("endpoints", ["10.20.0.11:41231", "a:1,b:2,c:3,;:4", ":1,:2,:3,:4", ",,,"])
def test_endpoints_of_paddle_that_are_none_are_not_used(endpoints: str) -> None:
    rank = read_rank({**environments("paddle")[3], "PADDLE_TRAINER_ENDPOINTS": endpoints})
    assert (rank.rank, rank.size, rank.hosts, rank.master) == (3, 4, (), "")


def test_the_first_endpoint_of_paddle_is_its_master_where_it_names_none() -> None:
    rank = read_rank({**environments("paddle")[3], "PADDLE_MASTER": ""})
    assert (rank.master, rank.master_port) == ("10.20.0.11", 41231)


def test_a_master_port_without_a_master_is_kubernetes_own() -> None:
    assert read_rank({**MPI, "MASTER_PORT": "tcp://10.96.0.7:80"}).master_port is None


def test_slurms_words_about_the_other_nodes_are_not_used_where_they_do_not_fit() -> None:
    environ = environments("srun")[2]
    for other in (
        {"SLURM_STEP_NODELIST": "node[01-02]"},
        {"SLURM_STEP_NODELIST": "node[01-"},
        {"SLURM_STEP_TASKS_PER_NODE": "4(x3)"},
        {"SLURM_STEP_TASKS_PER_NODE": "4(x9999999)"},
        {"SLURM_DISTRIBUTION": "cyclic"},
        {"SLURM_DISTRIBUTION": "plane"},
        {"SLURM_DISTRIBUTION": "unknown"},
    ):
        rank = read_rank({**environ, **other})
        assert (rank.rank, rank.size, rank.host_of(0), rank.layout) == (10, 11, "", ())


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RANK": "0", "WORLD_SIZE": "eight"}, "WORLD_SIZE=eight is not a whole number"),
        ({"RANK": "0", "WORLD_SIZE": "8.0"}, "WORLD_SIZE=8.0 is not a whole number"),
        ({"RANK": "0", "WORLD_SIZE": "٨"}, "WORLD_SIZE=٨ is not a whole number"),
        ({"RANK": "0", "WORLD_SIZE": "-8"}, "WORLD_SIZE=-8 is too small: the minimum is 1"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "WORLD_SIZE=0 is too small: the minimum is 1"),
        ({"RANK": "0", "WORLD_SIZE": "1048577"}, "WORLD_SIZE=1048577 is too large: the maximum is 1048576"),
        ({"RANK": "0", "WORLD_SIZE": "9" * 5000}, f"WORLD_SIZE={'9' * 57}... is too large: the maximum is 1048576"),
        ({"RANK": "0", "WORLD_SIZE": "\x1b[31m8"}, "WORLD_SIZE=?[31m8 is not a whole number"),
        ({"RANK": "-1", "WORLD_SIZE": "8"}, "RANK=-1 is too small: the minimum is 0"),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "RANK=8 must be below WORLD_SIZE=8"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE=many is not a whole number"),
        (
            {"RANK": "2", "WORLD_SIZE": "8", "LOCAL_RANK": "4", "LOCAL_WORLD_SIZE": "4"},
            "LOCAL_RANK=4 must be below LOCAL_WORLD_SIZE=4",
        ),
        ({"RANK": "2", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "8"}, "LOCAL_WORLD_SIZE=8 is more than WORLD_SIZE=4"),
        ({**agent(1, 2, 4), "GROUP_RANK": "2"}, "GROUP_RANK=2 must be below GROUP_WORLD_SIZE=2"),
        ({**agent(1, 2, 4), "MASTER_PORT": "none"}, "MASTER_PORT=none is not a whole number"),
        ({**agent(1, 2, 4), "MASTER_PORT": "0"}, "MASTER_PORT=0 is too small: the minimum is 1"),
        ({**agent(1, 2, 4), "MASTER_PORT": "65536"}, "MASTER_PORT=65536 is too large: the maximum is 65535"),
        ({**MPI, "OMPI_COMM_WORLD_RANK": "x"}, "OMPI_COMM_WORLD_RANK=x is not a whole number"),
        (
            {**MPI, "RANK": "0", "WORLD_SIZE": "4"},
            "RANK=0 contradicts OMPI_COMM_WORLD_RANK=3 (Open MPI) in a job of 4 ranks: unset RANK or make them equal",
        ),
        (
            {**environments("srun")[2], "RANK": "3", "WORLD_SIZE": "11"},
            "RANK=3 contradicts SLURM_PROCID=10 (srun) in a job of 11 ranks: unset RANK or make them equal",
        ),
        ({**step(1, 2), "SLURM_PROCID": "2"}, "SLURM_PROCID=2 must be below SLURM_STEP_NUM_TASKS=2"),
    ],
)
def test_wrong_variables_are_named_with_their_values(environ: Environment, message: str) -> None:
    with pytest.raises(LauncherVariablesError) as raised:
        read_rank(environ)
    assert str(raised.value) == message


GARBLED = (
    "-1", "0", "7", "1048577", "9" * 400, "1e3", "x", " ", "::", ",", "[", "node[", "node[9-1]", "1(x", "\x00\x1b",
    "é٣", "a.b;c", "@", "1." * 50,
)  # fmt: skip


@pytest.mark.parametrize("name", LAST)
def test_a_garbled_variable_is_refused_or_makes_no_more_than_an_unknown(name: str) -> None:
    first, *_, last = [*environments(name), *environments(name)]
    for environ in (first, last):
        for variable, text in product(environ, GARBLED):
            try:
                rank = read_rank({**environ, variable: text})
            except LauncherVariablesError as error:
                assert variable in str(error)  # noqa: PT017  it may pass as well
                continue
            assert 0 <= rank.rank < rank.size
            assert {rank.host_of(number) for number in range(min(rank.size, 20))} <= {"", *rank.hosts}


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[01-03,07],login", ("node01", "node02", "node03", "node07", "login")),
        ("node[03,01]", ("node03", "node01")),
        ("rack[1-2]-node[09-10].ib", ("rack1-node09.ib", "rack1-node10.ib", "rack2-node09.ib", "rack2-node10.ib")),
        ("n[98-101]", ("n98", "n99", "n100", "n101")),
        ("node01", ("node01",)),
        ("", ()),
        ("node[1-", ()),
        ("node[a-b]", ()),
        ("node[0-9999999]", ()),
        ("node[3-1]", ()),
        ("n[0-999]m[0-9999]", ()),
        ("node01;reboot", ()),
        ("n[" + ",".join(["0-999999"] * 5000) + "]", ()),
        ("n" + "[0]" * 50000, ()),
        ("n[9999999-0,0-9999999]", ()),
        ("n[,]", ()),
        ("n[]", ()),
    ],
)
def test_a_node_list_of_slurm_keeps_its_order(text: str, hosts: tuple[str, ...]) -> None:
    assert hosts_of_slurm(text) == hosts


@pytest.mark.parametrize(
    ("text", "counts"),
    [("4(x2),3", (4, 4, 3)), ("8", (8,)), ("", ()), ("4(x", ()), ("1(x2000000)", ()), ("1048577", ()), ("4,,3", ())],
)
def test_tasks_per_node_of_slurm(text: str, counts: tuple[int, ...]) -> None:
    assert counts_of_slurm(text) == counts


def test_nothing_heavy_is_imported() -> None:
    program = "import sys, ncheck.rank_variables; print(*sys.modules)"
    bare = (sys.executable, "-S", "-c", program)
    names = subprocess.run(bare, check=True, capture_output=True, text=True, env=PATHS).stdout.split()
    others = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names} - {"__main__"}
    light = {
        "ncheck",
        "ncheck.errors",
        "ncheck.expression",
        "ncheck.rank_variables",
        "ncheck.hostlist",
        "ncheck.launchers",
        "ncheck.lazy_dataclass",
        "ncheck.text",
        "ncheck.version",
    }
    assert others == light


# Real launchers, where they are.

FIELDS = (
    "import os; from ncheck.rank_variables import read_rank; r = read_rank(os.environ); "
    "os.write(1, (' '.join(map(str, (r.launcher.replace(' ', '-'), r.rank, r.size, r.local_rank, r.local_size, "
    "r.node, r.nodes, bool(r.job)))) + chr(10)).encode())"
)


def started_by(*argv: str) -> list[str]:
    """Return what each process prints that a real launcher starts here, sorted."""
    environ = {**PATHS, "PATH": os.environ["PATH"], "HOME": str(Path.home())}
    found = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, env=environ)
    return sorted(found.stdout.splitlines())


@pytest.mark.skipif(not shutil.which("mpirun"), reason="there is no mpirun here")
def test_real_mpirun() -> None:
    program = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", sys.executable, "-c", FIELDS)
    assert started_by(*program) == ["Open-MPI 0 2 0 2 0 1 True", "Open-MPI 1 2 1 2 0 1 True"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="there is no torch here")
def test_real_torchrun(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FIELDS)
    program = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script))
    assert started_by(*program) == ["torchrun 0 2 0 2 0 1 True", "torchrun 1 2 1 2 0 1 True"]


# The table in the documentation.

ALIASES = {"torch.distributed.launch": "torchrun", "oneflow": "variables", "bare variables": "variables"}
_VARIABLE = re.compile(r"`([A-Za-z_]+)`")


def rows() -> dict[str, set[str]]:
    """Map each launcher of the table to the variables in its row."""
    section = DOCS.read_text().partition("## Which variables the hook reads")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "`" in line]
    return {
        name: set(_VARIABLE.findall(line)) for line in lines for name in line.split("|")[1].strip().split(", ")
    }  # fmt: skip


def variables_of(launcher: RankVariables) -> set[str]:
    one = (
        launcher.rank, launcher.size, launcher.local_rank, launcher.local_size, launcher.node, launcher.nodes,
        launcher.node_name, launcher.attempt,
    )  # fmt: skip
    return {*one, *launcher.job, *launcher.marks} - {""}


def test_the_table_has_the_variables_of_each_launcher() -> None:
    documented, called = rows(), {"variables": "bare variables"}
    missing = {one.name: variables_of(one) - documented[called.get(one.name, one.name)] for one in RANK_VARIABLES}
    assert {name: words for name, words in missing.items() if words} == {}


def test_each_row_of_the_table_is_held_by_a_recorded_job() -> None:
    held = {rank.launcher for rank in LAST.values()}
    assert {name for name in rows() if ALIASES.get(name, name) not in held} == set()
    assert set(rows()) == {launcher.name for launcher in RANK_VARIABLES} - {"variables"} | set(ALIASES)
