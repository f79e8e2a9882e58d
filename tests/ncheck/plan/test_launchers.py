"""Which launcher a plan is for, what it says of what it was asked and cannot do, and how many ranks a node has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import LinkFacts, Reach
from ncheck.facts.login import LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node
from ncheck.model.plan import LaunchPlan
from ncheck.parse.interface_names import Kind
from ncheck.parse.nvidia_smi import Gpu
from ncheck.plan.plan import propose
from ncheck.settings import Settings

OPEN_MPI = MpiFacts("Open MPI", "4.1.4", "/usr/bin/mpirun")
NO_MPI, NO_GPU = Absent("no mpirun"), Absent("no NVIDIA GPU")


def node(number: int, *, mpi: object = OPEN_MPI, packages: str = "", gpus: int | object = 0, **set_: str) -> Facts:
    addresses = (Address(f"10.1.0.{number}", 24),)
    eth0 = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=addresses, default_route=True)
    found = dict.fromkeys(packages.split(), "1.0")
    cards = GpuFacts(tuple(Gpu(i, "T4") for i in range(gpus)), "550", "12.4", "nvml") if isinstance(gpus, int) else gpus
    return {
        LoginFacts: LoginFacts(Login(reached=True)),
        LinkFacts: LinkFacts(
            (Reach("10.1.0.0/24", f"10.1.0.{number}", tried=1, reached=1),), (), frozenset({f"n{3 - number}"})
        ),
        NicFacts: NicFacts((eth0,)),
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", found),
        MpiFacts: mpi,
        GpuFacts: cards if gpus else NO_GPU,
        EnvironmentFacts: EnvironmentFacts(set_, {}),
    }


def plan(*facts: Facts, listed: tuple[int | None, ...] = (None, None), **told: Any) -> LaunchPlan:
    nodes = [Node(f"n{number}", slots=count) for number, count in enumerate(listed, 1)]
    named = {one.name: fact for one, fact in zip(nodes, facts, strict=True)}
    return propose(Cluster(tuple(nodes), named), Settings(**told), user_is_root=False)


def test_the_launcher_is_the_mpirun_that_was_found_else_torchrun_where_torch_lives() -> None:
    def found(**changed: Any) -> list[str]:
        return list(plan(node(1, **changed), node(2, **changed)).lines)

    assert found(packages="torch") == ["mpirun"]
    assert found(mpi=NO_MPI, packages="torch") == ["torchrun"]
    assert found(mpi=NO_MPI) == []


def test_where_mpirun_is_asked_for_and_none_is_there_no_line_is_made_up() -> None:
    made = plan(node(1, mpi=NO_MPI), node(2, mpi=NO_MPI), launcher="mpirun")
    assert made.lines == {}
    assert made.notes == ("no mpirun line: no mpirun on the PATH of a non-interactive login",)


def test_a_framework_that_is_not_there_is_told_and_the_line_given_all_the_same() -> None:
    made = plan(node(1, packages="torch"), node(2), launcher="torchrun")
    assert "torchrun" in made.lines
    assert made.notes == ("no torch in the interpreter of n2; --python PATH selects another interpreter",)


def test_a_profile_that_no_line_takes_is_told() -> None:
    made = plan(node(1), node(2), launcher="srun", profile="numa")
    assert made.notes == ("--profile numa only affects Open MPI's mpirun; it is ignored here",)
    assert plan(node(1), node(2), launcher="mpirun", profile="numa").notes == ()


def test_a_port_that_no_line_takes_is_told() -> None:
    made = plan(node(1), node(2), launcher="srun", master_port=12345)
    assert made.notes == ("--master-port 12345 is checked, but srun's line has no such option",)
    assert (
        plan(node(1, packages="torch"), node(2, packages="torch"), launcher="torchrun", master_port=12345).notes == ()
    )


def test_tensorflow_is_said_to_start_one_worker_a_node() -> None:
    made = plan(node(1, packages="tensorflow", gpus=8), node(2, packages="tensorflow", gpus=8), launcher="tensorflow")
    assert made.reasons["tensorflow"][0] == "2 workers, one per node, using all of its GPUs"


def test_what_differs_by_node_is_left_to_ssh_and_the_rest_is_told() -> None:
    nodes = [Node("n1", port=2201), Node("n2", port=2202, user="ada")]
    named = {one.name: node(number) for number, one in enumerate(nodes, 1)}
    made = propose(Cluster(tuple(nodes), named), Settings(user="ada", ssh_config="~/job.conf"), user_is_root=False)
    file = Path("~/job.conf").expanduser()
    assert f"--mca plm_rsh_args '-l ada -F {file}'" in made.lines["mpirun"]
    assert made.notes == (f"the nodes have different ports, which mpirun cannot pass to ssh: set them in {file}",)


@pytest.mark.parametrize(("gpus", "listed", "asked", "hosts"), [
    (8, None, None, "n1:8,n2:8"),
    (8, 2, None, "n1:2,n2:2"),
    (8, None, 4, "n1:8,n2:8"),
    (0, None, 4, "n1:4,n2:4"),
    (0, None, None, "n1:1,n2:1"),
    (Unread("nvidia-smi hung"), None, 4, "n1:4,n2:4"),
])  # fmt: skip
def test_slots_are_the_lists_else_the_gpus_else_what_was_asked_else_one(
    gpus: int | object, listed: int | None, asked: int | None, hosts: str
) -> None:
    made = plan(node(1, gpus=gpus), node(2, gpus=gpus), listed=(listed, listed), slots=asked)
    assert f" -H {hosts} " in made.lines["mpirun"]


def test_gpus_that_a_variable_hides_have_no_slots() -> None:
    made = plan(node(1, gpus=8), node(2, gpus=8, CUDA_VISIBLE_DEVICES="0,1"))
    assert " -H n1:8,n2:2 " in made.lines["mpirun"]


def test_gpus_that_the_slots_leave_idle_are_told() -> None:
    made = plan(node(1, gpus=8), node(2, gpus=8), listed=(8, 4))
    assert made.notes == ("n2 has fewer slots than GPUs: the other GPUs stay idle",)
