"""What NCCL's TUNING, GRAPH, CHANNEL and ENV lines say of its choice: notes, and a cause only where ranks differ."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ncheck.triage.logs import LogReport, examine_logs

NICS = "NET/IB : Using " + " ".join(f"[{nic}]mlx5_{nic}:1/IB" for nic in range(8)) + " [RO]; OOB eth0:10.1.0.1<0>"
RINGS = "16, bw 24.000000/24.000000, type NVL/PIX"
NEAR = "NET/5 :GPU/0-4000 (6/10.0/SYS) GPU/0-84000 (4/24.0/PIX) CPU/0-0 (4/10.0/SYS) "
TABLE = "  AllReduce |  10.4/  43.6 |  21.5/   {0} |  32.4/ 165.6 |  10.2/  94.0 |  25.4/   {0} |  28.8/ 240.0 |"
CHANNELS = "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer"
STEP = "iteration 10/ 100 | consumed samples: 5120 | lm loss: 1.1E+01\n"
WATCHDOG = (
    "[rank8]:[E822 10:30:00.1 ProcessGroupNCCL.cpp:607] [Rank 8] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600034 ms\n"
)


def sends(nics: int, end: str = "/GDRDMA") -> list[str]:
    return [f"Channel {at:02d}/0 : 0[0] -> 8[0] [send] via NET/IB/{at % nics}{end}" for at in range(16)] + [
        "Connected all rings, use ring PXN 0 GDR 1"
    ]


def rank(number: int, *lines: str, rings: str = RINGS) -> str:
    """Return the log of the first rank of node01, 0, or of node02, 8."""
    of = f"node0{1 + number // 8}:{100 + number}:{200 + number} [0] NCCL INFO"
    start = (
        f"ncclCommInitRank comm 0x1 rank {number} nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init START",
        f"comm 0x1 rank {number} nRanks 16 nNodes 2 localRanks 8 localRank {number % 8} MNNVL 0",
        f"Pattern 4, crossNic 0, nChannels {rings}, sameChannels 1",
    )
    return "".join(f"{of} {line}\n" for line in (*start, *lines))


def report(folder: Path, *texts: str) -> LogReport:
    (folder / "job.log").write_text("".join(texts), encoding="utf-8")
    return examine_logs([str(folder / "job.log")], io.BytesIO())


def notes(folder: Path, *texts: str) -> tuple[str, ...]:
    return report(folder, *texts).notes


def test_the_choice_of_each_operation_is_said_by_size_in_the_forms_of_every_release(tmp_path: Path) -> None:
    named = [
        f"AllReduce: {1 << power} Bytes -> Algo {'TREE' if power < 18 else 'RING'} proto"
        f" {'LL' if power < 16 else 'LL128' if power < 23 else 'SIMPLE'} channel{{Lo..Hi}}={{0..15}}"
        for power in range(3, 28)
    ]
    (note,) = notes(tmp_path, rank(0, *named))
    assert note == (
        "NCCL chose: all-reduce: Tree LL 8 B to 32 KiB, Tree LL128 64 KiB to 128 KiB, Ring LL128 256 KiB to 4 MiB,"
        " Ring Simple 8 MiB to 128 MiB"
    )
    numbered = ("4 Bytes -> Algo 0 proto 0 time 25.200462", "131072 Bytes -> Algo 0 proto 1 time 51.603912")
    assert notes(tmp_path, rank(0, *numbered)) == ("NCCL chose: Tree LL 4 B, Tree LL128 128 KiB",)
    both = (
        "AllGather: 65536 Bytes -> Algo 6 proto 2 time 2860.2",
        "AllGather: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}",
        "AllReduce: 2097152 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}",
        "AllReduce: 9 Bytes -> Algo 77 proto 2 time 1", "AllReduce: 9 Bytes -> Algo RING proto FUTURE",
    )  # fmt: skip
    assert notes(tmp_path, rank(0, *both)) == (
        "NCCL chose: all-gather: PAT Simple or Ring LL 64 KiB; all-reduce: NVLS Simple 2 MiB",
    )


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        (rank(0), rank(8, rings="2, bw 24.0/24.0, type NVL/PIX"),
         "node02 has 2 channels for rings, the others 16: all use the fewest"),
        (rank(0), rank(8, rings="16, speed 24.0/6.0, type NVL/PIX"),
         "node02 counts on 6 GB/s per channel, the others on 24: all do then"),
        (rank(0), rank(8, rings="16, bw 24.0/24.0, type NVL/SYS"), "node02 reaches its NICs by SYS, the others by PIX"),
        (rank(0, *sends(8), NEAR, rings="8, bw 10.0/10.0, type NVL/SYS"), "",
         "the rings of node01 reach NICs by SYS, through the CPU, although NET/5 is at PIX of a GPU"),
        (rank(0, NICS, rings="4, bw 24.0/24.0, type NVL/PIX"), "", "node01 has 4 channels for rings and 8 NICs"),
        (rank(0, NICS, *sends(1)), rank(8, NICS, *sends(1)), "node[01-02] sends over 1 of 8 NICs"),
        (rank(0, NICS, *sends(8)), rank(8, NICS, *sends(8, "")),
         "no GPUDirect RDMA on node02: data goes through the memory of the host"),
        (rank(0, TABLE.format("0.0")), "", "the protocol LL128 is off on node01, although the GPUs have NVLink"),
        (rank(0, "NVLS multicast support is available on dev 0"),
         rank(8, "NVLS multicast support is not available on dev 0"),
         "NVLS is not available on node02, but on the other nodes: no node can use it"),
        (rank(0, "NCCL_ALGO set by environment to Ring", "NCCL_NVLS_ENABLE set by environment to 0."), "",
         "NCCL_ALGO=Ring and NCCL_NVLS_ENABLE=0: NCCL has less to choose from"),
        (rank(0, "NCCL_MAX_NCHANNELS set by environment to 4."), "",
         "NCCL_MAX_NCHANNELS=4: NCCL has less to choose from"),
        (rank(0, "NCCL_MAX_CTAS set by environment to 16.", CHANNELS), "",
         "NCCL_MAX_CTAS=16: NCCL has less to choose from"),
    ],
)  # fmt: skip
def test_what_makes_the_choice_slower_is_a_note_and_a_job_that_works_stays_healthy(
    tmp_path: Path, first: str, second: str, note: str
) -> None:
    found = report(tmp_path, first, second, STEP)
    assert (found.notes, found.healthy, found.wrong) == ((f"may cost speed: {note}",), True, False)


@pytest.mark.parametrize(
    "texts",
    [
        (rank(0, NICS, *sends(8), TABLE.format("9.9")), rank(8, NICS, *sends(8))),
        # the network between one node's GPUs means nothing; PCIe does without LL128 and NVLS
        (rank(0, TABLE.format("0.0"), NEAR, "NVLS multicast support is not available on dev 0",
              rings="2, bw 6.0/6.0, type PHB/SYS"),),
        # no rank connected its rings yet; sockets know neither GPUDirect RDMA nor HCAs
        (rank(0, NICS, sends(1)[0]),), (rank(0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"),),
        # no line says which communicator it is
        (rank(0).replace("commId", "id"), rank(8, rings="2, bw 6.0/6.0, type NVL/PIX").replace("commId", "id")),
        # two communicators of one job; of a smaller one, and of one on one node, fewer channels are enough
        (rank(0, NICS, rings="2, bw 24.0/24.0, type NVL/PIX").replace("localRanks 8", "localRanks 2"),),
        (rank(0, NICS, rings="2, bw 24.0/24.0, type NVL/PIX").replace("nNodes 2", "nNodes 1"),),
        (rank(0), rank(8, rings="2, bw 6.0/6.0, type NVL/PIX").replace("0xab", "0xcd")),
        (rank(0, "NCCL_NVLS_ENABLE set by environment to 2.", "NCCL_P2P_DISABLE set by environment to 0."),),
        # more channels than NCCL has by itself are no limit
        (rank(0, "NCCL_MAX_NCHANNELS set by environment to 64."),),
        (rank(0, "NCCL_MAX_NCHANNELS set by environment to 24.", "NCCL_MAX_CTAS set by environment to 17.", CHANNELS),),
        # lines of many nodes, of which only the first and the last are read
        (rank(0, NICS, "Connected all rings"), rank(0, *sends(1)) * 140 + rank(0, *sends(8)) + rank(0, *sends(1)) * 40),
    ],
)  # fmt: skip
def test_what_fits_or_cannot_be_said_is_no_note(tmp_path: Path, texts: tuple[str, ...]) -> None:
    assert notes(tmp_path, *texts) == ()


RING, OTHER = "NCCL_ALGO set by environment to Ring", "NCCL_SOCKET_IFNAME set by environment to eth0"
COMPLETE = "ncclCommInitRank comm 0x1 rank 8 nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init COMPLETE"
LINE_8 = "node02:108:208 [0] NCCL INFO"
CHOSEN = "AllReduce: 4096 Bytes -> Algo {} proto LL channel{{Lo..Hi}}={{0..0}}"


@pytest.mark.parametrize(
    ("first", "second", "meaning"),
    [
        (RING, f"{OTHER}\n{LINE_8} {COMPLETE}", "NCCL_ALGO is Ring on node01, but not set on node02"),
        (RING, RING.replace("Ring", "Tree"), "NCCL_ALGO is Ring on node01, but Tree on node02"),
        (CHOSEN.format("RING"), CHOSEN.format("TREE"),
         "the choice for all-reduce of 4 KiB in communicator 0xab is Ring LL on node01, but Tree LL on node02"),
    ],
)  # fmt: skip
def test_ranks_that_choose_differently_explain_why_they_wait(
    tmp_path: Path, first: str, second: str, meaning: str
) -> None:
    apart = rank(0, first), rank(8, second)
    best = report(tmp_path, *apart, WATCHDOG).diagnoses[0]
    assert (best.cause, best.meaning, best.nodes) == ("algorithm_differs", meaning, ("node01", "node02"))
    assert notes(tmp_path, *apart)[-1] == f"may hang: {meaning}"
    assert report(tmp_path, *apart, STEP).healthy


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (rank(0, RING), rank(8, RING.replace("Ring", "RING"))),
        (rank(0, RING), rank(8, "Using network IB")),
        (rank(0, CHOSEN.format("RING")), rank(8, CHOSEN.format("RING"))),
        # it ended before it read NCCL_ALGO
        (rank(0, RING), rank(8, OTHER)),
        # of the lines of many ranks some were left out
        (rank(0, RING), rank(8, OTHER, COMPLETE) + rank(0, RING) * 2300),
        # it had another value before, or chose both: the first line of a rank may be lost
        (rank(0, RING), rank(8, RING.replace("Ring", "Tree"), RING)),
        (rank(0, CHOSEN.format("RING")), rank(8, CHOSEN.format("TREE"), CHOSEN.format("RING"))),
        # two jobs, one after the other, in one log
        (rank(0, RING), rank(8, RING.replace("Ring", "Tree")).replace("0xab", "0xcd")),
        (rank(0, CHOSEN.format("RING")), rank(8, CHOSEN.format("TREE")).replace("0xab", "0xcd")),
    ],
)  # fmt: skip
def test_ranks_that_choose_alike_or_do_not_say_explain_nothing(tmp_path: Path, first: str, second: str) -> None:
    found = report(tmp_path, first, second, WATCHDOG)
    assert [one.cause for one in found.diagnoses] == ["slow_rank_timeout", "rank_crashed", "collective_mismatch"]
