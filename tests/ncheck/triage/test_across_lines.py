"""What only several lines show together: ranks that differ."""

from __future__ import annotations

import pytest
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.log_clues import clues_in


def causes(*lines: str) -> list[str]:
    return [clue.cause for clue in clues_in(lines)]


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (("n1:1:2 [0] NCCL INFO NCCL version 2.18.3+cuda12.2", "n2:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.2"),
         "version_mismatch"),
        (("[rank0]: DistBackendError: NCCL error in: NCCLUtils.hpp:219, NCCL version 2.18.1",
          "[rank1]: DistBackendError: NCCL error in: NCCLUtils.hpp:219, NCCL version 2.17.1"), "version_mismatch"),
        (("n1:1:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
          "n2:1:2 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so"), "net_plugin"),
        (("n1:1:2 [0] NCCL INFO Using network IB", "n2:1:2 [0] NCCL INFO Using network Socket"), "net_plugin"),
        (("n1:1:2 [0] NCCL INFO Using network IB", "n2:1:2 [0] NCCL INFO Failed to open libibverbs.so[.1]",
          "n2:1:2 [0] NCCL INFO Using network Socket"), "ibverbs_missing"),
        (("[PG 0 Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, N",
          "[PG 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, N"),
         "collective_mismatch"),
        (("NCCL error in: ProcessGroupNCCL.cpp:260, unhandled cuda error",
          "n1:1:2 [2] NCCL INFO Channel 00 : 2[2] -> 3[3] via P2P/IPC",
          "n1:1:2 [6] NCCL INFO Channel 00 : 7[7] -> 8[0] via P2P/IPC"), "same_hostname"),
        (("[0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
          "n1:1:2 [0] NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>"), "ibverbs_missing"),
        (("n1:1:2 [0] NCCL INFO Bootstrap : Using virbr0:192.168.122.1<0>",
          "n2:1:2 [0] NCCL INFO Bootstrap : Using virbr0:192.168.122.1<0>"), "wrong_nic"),
        (("# nThread 1 nGpus 1 minBytes 8 maxBytes 1024", "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024",
          "#  Rank  0 Group  0 Pid   5338 on   n1 device  0 [0x81] NVIDIA A100",
          "#  Rank  0 Group  0 Pid   5339 on   n2 device  0 [0x81] NVIDIA A100"), "launcher_mismatch"),
        (("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2", "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]",
          "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2"), "rendezvous_misconfig"),
        (("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2",
          "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8"), "rendezvous_misconfig"),
        (("Training in distributed mode with multiple processes. Process 0, total 2, device cuda:0.",
          "Training in distributed mode with multiple processes. Process 0, total 2, device cuda:1."),
         "rendezvous_misconfig"),
        (("n1:1:2 [0] NCCL INFO Bootstrap : Using eno1:10.1.0.1<0>", "Call to connect timeout : Connection timed out",
          "n2:1:2 [0] NCCL INFO Bootstrap : Using enp4s0:192.168.7.2<0>"), "nic_names_differ"),
        (("kernel: mlx5_core 0000:3b:00.0: mlx5_0: Port: 1 Link DOWN",), "ib_fabric"),
        (("kernel: mlx5_core 3b:00.0 ens1f0: Link up", "kernel: mlx5_core 3b:00.0 ens1f0: Link down"), "ib_fabric"),
        (("kernel: mlx5_core 3b:00.0 mlx5_0: Port: 1 Link DOWN", "mlx5_core 3b:00.0 mlx5_0: Port: 1 Link ACTIVE",
          "NCCL WARN NET/IB : Got completion from peer 10.0.1.23<4> with status=12 localGid fe80::1"), "ib_fabric"),
        (("kernel: i40e 0000:5e:00.0 ens1f0: NIC Link is Down",), "ib_fabric"),
        (("kernel: bond0: (slave ens1f0): link status definitely down, disabling slave",), "ib_fabric"),
        (("kernel: IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready",), "ib_fabric"),
        (("n1:1:2 [0] NCCL INFO Using network IB", "n1:1:2 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0",
          "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open shared"),
         "ibverbs_missing"),
    ],
)  # fmt: skip
def test_ranks_that_differ_are_detected(lines: tuple[str, ...], cause: str) -> None:
    assert causes(*lines)[0] == cause


