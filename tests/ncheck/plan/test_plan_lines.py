"""The lines of a plan: for the MPI that was found, or why there is none."""

from __future__ import annotations

import pytest
from ncheck.facts.mpi import MpiFacts
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node

from .planned import COMPOSE, node, plan


def test_a_user_and_port_of_the_listing_reach_mpiruns_ssh_only_where_all_nodes_agree() -> None:
    facts = (node("eth0 10.1.0.1"), node("eth0 10.1.0.2"))
    agreed = plan(*facts, nodes=(Node("n1", user="ada", port=2022), Node("n2", user="ada", port=2022)))
    assert "--mca plm_rsh_args '-p 2022 -l ada'" in agreed.lines["mpirun"]
    split = plan(*facts, nodes=(Node("n1", user="ada"), Node("n2", user="eve")))
    assert "plm_rsh_args" not in split.lines["mpirun"]
    assert split.notes == ("the nodes have different users, which mpirun cannot pass to ssh: set them in ~/.ssh/config",)


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
    assert six.notes == ("no mpirun line: launchers cannot separate address and slots in fd00::1:8: list host names instead",)


def test_a_host_name_reaches_no_shell_unquoted() -> None:
    hostile = Node("n1;reboot")
    made = plan(node("eth0 10.1.0.1"), node("eth0 10.1.0.2"), nodes=(hostile, Node("n2")))
    assert "-H 'n1;reboot:8,n2:8' " in made.lines["mpirun"]
