"""The launch plan: variables and line with their reasons, what it assumes, and why there is no line."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import INTERACTIVE, PLAIN, MpiDaemonFacts, MpiProgram
from ncheck.facts.mpi_settings import MpiSetting, MpiSettingsFacts
from ncheck.facts.plan_facts import PLAN_FACTS
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node
from ncheck.model.plan import LaunchCommand, LaunchPlan, Setting
from ncheck.parse.nvidia_smi import Gpu
from ncheck.plan.plan import propose
from ncheck.settings import Settings
from ncheck.this_machine.local_host import LocalHost

from .links import linked
from .planned import ACTIVE, AUTOMATIC, COMPOSE, DOCKER, NODES, node, plan


def test_every_fact_that_a_plan_reads_is_declared() -> None:
    assert set(node("eth0 10.1.0.1")) == set(PLAN_FACTS)


def test_where_nccl_is_right_by_itself_nothing_is_set_and_the_plan_says_so() -> None:
    line = (
        "mpirun -np 16 -H n1:8,n2:8 --bind-to none --map-by slot --mca pml ob1 --mca btl '^openib' "
        "--mca btl_tcp_if_include 10.1.0.0/24 --mca oob_tcp_if_include 10.1.0.0/24 "
        "-x NCCL_DEBUG=WARN -x PATH python train.py"
    )
    assert plan(node(DOCKER, "eth0 10.1.0.1"), node(DOCKER, "eth0 10.1.0.2")) == LaunchPlan(
        env={
            "NCCL_SOCKET_IFNAME": Setting(
                None, "not needed, NCCL picks eth0",
                (f"eth0 is in 10.1.0.0/24; NCCL picks eth0 ({AUTOMATIC}): n[1-2]",), pin="=eth0",
            ),
        },
        lines={"mpirun": line},
        command=LaunchCommand(tuple(shlex.split(line)), "mpirun", "Open MPI", "4.1.4", hosts={"n1": 8, "n2": 8}),
        reasons={
            "mpirun": (
                "for Open MPI 4.1.4; 16 ranks (2 nodes x 8 GPUs)",
                "pinned to 10.1.0.0/24: otherwise Open MPI tries every interface, including docker0, and may hang",
            ),
        },
    )  # fmt: skip


def test_a_list_of_excluded_interfaces_counts_where_every_node_has_it() -> None:
    name = "btl_tcp_if_exclude"
    own = MpiSettingsFacts({name: MpiSetting(name, "lo,docker0", file="/etc/openmpi/openmpi-mca-params.conf")})
    one, both = (
        plan(node("eth0 10.1.0.1", MpiSettingsFacts=own), node("eth0 10.1.0.2", MpiSettingsFacts=other)).lines["mpirun"]
        for other in (MpiSettingsFacts({}), own)
    )
    assert ("btl_tcp_if_include" in one, "btl_tcp_if_include" in both) == (True, False)


def test_mpirun_is_allowed_to_run_as_root_where_the_job_or_the_one_who_types_it_is_root() -> None:
    found = linked({"n1": node("eth0 10.1.0.1"), "n2": node("eth0 10.1.0.2")})

    def allowed(*, user_is_root: bool, local_host: LocalHost | None) -> bool:
        made = propose(Cluster(NODES, found), Settings(), user_is_root=user_is_root, local_host=local_host)
        return made.lines["mpirun"].startswith("mpirun --allow-run-as-root ")

    here = {"10.1.0.9": "eth0"}
    assert allowed(user_is_root=True, local_host=None)
    assert allowed(user_is_root=False, local_host=LocalHost(here, root=True))
    assert not allowed(user_is_root=False, local_host=LocalHost(here))


def test_slurm_is_left_out_where_its_variables_are_set_and_the_nodes_are_not_those_of_its_job() -> None:
    found = linked({"n1": node("eth0 10.1.0.1"), "n2": node("eth0 10.1.0.2")})

    def without_slurm(*names: str, place: str = "nodes.txt:1", via: str = "auto") -> bool:
        listed = Cluster(tuple(replace(one, places=(place,)) for one in NODES), found)
        here = LocalHost({"10.1.0.9": "eth0"}, frozenset(names))
        made = propose(listed, Settings(via=via), user_is_root=False, local_host=here)
        return "--mca ras '^slurm' --mca plm '^slurm'" in made.lines["mpirun"]

    assert without_slurm("SLURM_JOBID", "SLURM_NODELIST")
    assert without_slurm("SLURM_JOB_ID")
    assert not without_slurm()
    assert not without_slurm("SLURM_CONF")
    assert not without_slurm("SLURM_JOB_ID", place="SLURM_JOB_NODELIST")
    assert not without_slurm("SLURM_JOB_ID", via="srun")


def test_library_path_is_passed_on_where_a_node_or_this_machine_sets_it() -> None:
    def passed(*names: str, local_host: LocalHost | None = None) -> bool:
        set_ = EnvironmentFacts(dict.fromkeys(names, "/opt/lib"), {})
        found = linked({f"n{n}": node(f"eth0 10.1.0.{n}", EnvironmentFacts=set_) for n in (1, 2)})
        made = propose(Cluster(NODES, found), Settings(), user_is_root=False, local_host=local_host)
        return "-x LD_LIBRARY_PATH" in made.lines["mpirun"]

    assert (passed(), passed("LD_LIBRARY_PATH")) == (False, True)
    assert passed(local_host=LocalHost({"10.1.0.9": "eth0"}, frozenset({"LD_LIBRARY_PATH"})))


def test_a_bridge_in_the_way_makes_it_name_the_card_exactly() -> None:
    made = plan(node(COMPOSE, "eth0 10.1.0.1"), node("eth0 10.1.0.2"), port=2222, root=True)
    assert made.env == {
        "NCCL_SOCKET_IFNAME": Setting(
            "=eth0",
            "currently NCCL would use br-5b1d7c3e9f20 and eth0 on n1; the job's network is 10.1.0.0/24",
            (
                f"eth0 is in 10.1.0.0/24; NCCL picks br-5b1d7c3e9f20 ({AUTOMATIC}): n1",
                f"eth0 is in 10.1.0.0/24; NCCL picks eth0 ({AUTOMATIC}): n2",
            ),
        )
    }
    assert made.lines == {
        "mpirun": "mpirun --allow-run-as-root -np 16 -H n1:8,n2:8 --bind-to none --map-by slot --mca pml ob1 "
        "--mca btl '^openib' --mca btl_tcp_if_include 10.1.0.0/24 --mca oob_tcp_if_include 10.1.0.0/24 "
        "--mca plm_rsh_args '-p 2222' -x NCCL_SOCKET_IFNAME==eth0 -x NCCL_DEBUG=WARN "
        "-x PATH python train.py",
    }


def test_without_rdma_the_fastest_shared_subnet_is_the_jobs() -> None:
    made = plan(
        node("eth0 10.1.0.1 1000 default", "eth1 10.2.0.1 100000"),
        node("eth0 10.1.0.2 1000 default", "eth1 10.2.0.2 100000"),
    )
    assert made.env["NCCL_SOCKET_IFNAME"].value == "=eth1"
    assert "--mca btl_tcp_if_include 10.2.0.0/24" in made.lines["mpirun"]


def test_with_rdma_ranks_may_meet_where_nccl_meets_by_itself() -> None:
    made = plan(
        node("eth0 10.1.0.1 1000 default", "eth1 10.2.0.1 100000", infiniband=ACTIVE),
        node("eth0 10.1.0.2 1000 default", "eth1 10.2.0.2 100000", infiniband=ACTIVE),
    )
    assert made.env["NCCL_SOCKET_IFNAME"].value is None


def test_names_that_differ_are_one_list_where_no_node_has_two_of_them() -> None:
    made = plan(node(COMPOSE, "eno1 10.1.0.1"), node(COMPOSE, "enp3s0 10.1.0.2"))
    assert made.env["NCCL_SOCKET_IFNAME"].value == "=eno1,enp3s0"


def test_names_that_differ_are_set_node_by_node_where_a_list_would_be_read_in_another_order() -> None:
    made = plan(
        node("eth0 192.0.2.1", "eth1 10.1.0.1"),
        node("eth1 198.51.100.2", "eth2 10.1.0.2"),
        node("eth2 203.0.113.3", "eth1 10.1.0.3"),
        nodes=(*NODES, Node("n3")),
    )
    assert made.env["NCCL_SOCKET_IFNAME"].value is None
    assert {node: own["NCCL_SOCKET_IFNAME"].value for node, own in made.per_node.items()} == {
        "n1": "=eth1", "n2": "=eth2", "n3": "=eth1",
    }  # fmt: skip
    assert made.notes == (
        "NCCL_SOCKET_IFNAME on n[1,3]: echo NCCL_SOCKET_IFNAME==eth1 | sudo tee -a /etc/nccl.conf",
        "NCCL_SOCKET_IFNAME on n2: echo NCCL_SOCKET_IFNAME==eth2 | sudo tee -a /etc/nccl.conf",
    )


def test_a_setting_that_leads_astray_is_overruled() -> None:
    astray = EnvironmentFacts({"NCCL_SOCKET_IFNAME": "^docker0"}, {})
    made = plan(node(DOCKER, "eth0 10.1.0.1", environment=astray), node(DOCKER, "eth0 10.1.0.2", environment=astray))
    assert made.env["NCCL_SOCKET_IFNAME"].value == "=eth0"


def test_nodes_that_share_no_subnet_get_no_value_and_are_told_which_check_says_more() -> None:
    made = plan(node("eth0 10.1.0.1"), node("eth0 10.2.0.2"))
    why = "the nodes have no subnet in common: 10.1.0.0/24 on n1, 10.2.0.0/24 on n2; see ncheck explain NC305"
    lines = ("10.1.0.0/24 on n1", "10.2.0.0/24 on n2")
    assert made.env == {"NCCL_SOCKET_IFNAME": Setting(None, why, lines, decided=False)}
    assert "if_include" not in made.lines["mpirun"]


def test_where_routers_join_the_nodes_the_way_out_is_the_jobs() -> None:
    made = plan(node(COMPOSE, "eth0 10.1.0.1 default"), node(COMPOSE, "eth0 10.2.0.2 default"))
    assert made.env["NCCL_SOCKET_IFNAME"].value == "=eth0"
    assert "--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0" in made.lines["mpirun"]


def test_pods_whose_only_way_out_is_a_veth_pair_are_healthy() -> None:
    made = plan(node("eth0 10.244.1.7 veth default"), node("eth0 10.244.1.8 veth default"))
    assert made.env["NCCL_SOCKET_IFNAME"].value is None


def test_gloo_is_told_one_exact_name_where_a_framework_uses_it() -> None:
    torch = InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {"torch": "2.3.1"})
    made = plan(node("eth0 10.1.0.1", InterpreterFacts=torch), node("eth0 10.1.0.2", InterpreterFacts=torch))
    why = "gloo uses the address that the hostname resolves to, often 127.0.1.1; eth0 is in 10.1.0.0/24 on every node"
    assert made.env["GLOO_SOCKET_IFNAME"] == Setting("eth0", why)
    differing = plan(node("eno1 10.1.0.1", InterpreterFacts=torch), node("eth0 10.1.0.2", InterpreterFacts=torch))
    assert differing.env["GLOO_SOCKET_IFNAME"].value is None
    assert {node: own["GLOO_SOCKET_IFNAME"].value for node, own in differing.per_node.items()} == {
        "n1": "eno1", "n2": "eth0",
    }  # fmt: skip


def test_interfaces_that_could_not_be_read_leave_the_value_open() -> None:
    made = plan(node("eth0 10.1.0.1"), node("eth0 10.1.0.2", NicFacts=Unread("no answer")))
    why = "the interfaces of n2 could not be read, so no interface can be set for all nodes"
    assert made.env == {"NCCL_SOCKET_IFNAME": Setting(None, why, ("n2: no answer",), decided=False)}


def test_a_node_that_was_not_reached_stays_in_the_line_and_is_named() -> None:
    lost: Facts = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))}
    made = plan(node("eth0 10.1.0.1"), lost)
    assert "-np 16 -H n1:8,n2:8 " in made.lines["mpirun"]
    assert made.notes == ("n2 is unreachable; assumed to match the other nodes",)


def test_no_plan_is_made_of_nothing() -> None:
    lost: Facts = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))}
    assert plan(lost, lost) == LaunchPlan(
        env={"NCCL_SOCKET_IFNAME": Setting(None, "unknown: all nodes are unreachable", decided=False)},
        notes=("all nodes are unreachable",),
    )


def test_one_machine_alone_needs_no_network() -> None:
    made = plan(node("eth0 10.1.0.1", gpus=2), nodes=(Node("this", places=("local",)),))
    assert made.env == {"NCCL_SOCKET_IFNAME": Setting(None, "one node alone needs no network between nodes")}
    assert made.lines == {
        "mpirun": "mpirun -np 2 -H localhost:2 --bind-to none --map-by slot --mca pml ob1 --mca btl '^openib' "
        "-x NCCL_DEBUG=WARN -x PATH python train.py",
    }


def test_slots_are_those_of_the_list_else_the_gpus_else_one() -> None:
    bare = node("eth0 10.1.0.3", GpuFacts=Absent("no NVIDIA GPU"))
    nodes = (Node("n1", slots=4), Node("n2"), Node("n3"))
    made = plan(node("eth0 10.1.0.1"), node("eth0 10.1.0.2"), bare, nodes=nodes)
    assert "-np 13 -H n1:4,n2:8,n3:1 " in made.lines["mpirun"]


def test_gpus_that_could_not_be_read_are_not_one_and_the_plan_says_so() -> None:
    dark = node("eth0 10.1.0.8", GpuFacts=Unread("nvidia-smi did not end"))
    told = plan(node("eth0 10.1.0.7"), dark)
    assert "-np 16 -H n1:8,n2:8 " in told.lines["mpirun"]
    assert told.notes == ("the GPUs of n2 could not be read; the slots there are assumed to match the other nodes",)
    listed = plan(node("eth0 10.1.0.7"), dark, nodes=(Node("n1"), Node("n2", slots=4)))
    assert "-np 12 -H n1:8,n2:4 " in listed.lines["mpirun"]
    assert listed.notes == ()


def test_an_environment_that_could_not_be_read_is_taken_to_be_empty_and_the_plan_says_so() -> None:
    told = plan(node("eth0 10.1.0.7"), node("eth0 10.1.0.8", environment=Unread("cut off")))
    assert told.notes == ("the environment of n2 could not be read; NCCL's variables are assumed to be unset there",)


def test_a_user_and_port_of_the_listing_reach_mpiruns_ssh_only_where_all_nodes_agree() -> None:
    facts = (node("eth0 10.1.0.1"), node("eth0 10.1.0.2"))
    agreed = plan(*facts, nodes=(Node("n1", user="ada", port=2022), Node("n2", user="ada", port=2022)))
    assert "--mca plm_rsh_args '-p 2022 -l ada'" in agreed.lines["mpirun"]
    split = plan(*facts, nodes=(Node("n1", user="ada"), Node("n2", user="eve")))
    assert "plm_rsh_args" not in split.lines["mpirun"]
    assert split.notes == (
        "the nodes have different users, which mpirun cannot pass to ssh: set them in ~/.ssh/config",
    )


def test_open_mpi_5_has_no_openib_and_wants_names_for_its_daemons() -> None:
    five = MpiFacts("Open MPI", "5.0.11")
    made = plan(node("eno1 10.1.0.1", mpi=five), node("enp3s0 10.1.0.2", mpi=five))
    assert made.lines == {
        "mpirun": "mpirun -np 16 -H n1:8,n2:8 --bind-to none --map-by slot --mca pml ob1 "
        "--mca btl_tcp_if_include 10.1.0.0/24 --mca oob_tcp_if_include eno1,enp3s0 "
        "-x NCCL_DEBUG=WARN -x PATH python train.py",
    }


def test_open_mpi_3_takes_the_line_of_4() -> None:
    three, four = MpiFacts("Open MPI", "3.1.3"), MpiFacts("Open MPI", "4.1.4")
    lines = [plan(*(node(f"eth0 10.1.0.{i}", mpi=mpi) for i in (1, 2))).lines for mpi in (three, four)]
    assert lines[0] == lines[1]


def test_mpich_and_intel_mpi_have_lines_of_their_own() -> None:
    lines = []
    for implementation in ("MPICH", "Intel MPI"):
        mpi = MpiFacts(implementation, "4.0.2")
        made = plan(node(COMPOSE, "eth0 10.1.0.1", mpi=mpi), node(COMPOSE, "eth0 10.1.0.2", mpi=mpi), port=2222)
        lines.append(made.lines["mpiexec"])
    rest = " -iface eth0 -genv NCCL_SOCKET_IFNAME '=eth0' -genv NCCL_DEBUG WARN python train.py"
    assert lines == [
        "env 'HYDRA_LAUNCHER_EXTRA_ARGS=-p 2222' mpiexec -launcher ssh -hosts n1:8,n2:8 -n 16" + rest,
        "env 'I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-p 2222' mpiexec -bootstrap ssh -hosts n1,n2 -ppn 8 -n 16" + rest,
    ]


def test_a_prefix_that_the_line_needs_is_in_the_command_too() -> None:
    def daemons(found_by: str) -> MpiDaemonFacts:
        mpirun, orted = (
            MpiProgram(f"/opt/openmpi/bin/{name}", f"/opt/openmpi/bin/{name}", (found_by,), "Open MPI", "4.1.4")
            for name in ("mpirun", "orted")
        )
        return MpiDaemonFacts(mpirun, (orted,))

    found = (daemons(PLAIN), daemons(INTERACTIVE))
    made = plan(*(node(f"eth0 10.1.0.{i}", MpiDaemonFacts=facts) for i, facts in enumerate(found, 1)))
    assert made.command
    assert made.command.prefix == "/opt/openmpi"
    assert made.lines["mpirun"].startswith("mpirun --prefix /opt/openmpi -np 16 ")
    assert made.reasons["mpirun"][-1] == (
        "--prefix /opt/openmpi: on some node a plain login does not find Open MPI's daemon"
    )


def test_intel_mpi_has_no_line_for_slots_that_differ() -> None:
    mpi = MpiFacts("Intel MPI", "2021.18")
    made = plan(node("eth0 10.1.0.1", mpi=mpi), node("eth0 10.1.0.2", mpi=mpi, gpus=4))
    assert made.lines == {}
    assert made.notes == ("no mpirun line: Intel MPI takes one -ppn for all nodes, but their slots differ",)


@pytest.mark.parametrize(
    ("theirs", "note"),
    [
        (MpiFacts("Open MPI", "5.0.2"), "no mpirun line: MPI differs: Open MPI 4.1 on n1, Open MPI 5.0 on n2 (1 to 1)"),
        (MpiFacts("MPICH", "4.1.2"), "no mpirun line: MPI differs: Open MPI 4.1 on n1, MPICH 4.1 on n2 (1 to 1)"),
        (Unread("mpirun --version hung"), "no mpirun line: MPI could not be read on n2: mpirun --version hung"),
        (Absent("not there"), "no mpirun line: n2 has no mpirun on the PATH of a non-interactive login"),
    ],
)
def test_an_mpi_that_is_not_the_same_everywhere_has_no_line_and_a_reason(theirs: object, note: str) -> None:
    made = plan(node("eth0 10.1.0.1"), node("eth0 10.1.0.2", mpi=theirs))
    assert (made.lines, made.notes) == ({}, (note,))


def test_other_launchers_and_names_that_look_like_addresses_have_no_line_and_a_reason() -> None:
    spectrum = MpiFacts("Spectrum MPI", "10.4")
    made = plan(node("eth0 10.1.0.1", mpi=spectrum), node("eth0 10.1.0.2", mpi=spectrum))
    assert made.notes == ("no mpirun line: ncheck does not support Spectrum MPI 10.4",)
    six = plan(node("eth0 10.1.0.1"), node("eth0 10.1.0.2"), nodes=(Node("fd00::1"), Node("n2")))
    assert six.notes == (
        "no mpirun line: launchers cannot separate address and slots in fd00::1:8: list host names instead",
    )


def test_a_host_name_reaches_no_shell_unquoted() -> None:
    hostile = Node("n1;reboot")
    made = plan(node("eth0 10.1.0.1"), node("eth0 10.1.0.2"), nodes=(hostile, Node("n2")))
    assert "-H 'n1;reboot:8,n2:8' " in made.lines["mpirun"]


NO_MPI = Absent("no mpirun")


def host(number: int, *, mpi: object = None, packages: str = "", gpus: int = 0) -> Facts:
    """Make a node with these packages in its interpreter."""
    cards = GpuFacts(tuple(Gpu(i, "T4") for i in range(gpus)), "550", "12.4", "nvml") if gpus else Absent("no GPU")
    python = InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", dict.fromkeys(packages.split(), "1.0"))
    return node(f"eth0 10.1.0.{number} default", mpi=mpi, GpuFacts=cards, InterpreterFacts=python)


def test_the_launcher_is_the_mpirun_that_was_found_else_torchrun_where_torch_lives() -> None:
    def found(**changed: Any) -> list[str]:
        return list(plan(host(1, **changed), host(2, **changed)).lines)

    assert found(packages="torch") == ["mpirun"]
    assert found(mpi=NO_MPI, packages="torch") == ["torchrun"]
    assert found(mpi=NO_MPI) == []


def test_where_mpirun_is_asked_for_and_none_is_there_no_line_is_made_up() -> None:
    made = plan(host(1, mpi=NO_MPI), host(2, mpi=NO_MPI), launcher="mpirun")
    assert made.lines == {}
    assert made.notes == ("no mpirun line: no mpirun on the PATH of a non-interactive login",)


def test_a_framework_that_is_not_there_is_told_and_the_line_given_all_the_same() -> None:
    made = plan(host(1, packages="torch"), host(2), launcher="torchrun")
    assert "torchrun" in made.lines
    assert made.notes == ("no torch in the interpreter of n2; --python PATH selects another interpreter",)


def test_a_profile_that_no_line_takes_is_told() -> None:
    made = plan(host(1), host(2), launcher="srun", profile="numa")
    assert made.notes == ("--profile numa only affects Open MPI's mpirun; it is ignored here",)
    assert plan(host(1), host(2), launcher="mpirun", profile="numa").notes == ()


def test_a_port_that_no_line_takes_is_told() -> None:
    made = plan(host(1), host(2), launcher="srun", master_port=12345)
    assert made.notes == ("--master-port 12345 is checked, but srun's line has no such option",)
    assert (
        plan(host(1, packages="torch"), host(2, packages="torch"), launcher="torchrun", master_port=12345).notes == ()
    )


def test_tensorflow_is_said_to_start_one_worker_a_node() -> None:
    made = plan(host(1, packages="tensorflow", gpus=8), host(2, packages="tensorflow", gpus=8), launcher="tensorflow")
    assert made.reasons["tensorflow"][0] == "2 workers, one per node, using all of its GPUs"


def test_users_that_differ_are_left_to_ssh_and_the_rest_is_told() -> None:
    nodes = (Node("n1", port=2201), Node("n2", port=2201, user="ada"))
    made = plan(host(1), host(2), nodes=nodes, ssh_config="~/job.conf")
    file = Path("~/job.conf").expanduser()
    assert f"--mca plm_rsh_args '-p 2201 -F {file}'" in made.lines["mpirun"]
    assert made.notes == (f"the nodes have different users, which mpirun cannot pass to ssh: set them in {file}",)


@pytest.mark.parametrize("launcher", ["mpirun", "horovodrun", "deepspeed"])
def test_ports_that_differ_leave_no_line_for_a_launcher_that_logs_in(launcher: str) -> None:
    nodes = (Node("n1"), Node("n2", port=10001))
    made = plan(host(1), host(2), nodes=nodes, launcher=launcher)
    reason = f"the nodes have different ssh ports (10001 and 22), which {launcher} cannot pass to ssh"
    remedy = "write them into ~/.ssh/config, and leave them out of the node list"
    assert (made.lines, made.notes[-1]) == ({}, f"no {launcher} line: {reason}: {remedy}")


def test_ports_that_differ_do_not_matter_to_srun_nor_on_this_machine_itself() -> None:
    apart = (Node("n1"), Node("n2", port=10001))
    assert plan(host(1), host(2), nodes=apart, launcher="srun").lines.keys() == {"srun"}
    itself = (Node("n1", places=("local",)), Node("n2", port=10001))
    assert "-p 10001" in plan(host(1), host(2), nodes=itself).lines["mpirun"]
    assert plan(host(1), host(2), nodes=(Node("n1"), Node("n2", port=22))).lines.keys() == {"mpirun"}


def test_gpus_that_the_slots_leave_idle_are_told() -> None:
    made = plan(host(1, gpus=8), host(2, gpus=8), nodes=(Node("n1", slots=8), Node("n2", slots=4)))
    assert made.notes == ("n2 has fewer slots than GPUs: the other GPUs stay idle",)


def test_a_server_gets_each_nodes_own_address_and_cards_of_different_names() -> None:
    made = plan(node(DOCKER, "eno1 10.1.0.1"), node(DOCKER, "eth0 10.1.0.2"), launcher="vllm", program=("org/model",))
    why = "the node's own address in 10.1.0.0/24"
    gloo = "gloo uses the address that the hostname resolves to, often 127.0.1.1"
    names = "the interfaces in 10.1.0.0/24 have different names"
    assert {name: (one.value, one.reason) for name, one in made.env.items() if name != "NCCL_SOCKET_IFNAME"} == {
        "GLOO_SOCKET_IFNAME": (None, f"{gloo}; {names}: set on each node separately"),
        "VLLM_HOST_IP": (None, f"{why}: set on each node separately"),
    }
    assert made.per_node == {
        "n1": {"GLOO_SOCKET_IFNAME": Setting("eno1", "it is in 10.1.0.0/24"), "VLLM_HOST_IP": Setting("10.1.0.1", why)},
        "n2": {"GLOO_SOCKET_IFNAME": Setting("eth0", "it is in 10.1.0.0/24"), "VLLM_HOST_IP": Setting("10.1.0.2", why)},
    }
    first, second = (
        f"env NCCL_DEBUG=WARN GLOO_SOCKET_IFNAME={name} VLLM_HOST_IP={ip} ray start "
        for name, ip in (("eno1", "10.1.0.1"), ("eth0", "10.1.0.2"))
    )
    assert made.lines == {
        "vllm": f"# on n1:\n{first}--head --port=6379 --node-ip-address=10.1.0.1\n"
        f"# on n2:\n{second}--address=10.1.0.1:6379 --node-ip-address=10.1.0.2\n"
        "# then on n1:\nenv NCCL_DEBUG=WARN VLLM_HOST_IP=10.1.0.1 vllm serve org/model --tensor-parallel-size 8 "
        "--pipeline-parallel-size 2 --distributed-executor-backend ray"
    }


def test_a_release_of_vllm_is_read_on_every_node() -> None:
    new, old = (
        InterpreterFacts("/usr/bin/python3", "3.11.2", "", {"vllm": version}) for version in ("0.12.0rc1", "0.9.2")
    )
    nics = ("eth0 10.1.0.1", "eth0 10.1.0.2")
    both = plan(*(node(nic, InterpreterFacts=new) for nic in nics), launcher="vllm")
    one = plan(*(node(nic, InterpreterFacts=own) for nic, own in zip(nics, (new, old), strict=True)), launcher="vllm")
    assert ("--nnodes 2 --node-rank 1" in both.lines["vllm"], "ray start" in one.lines["vllm"]) == (True, True)


@pytest.mark.parametrize(("launcher", "hcas", "wanted"), [
    ("vllm", None, {"UCX_NET_DEVICES": "eth0", "VLLM_HOST_IP": None, "VLLM_NIXL_SIDE_CHANNEL_HOST": None}),
    ("vllm", ACTIVE, {"UCX_NET_DEVICES": "mlx5_0:1", "VLLM_HOST_IP": None, "VLLM_NIXL_SIDE_CHANNEL_HOST": None}),
    ("sglang", ACTIVE, {"UCX_NET_DEVICES": "mlx5_0:1", "SGLANG_HOST_IP": None}),
    ("torchrun", ACTIVE, {}),
])  # fmt: skip
def test_nixl_has_variables_of_its_own(launcher: str, hcas: object, wanted: dict[str, str | None]) -> None:
    program = ("m.py" if launcher == "torchrun" else "org/model", "--kv", '{"kv_connector": "NixlConnector"}')
    made = plan(*(node(f"eth0 10.1.0.{own}", infiniband=hcas) for own in (1, 2)), launcher=launcher, program=program)
    others = {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}
    assert {name: one.value for name, one in made.env.items() if name not in others} == wanted
    assert all(made.per_node[n][name].value == f"10.1.0.{n[1]}" for n in made.per_node for name in made.per_node[n])


def test_one_node_serves_alone_and_needs_no_address() -> None:
    made = plan(node("eth0 10.1.0.1"), nodes=NODES[:1], launcher="vllm")
    assert made.lines == {"vllm": "env NCCL_DEBUG=WARN vllm serve MODEL --tensor-parallel-size 8"}