@pytest.mark.parametrize(
    "lines",
    [
        ("n1:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.2", "n2:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4"),
        ("NCCL version 2.18.3+cuda12.2", "NCCL version 2.21.5+cuda12.2"),
        ("NCCL WARN Failed to open libibverbs.so[.1]", "NCCL INFO NET/Socket : Using [0]eth0:10.3.0.1<0>"),
        ("NCCL WARN Failed to open libibverbs.so[.1]", "NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>",
         "NCCL INFO NCCL_IB_DISABLE set by environment to 1."),
        ("n1:1:2 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>", "n1:1:3 [1] Bootstrap : Using lo:127.0.0.1<0>"),
        ("n1:1:2 [0] NCCL INFO Using network IB", "n2:1:2 [0] NCCL INFO Using network IB"),
        ("NCCL INFO Channel 00 : 3[3] -> 4[0] via P2P/IPC", "NCCL INFO Channel 01 : 0[3] -> 1[2] via P2P/IPC",
         "NCCL INFO Connected all rings"),
        ("kernel: mlx5_core 3b:00.0 mlx5_0: Port: 1 Link DOWN", "mlx5_core 3b:00.0 mlx5_0: Port: 1 Link ACTIVE"),
        ("kernel: e1000e eth0: NIC Link is Down", "kernel: e1000e eth0: NIC Link is Up 1000 Mbps Full Duplex"),
        ("IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready", "IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready"),
        ("GLOBAL_RANK: 0, MEMBER: 1/2", "GLOBAL_RANK: 1, MEMBER: 2/2", "GLOBAL_RANK: 0, MEMBER: 1/2"),
        ("GLOBAL_RANK: 0, MEMBER: 1/4", *("step done" for _ in range(300)), "GLOBAL_RANK: 0, MEMBER: 1/4"),
        ("GLOBAL_RANK: 0, MEMBER: 1/4", "GLOBAL_RANK: 0, MEMBER: 1/4", "step 1 loss 0.2", "step 2 loss 0.2"),
        ("n1:1:2 [0] NCCL INFO Bootstrap : Using eno1:10.1.0.1<0>", "n2:1:2 Bootstrap : Using eth0:10.2.0.1<0>"),
        ("# nThread 1 nGpus 1 minBytes 8 maxBytes 1024", "#  Rank  0 Group  0 Pid   5338 on   n1 device  0 [0x81] A100",
         "# Avg bus bandwidth    : 0", "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024",
         "#  Rank  0 Group  0 Pid   5339 on   n1 device  0 [0x81] A100"),
    ],
)  # fmt: skip
def test_ranks_that_agree_and_consecutive_runs_are_no_fault(lines: tuple[str, ...]) -> None:
    assert causes(*lines) == []


def test_two_groups_may_wait_in_different_collectives() -> None:
    lines = [
        f"[PG {group} Rank {group}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType={kind}, N"
        for group, kind in ((0, "ALLREDUCE"), (1, "BROADCAST"))
    ]
    assert causes(*lines) == ["slow_rank_timeout"]


def timed_out(rank: int, number: int, operation: str = "ALLREDUCE", size: int = 8, group: str = "PG 0") -> str:
    return (
        f"[rank{rank}]:[E] [{group} Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran"
    )


def test_the_rank_with_the_lowest_sequence_number_called_fewer_collectives() -> None:
    found = clues_in([timed_out(0, 20), timed_out(1, 20), timed_out(2, 19), timed_out(3, 20)])[0]
    assert (found.cause, found.ranks[0], found.grade) == ("collective_mismatch", 2, Grade.POSSIBLE)


def test_the_group_may_stand_in_the_line_after_that_of_the_collective() -> None:
    at_work = (
        "[rank{0}]:[E] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Timeout at NCCL work: {1}, last enqueued NCCL work: 127"
    )
    lines = [timed_out(rank, number, group="") for rank, number in ((0, 122), (1, 126))]
    found = clues_in([*lines, at_work.format(0, 122), at_work.format(1, 126)])[0]
    assert (found.cause, found.ranks) == ("collective_mismatch", (0,))
    assert causes(*lines) == ["slow_rank_timeout"]


def test_ranks_that_pass_other_sizes_to_one_collective_do_not_match() -> None:
    found = clues_in([timed_out(0, 20), timed_out(1, 20, size=9)])[0]
    assert (found.cause, found.grade) == ("collective_mismatch", Grade.LIKELY)


