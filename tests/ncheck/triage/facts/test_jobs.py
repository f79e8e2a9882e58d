"""Processes to ranks, and the ranks of all nodes to jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.errors import SettingsError
from ncheck.facts.learning import facts_of
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer, Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread
from ncheck.model.job import Job, Process, Target
from ncheck.settings import RunContext, Settings
from ncheck.triage.facts.jobs import ask_of_ranks, job_of, jobs_of
from ncheck.triage.facts.processes import PROCESSES, ProcessesFacts, is_launcher

from tests.ncheck.triage.live.jobs import process

Answered = Callable[[Mapping[Any, Reply]], Evidence]

TORCHRUN = {"TORCHELASTIC_RUN_ID": "job7", "MASTER_ADDR": "gpu01", "MASTER_PORT": "29500"}
TRAIN = ("python3", "-u", "train.py")


def torch(rank: int, size: int = 4, **more: str) -> dict[str, str]:
    bare = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank % 2), "LOCAL_WORLD_SIZE": "2"}
    return {**bare, "GROUP_RANK": str(rank // 2), "GROUP_WORLD_SIZE": "2", **TORCHRUN, **more}


def bare(rank: int, size: int, master: str = "gpu01:29500", **more: str) -> dict[str, str]:
    address, port = master.split(":")
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": address, "MASTER_PORT": port, **more}


def slurm(rank: int, size: int) -> dict[str, str]:
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "812"}


def mpi(rank: int, size: int) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size), "PMIX_NAMESPACE": "prterun-7@1"}


def cluster(**nodes: list[Process]) -> Cluster:
    return Cluster.of({name: {ProcessesFacts: ProcessesFacts(tuple(held), {})} for name, held in nodes.items()})


def places(job: Job) -> list[tuple[int | None, str, int]]:
    return [(one.rank, one.node, one.pid) for one in job.ranks]


def job(of: Cluster, **target: Any) -> Job:
    found = job_of(of, Target(**target))
    assert found
    return found


def test_ranks_of_torchrun_are_one_job_and_the_agents_above_them_are_launchers() -> None:
    agent = process(10, argv=("python3", "/usr/bin/torchrun"), name="torchrun", variables={})
    nodes = {
        f"gpu0{node + 1}": [
            agent,
            *(process(20 + at, parent=10, argv=TRAIN, variables=torch(2 * node + at)) for at in range(2)),
        ]
        for node in range(2)
    }
    (found,) = jobs_of(cluster(**nodes))
    assert places(found) == [(0, "gpu01", 20), (1, "gpu01", 21), (2, "gpu02", 20), (3, "gpu02", 21)]
    assert (found.size, found.missing, found.nodes) == (4, (), ("gpu01", "gpu02"))
    assert found.launchers == {"gpu01": (agent,), "gpu02": (agent,)}
    assert [one.launcher for one in found.ranks] == ["torchrun"] * 4


def test_what_is_beneath_a_rank_is_its_child_although_it_has_the_ranks_variables() -> None:
    loader, inner = (
        process(pid, parent=parent, argv=TRAIN, variables=torch(0)) for pid, parent in ((21, 20), (22, 21))
    )
    found = job(cluster(gpu01=[process(20, argv=TRAIN, variables=torch(0)), loader, inner]))
    assert places(found) == [(0, "gpu01", 20)]
    assert found.ranks[0].children == (loader, inner)
    assert found.find("gpu01", 22) is found.ranks[0]
    assert found.missing == (1, 2, 3)


def test_a_data_loader_that_outlived_its_rank_is_not_the_rank() -> None:
    orphan = process(21, parent=1, name="pt_data_worker", argv=TRAIN, variables=bare(1, 2))
    found = job(cluster(n1=[process(20, argv=TRAIN, variables=bare(0, 2))], n2=[orphan]))
    assert (places(found), found.missing) == ([(0, "n1", 20)], (1,))


def test_a_shell_that_starts_a_rank_is_none() -> None:
    shell = process(10, name="bash", argv=("bash", "run.sh"), variables=slurm(0, 1))
    python = process(11, parent=10, argv=TRAIN, variables=slurm(0, 1))
    found = job(cluster(gpu01=[shell, python]))
    assert (places(found), found.launchers) == ([(0, "gpu01", 11)], {"gpu01": (shell,)})
    assert places(job(cluster(gpu01=[shell]))) == [(0, "gpu01", 10)]  # its rank has not been started, or has ended


def test_a_launcher_within_a_launcher_is_no_rank() -> None:
    task = process(10, argv=("python3", "-m", "torch.distributed.run"), variables=slurm(0, 2))
    rank = process(11, parent=10, argv=TRAIN, variables={**slurm(0, 2), **torch(0)})
    found = job(cluster(gpu01=[task, rank]))
    assert places(found) == [(0, "gpu01", 11)]
    assert found.launchers["gpu01"] == (task,)


def test_a_rank_with_another_master_is_of_the_same_job() -> None:
    found = job(
        cluster(
            gpu01=[process(20, argv=TRAIN, variables=bare(0, 3)), process(21, argv=TRAIN, variables=bare(1, 3))],
            gpu02=[process(20, argv=TRAIN, variables=bare(2, 3, "gpu01:29501"))],
        )
    )
    assert places(found) == [(0, "gpu01", 20), (1, "gpu01", 21), (2, "gpu02", 20)]
    assert found.size == 3


def test_ranks_with_another_world_size_are_of_the_same_job_and_most_of_them_say_which_is_right() -> None:
    sizes = (3, 3, 4)
    ranks = [process(20 + rank, argv=TRAIN, variables=bare(rank, size)) for rank, size in enumerate(sizes)]
    found = job(cluster(gpu01=ranks))
    assert (found.size, [one.size for one in found.ranks]) == (3, [3, 3, 4])


def test_two_jobs_are_two_and_the_target_chooses() -> None:
    both = cluster(
        gpu01=[
            process(20, argv=TRAIN, variables=bare(0, 2)),
            process(30, argv=TRAIN, variables=bare(0, 2, "gpu01:1234")),
        ],
        gpu02=[
            process(21, argv=TRAIN, variables=bare(1, 2)),
            process(31, argv=TRAIN, variables=bare(1, 2, "gpu01:1234")),
        ],
    )
    assert len(jobs_of(both)) == 2
    with pytest.raises(
        SettingsError, match=r"^2 jobs run on these nodes: name one by --job NODE:PID or --match REGEX: gpu01:20"
    ):
        job_of(both, Target())
    assert places(job(both, pid=31)) == [(0, "gpu01", 30), (1, "gpu02", 31)]
    assert places(job(both, pid=31, node="gpu02")) == [(0, "gpu01", 30), (1, "gpu02", 31)]
    assert job_of(both, Target(pid=31, node="gpu01")) is None
    assert job_of(both, Target(pid=99)) is None


def test_jobs_of_torchrun_are_listed_with_their_whole_ids() -> None:
    def node(pid: int, name: str) -> list[Process]:
        words = ("python3", "/usr/bin/torchrun", *(f"--a-long-option-{at}=1" for at in range(9)), f"--rdzv-id={name}")
        agent = process(pid, argv=words, name="torchrun", variables={})
        return [agent, process(pid + 1, parent=pid, argv=TRAIN, variables=torch(0, TORCHELASTIC_RUN_ID=name))]

    with pytest.raises(SettingsError) as refused:
        job_of(cluster(gpu01=[*node(10, "job-811"), *node(20, "job-812")]), Target())
    listed = "gpu01:{} (1 processes, --rdzv-id={}): python3 -u train.py"
    assert str(refused.value).endswith(f"{listed.format(11, 'job-811')}; {listed.format(21, 'job-812')}")


def test_runs_that_their_launchers_name_differently_are_never_one_job() -> None:
    first, second = (
        [process(20 + at, argv=TRAIN, variables=torch(base + at, TORCHELASTIC_RUN_ID=run)) for at in range(2)]
        for base, run in ((0, "run11"), (2, "run12"))
    )
    assert len(jobs_of(cluster(gpu01=first, gpu02=second))) == 2


def test_other_users_and_other_scripts_are_other_jobs() -> None:
    found = jobs_of(
        cluster(
            gpu01=[
                process(20, argv=TRAIN, variables=bare(0, 2)),
                process(21, argv=TRAIN, user=7, variables=bare(1, 2, "gpu01:1")),
                process(22, argv=("python3", "eval.py"), variables=bare(1, 2, "gpu01:2")),
            ]
        )
    )
    assert len(found) == 3


def test_a_job_is_named_by_its_command_or_by_its_number_in_slurm() -> None:
    two = cluster(
        gpu01=[process(20, argv=("./a.out",), variables=slurm(0, 1)), process(21, argv=TRAIN, variables=mpi(0, 1))]
    )
    assert places(job(two, match=r"a\.out")) == [(0, "gpu01", 20)]
    assert places(job(two, slurm="812")) == [(0, "gpu01", 20)]
    assert places(job(two, match="train")) == [(0, "gpu01", 21)]
    assert job_of(two, Target(slurm="813")) is None


def test_processes_that_no_launcher_started_are_the_job_that_a_regular_expression_names() -> None:
    engine, worker = (("python3", "serve.py", role) for role in ("engine", "worker"))
    nodes = cluster(
        gpu01=[process(10, argv=("sh", "-c", "serve.py"), name="sh"), process(11, parent=10, argv=engine),
               process(12, parent=11, argv=engine)],
        gpu02=[process(20, argv=worker), process(21, argv=("python3", "other.py"))],
    )  # fmt: skip
    found = job(nodes, match=r"serve\.py")
    assert places(found) == [(None, "gpu01", 11), (None, "gpu02", 20)]
    assert (found.size, found.missing, [one.pid for one in found.ranks[0].children]) == (None, (), [12])
    assert job_of(nodes, Target(match="nothing")) is None
    assert job_of(nodes, Target()) is None


def test_a_process_that_holds_a_gpu_is_of_a_job_without_numbers() -> None:
    held = ProcessesFacts((process(20, argv=TRAIN), process(21, argv=TRAIN, parent=20)), {20: ("nvidia0",)})
    found = job_of(Cluster.of({"gpu01": {ProcessesFacts: held}}), Target())
    assert found
    assert (places(found), found.size, found.missing) == ([(None, "gpu01", 20)], None, ())


def test_variables_that_contradict_each_other_leave_a_rank_without_a_number() -> None:
    wrong = bare(0, 3) | {"RANK": "9"}
    found = job(cluster(gpu01=[process(20, argv=TRAIN, variables=wrong)]))
    assert places(found) == [(None, "gpu01", 20)]


def test_no_process_no_job() -> None:
    assert job_of(cluster(gpu01=[], gpu02=[process(20, variables=None)]), Target()) is None


def test_each_node_is_asked_about_its_own_ranks() -> None:
    ask = ask_of_ranks(Answer("stacks"), lambda job, node, _: {"size": job.size} if node != "gpu03" else None)
    ranks = {f"gpu0{at + 1}": [process(20, argv=TRAIN, variables=bare(at, 3))] for at in range(3)}
    asked = ask(cluster(gpu00=[], **ranks), Settings(run=RunContext(target=Target())), 9.0)
    assert {name: [one.arguments for one in made if isinstance(one, Answer)] for name, made in asked.items()} == {
        f"gpu0{at + 1}": [
            {
                "ranks": [
                    {"rank": at, "pid": 20, "started": 200, "inner_pid": 20, "namespace": "net:[1]", "children": []}
                ],
                "size": 3,
            }
        ]
        for at in range(2)
    }  # fmt: skip


RAW: dict[str, JsonValue] = {
    "pid": 20, "parent": 1, "started": 9, "state": "S", "name": "python3", "argv": ["python3"], "user": 7,
    "inner_pid": 3, "namespace": "", "variables": {"RANK": "0"}, "devices": ["nvidia1"],
}  # fmt: skip


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({PROCESSES: Reply(Status.OK, value=value)}), [ProcessesFacts])[ProcessesFacts]


def test_the_answer_of_a_node_is_read(answered: Answered) -> None:
    one = Process(20, 1, 9, "S", "python3", ("python3",), 7, 3, "", {"RANK": "0"})
    value: JsonValue = {"processes": [RAW], "left_out": 2, "hidden": 4}
    assert read(answered, value) == ProcessesFacts((one,), {20: ("nvidia1",)}, 4, 2)


@pytest.mark.parametrize("wrong", [{"pid": "20"}, {"argv": "python3"}, {"variables": {"RANK": 0}}, {"user": None}])
def test_an_answer_of_another_shape_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    value: JsonValue = {"processes": [{**RAW, **wrong}], "left_out": 0, "hidden": 0}
    assert isinstance(read(answered, value), Unread)


MPIRUN = ("mpirun", "-np", "4", "--host", "gpu01,gpu02", "python3", "train.py")


def test_a_launcher_without_ranks_is_a_job_with_what_it_started() -> None:
    mpirun = process(10, name="mpirun", argv=MPIRUN, variables={})
    ssh = process(11, parent=10, name="ssh", argv=("/usr/bin/ssh", "-x", "gpu02", "orted"), variables={})
    orted = process(30, name="orted", argv=("/usr/bin/orted", "-mca", "ess", "env"), variables={})
    found = job(cluster(gpu01=[mpirun, ssh], gpu02=[orted]))
    assert (found.ranks, found.launchers) == ((), {"gpu01": (mpirun, ssh), "gpu02": (orted,)})
    assert job(cluster(gpu01=[mpirun, ssh]), pid=11) == job(cluster(gpu01=[mpirun, ssh]), match="mpirun")


def test_a_launcher_that_waits_is_no_second_job_beside_one_with_ranks() -> None:
    waits = process(10, name="srun", argv=("srun", "--pty", "bash"), variables={})
    rank = process(20, argv=TRAIN, variables=bare(0, 1))
    found = cluster(gpu01=[waits, rank])
    assert places(job(found)) == [(0, "gpu01", 20)]
    assert job(found, pid=10).launchers == {"gpu01": (waits,)}


def test_a_launcher_on_a_node_without_ranks_belongs_to_the_job_whose_program_it_names() -> None:
    mpirun = process(10, name="mpirun", argv=MPIRUN, variables={})
    ssh = process(11, parent=10, name="ssh", argv=("ssh", "gpu01", "orted"), variables={})
    orted = process(30, name="orted", argv=("orted", "-mca", "ess", "env"), variables={})
    rank = process(31, parent=30, argv=TRAIN, variables=mpi(0, 1))
    (found,) = jobs_of(cluster(head=[mpirun, ssh], gpu01=[orted, rank]))
    assert (places(found), found.launchers) == ([(0, "gpu01", 31)], {"gpu01": (orted,), "head": (mpirun, ssh)})


def test_what_a_launcher_started_beside_its_ranks_is_named_with_it() -> None:
    mpirun = process(10, name="mpirun", argv=MPIRUN, variables={})
    ssh = process(11, parent=10, name="ssh", argv=("ssh", "gpu02", "orted"), variables={})
    rank = process(12, parent=10, argv=TRAIN, variables=mpi(0, 1))
    assert job(cluster(gpu01=[mpirun, ssh, rank])).launchers == {"gpu01": (mpirun, ssh)}


def test_nodes_with_launchers_alone_are_asked_by_those_who_look_at_launchers() -> None:
    found = cluster(gpu01=[process(10, name="mpirun", argv=MPIRUN, variables={})])
    source = Answer("sockets")
    assert ask_of_ranks(source)(found, Settings(), 30.0) == {}
    with_launchers = ask_of_ranks(source, lambda *_: {"launchers": [1]})(found, Settings(), 30.0)
    (question,) = with_launchers["gpu01"]
    assert isinstance(question, Answer)
    assert question.arguments == {"ranks": [], "launchers": [1]}


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -np 2 ./a.out", "/opt/openmpi/bin/prterun x", "/usr/bin/orted -mca ess env", "mpiexec.hydra -n 2 a",
        "/usr/bin/python3 /usr/local/bin/torchrun train.py", "python3.11 -u -m torch.distributed.run train.py",
        "python -m accelerate.commands.launch train.py", "srun -N 2 python3 train.py", "/venv/bin/torchrun train.py",
        "python3 -m oneflow.distributed.launch --nnodes 2 train.py",
    ],
)  # fmt: skip
def test_launchers_are_known_by_their_command(command: str) -> None:
    assert is_launcher(process(1, argv=tuple(command.split())))


@pytest.mark.parametrize(
    "command", ["python3 train.py --launcher mpirun", "vi mpirun", "grep torchrun", "mpirunner", "srund"]
)
def test_what_only_names_a_launcher_is_none(command: str) -> None:
    assert not is_launcher(process(1, argv=tuple(command.split())))