@pytest.mark.parametrize(
    "lines",
    [
        (timed_out(0, 20), timed_out(1, 20)),
        (timed_out(0, 20), timed_out(1, 7, group="PG 1")),  # each group counts its own
        (timed_out(0, 20, "BROADCAST"), timed_out(1, 19, "BROADCAST")),  # the root leaves early
        (timed_out(0, 20), timed_out(0, 21)),  # one rank
    ],
)
def test_ranks_that_wait_in_one_collective_only_wait(lines: tuple[str, ...]) -> None:
    assert causes(*lines) == ["slow_rank_timeout"]


INFO = "n1:7:8 [0] NCCL INFO "
VETH = f"{INFO}NET/Socket : Using [0]eno1:10.1.0.1<0> [1]veth3f9a1c2:fe80::42:acff:fe11:2%veth3f9a1c2<0>"
OTHER_VETH = VETH.replace("n1:", "n2:").replace("10.1.0.1", "10.1.0.2").replace("veth3f9a1c2", "veth77b1d0e")
STARTED = f"{INFO}comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE"
DOCKER0 = f"{INFO}NET/Socket : Using [0]docker0:172.17.0.1<0>"


def wrong_nic(*lines: str) -> Clue:
    found = clues_in(lines)[0]
    assert found.cause == "wrong_nic", found
    return found


def test_an_interface_beyond_the_first_that_leads_nowhere_is_named_with_the_line_that_leaves_it_out() -> None:
    also = "NCCL also sends data over veth3f9a1c2 (fe80::42:acff:fe11:2), which no other node can reach"
    for failing in (
        "n1:7:8 [0] NCCL WARN Connect to 10.1.0.2<4021> failed : Connection timed out",
        "n1:7:8 [0] misc/socket.cc:465 NCCL WARN Net : Connect to fe80::9%13<4021> failed : Network is unreachable",
        "n1:7:8 [0] misc/socket.cc:479 NCCL WARN socketStartConnect: exceeded timeouts (3)",
        "n1:7:8 [0] misc/socket.cc:512 NCCL WARN socketPollConnect: exceeded retries (20000)",
        f"{INFO}Call to connect returned Connection timed out, retrying",
        "[rank1]: RuntimeError: NCCL error in: NCCLUtils.hpp:219, unhandled system error, NCCL version 2.19.3",
    ):
        found = wrong_nic(VETH, failing)
        assert (found.meaning, found.grade, found.fix) == (
            also, Grade.LIKELY, "echo NCCL_SOCKET_IFNAME==eno1 >> ~/.nccl.conf",
        )  # fmt: skip
    for last in (VETH, f"{INFO}Launch mode Parallel", STARTED):
        for start in (VETH, VETH.removeprefix(INFO)):
            found = wrong_nic(start, last.removeprefix(INFO) if start != VETH else last)
            assert (found.meaning, found.grade, found.fix) == (
                also, Grade.POSSIBLE, "echo NCCL_SOCKET_IFNAME==eno1 >> ~/.nccl.conf",
            )  # fmt: skip
    channel = f"{INFO}Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/1"
    found = wrong_nic(VETH, OTHER_VETH, channel, STARTED)
    assert (found.evidence, found.grade, found.nodes) == (
        (VETH, OTHER_VETH, channel), Grade.LIKELY, ("n1", "n2"),
    )  # fmt: skip


def test_each_kind_of_interface_that_leads_nowhere_counts_beside_a_good_one() -> None:
    for name, address in (
        ("virbr0", "192.168.122.1"), ("br-9f2c41d07ab3", "172.19.0.1"), ("usb0", "169.254.3.1"),
        ("enp0s20f0u1u6", "169.254.95.120"), ("cali12ab34cd", "fe80::ecee:eeff:feee:eeee%cali12ab34cd"),
    ):  # fmt: skip
        line = f"{INFO}NET/Socket : Using [0]{name}:{address}<0> [1]eno1:10.1.0.1<0> [2]{name}:{address}<0>"
        assert (
            wrong_nic(line.replace(f"[0]{name}:{address}<0> [1]", "[0]")).fix
            == "echo NCCL_SOCKET_IFNAME==eno1 >> ~/.nccl.conf"
        )
    for name in ("$(id)", "a&b", "x" * 16):
        assert wrong_nic(VETH.replace("eno1", name)).fix == 'eval "$(ncheck plan nodes.txt --for env)"'


def test_a_bridge_with_one_address_on_two_nodes_is_wrong_also_after_nccl_started() -> None:
    found = wrong_nic(DOCKER0, DOCKER0.replace("n1:", "n2:"), STARTED, f"{INFO}Launch mode Parallel")
    assert (found.meaning, found.grade) == (
        "NCCL chose docker0 (172.17.0.1), which no other node can reach", Grade.LIKELY,
    )  # fmt: skip


def test_interfaces_that_do_no_harm_are_no_fault() -> None:
    steps = ("step 1 loss 0.3", "step 2 loss 0.2")
    for lines in (
        (VETH, STARTED, *steps),
        (DOCKER0, DOCKER0.replace("n1:", "n2:"), STARTED, *steps),
        (VETH, OTHER_VETH, f"{INFO}Channel 00 : 1[0] -> 0[0] [receive] via NET/Socket/1", "Training completed."),
        (f"{INFO}NET/Socket : Using [0]veth0:10.244.0.3<0>", STARTED),  # all that the container has
        (f"{INFO}NET/Socket : Using [0]eno1:10.1.0.1<0> [1]eno2:10.2.0.1<0>", STARTED),
        (f"{INFO}NET/Socket : Using [0]eno1:10.1.0.1<0> [1]veth0:10.9.0.1<0>", STARTED),
        (f"{INFO}NET/IB : Using [0]mlx5_0:1/IB ; OOB eno1:10.1.0.1<0>", VETH, STARTED),
        (f"{INFO}Bootstrap : Using [0]eno1:10.1.0.1<0> [1]veth3f9a1c2:fe80::1%veth3f9a1c2<0>", STARTED),
        (VETH, f"{INFO}comm 0x1 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0", STARTED),
        (VETH, f"{INFO}Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", STARTED),
    ):
        assert causes(*lines) == [], lines


def test_a_log_that_ends_in_the_start_of_one_mechanism_names_it() -> None:
    nvls = f"{INFO}NVLS Creating Multicast group nranks 8 size 2097152 on rank 0"
    p2p = f"{INFO}Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    assert [(one.cause, one.grade, one.fix, one.evidence) for one in clues_in([p2p, nvls, "", ""])] == [
        ("nvls_failure", Grade.POSSIBLE, "export NCCL_NVLS_ENABLE=0", (nvls,))
    ]
    assert [(one.cause, one.grade, one.fix) for one in clues_in([nvls, p2p])] == [
        ("p2p_acs_iommu", Grade.POSSIBLE, "export NCCL_P2P_DISABLE=1")
    ]
    assert causes(nvls, p2p, f"{INFO}Connected all rings") == causes(nvls, STARTED, p2p) == []
    assert causes("n1:7:8 [0] NCCL WARN Cuda failure 2 'out of memory'", nvls) == ["gpu_oom"]
    assert causes(f"{INFO}NVLS multicast support is available on dev 0") == []


HOSTS = "Waiting for the hosts to acknowledge."
TASKS = ("DEADLINE_EXCEEDED: Barrier timed out. Id: step.1.", "# of tasks that reached the barrier: 2/4.",
         "The first task at the barrier: /job:jax_worker/replica:0/task:3. Some timed out task names:",
         "/job:jax_worker/replica:0/task:0", "/job:jax_worker/replica:0/task:2", "", "RPC: Barrier")  # fmt: skip
PLACE = "Error: No available node types can fulfill resource request {'CPU': 1.0, 'node:192.168.1.10': 0.001}"


def test_what_waits_for_hosts_tasks_and_nodes_is_named() -> None:
    (found,) = clues_in(["Attempted to launch horovod task servers.", HOSTS])
    assert (found.cause, found.grade, found.others) == (
        "firewall", Grade.POSSIBLE, ("nic_names_differ", "ssh_auth", "hostname_loopback"),
    )  # fmt: skip
    assert causes(HOSTS, "Notified all the hosts that the registration is complete.") == []
    (found,) = clues_in(TASKS)
    assert (found.cause, found.grade, found.ranks) == ("slow_rank_timeout", Grade.POSSIBLE, (0, 2))
    assert found.meaning == "tasks 0, 2 did not come to a barrier that the others wait at: look at their logs"
    found = clues_in(["Local node IP: 10.1.0.1", PLACE])[0]
    assert (found.cause, found.grade) == ("wrong_nic", Grade.LIKELY)
    assert causes("Local node IP: 192.168.7.1", PLACE) == causes(PLACE) == ["launcher_mismatch"]
