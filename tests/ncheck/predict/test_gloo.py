"""What gloo will do where no node has a GPU, and the speed of a NIC that the user names (--link-speed)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.nics import Kind, NicFacts
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Absent
from ncheck.model.op import Op
from ncheck.pipeline import look_again
from ncheck.predict.cluster import FACTS, predict_cluster
from ncheck.predict.step_time import predict_step
from ncheck.predict.table import as_text
from ncheck.predict.training import training_run

RECORDED = Path(__file__).parents[3] / "fixtures" / "healthy-4x8-h100"
HEALTHY = look_again(str(RECORDED), FACTS)
TCP_OF_10 = 10 / 8 * 0.94  # GB/s of data by 10 Gb/s


def changed(cluster: Cluster, fact: type[object], change: Callable[..., object], *nodes: str) -> Cluster:
    """Return the cluster with another value of one fact, on these nodes or on all."""
    known = {
        name: {**facts, fact: change(facts[fact])} if name in (nodes or cluster.names) else facts
        for name, facts in cluster.known.items()
    }
    return replace(cluster, known=known)


def ranks(cluster: Cluster, count: int, *names: str) -> Cluster:
    """Return the cluster with so many ranks on each of these nodes, or of all."""
    nodes = tuple(replace(node, slots=count) for node in cluster.nodes if node.name in (names or cluster.names))
    return replace(cluster, nodes=nodes)


def cloud(own: NicFacts) -> NicFacts:
    """Return the same interfaces, of a virtual machine: they show no speed."""
    return NicFacts(tuple(replace(nic, kind=Kind.CLOUD, speed=None) for nic in own.interfaces))


CPUS = ranks(changed(changed(HEALTHY, GpuFacts, lambda _: Absent("no GPU")), NicFacts, cloud), 1)


@pytest.mark.parametrize(
    ("op", "count", "busbw"),
    [
        (Op.ALL_REDUCE, 1, TCP_OF_10),
        (Op.ALL_REDUCE, 4, TCP_OF_10),
        (Op.ALL_GATHER, 1, TCP_OF_10),
        (Op.SEND_RECV, 1, TCP_OF_10),
        (Op.ALL_TO_ALL, 1, TCP_OF_10),
        (Op.ALL_TO_ALL, 4, TCP_OF_10 * 15 / (4 * 12)),  # 4 ranks of a node send to 12 elsewhere: 48 of 15 parts
        (Op.BROADCAST, 1, None),
        (Op.REDUCE_SCATTER, 1, None),
    ],
)
def test_a_node_sends_over_one_interface_what_the_operation_needs(op: Op, count: int, busbw: float | None) -> None:
    found = predict_cluster(ranks(CPUS, count), (op,), (2**30,), link_speed=10)
    assert (found.library, found.version, sum(found.ranks.values())) == ("gloo", "", 4 * count)
    assert [row.busbw for row in found.ops[0].rows] == ([None] if busbw is None else [pytest.approx(busbw)])
    assert found.whole is (busbw is not None)


def test_two_ranks_have_one_connection_and_only_an_all_reduce_is_known() -> None:
    pair = ranks(CPUS, 1, "gpu01", "gpu02")
    found = predict_cluster(pair, (Op.ALL_REDUCE, Op.ALL_GATHER, Op.ALL_TO_ALL, Op.SEND_RECV), (2**30,), link_speed=10)
    assert [one.rows[0].busbw for one in found.ops] == [pytest.approx(TCP_OF_10), None, None, None]


def test_of_clouds_the_speed_is_named_and_small_messages_are_unknown() -> None:
    assert (
        as_text(predict_cluster(CPUS, (Op.ALL_REDUCE,), (2**20, 2**26, 2**30), link_speed=2.5))
        == """\
4 nodes, 4 ranks: what gloo will do; nothing was measured
NICs on gpu[01-04]: eno1

all-reduce: 0.294 GB/s at 1 GiB, limited by TCP over one interface of 2.5 Gb/s
    size  algorithm    time       busbw
   1 MiB       Ring       -           -
  64 MiB       Ring  343 ms  0.294 GB/s
   1 GiB       Ring  5.48 s  0.294 GB/s
  unknown: the start-up of small messages by TCP

note: eno1 on gpu[01-04]: 2.5 Gb/s by --link-speed, as it shows no speed
rules: https://github.com/pytorch/gloo (gloo/allreduce.cc, gloo/alltoall.cc)
"""
    )


def test_groups_of_one_node_share_its_interface() -> None:
    """Two groups of four ranks, one on each node: 4 layers of 250 MB of 16-bit gradients, by half of 10 Gb/s each."""
    run = training_run("params=1000M,layers=4,hidden=4096,seq=1024,dp=4,tp=2")
    step = predict_step(ranks(CPUS, 2), run, None, None, 10)
    gradients = next(one for one, each in zip(step.timed, step.exchanges, strict=True) if each.group.name == "dp")
    assert gradients.seconds == pytest.approx(4 * 250e6 * 2 * 3 / 4 / (TCP_OF_10 / 2 * 1e9))
    assert gradients.limited_by == "TCP over one interface of 10 Gb/s, shared by 2 groups"
    assert [one.unknown for one in step.timed if one.seconds is None] == ["how fast ranks of one node copy"]
    assert step.notes[0] == "eno1 on gpu[01-04]: 10 Gb/s by --link-speed, as it shows no speed"


def test_a_speed_that_is_not_known_or_is_more_than_one_core_copies_is_not_guessed() -> None:
    unknown = predict_cluster(CPUS, (Op.ALL_REDUCE,), (2**30,))
    fast = predict_cluster(CPUS, (Op.ALL_REDUCE,), (2**30,), link_speed=25)
    assert unknown.ops[0].unknown == ("the speed of eno1 of gpu[01-04] (cloud)",)
    assert fast.ops[0].unknown == ("how fast one core of gpu[01-04] copies: eno1 has 25 Gb/s",)
    assert [one.ops[0].rows[0].busbw for one in (unknown, fast)] == [None, None]
    assert [one.ops[0].at_most for one in (unknown, fast)] == [None, 25 / 8]  # four ranks on four nodes
    assert "\nall-reduce: at most 3.12 GB/s, limited by one interface of 25 Gb/s\n" in as_text(fast)


def test_the_interface_that_gloo_is_told_to_use_counts() -> None:
    def with_interface(name: str) -> Cluster:
        return changed(CPUS, EnvironmentFacts, lambda own: replace(own, variables={"GLOO_SOCKET_IFNAME": name}))

    assert predict_cluster(with_interface("eno1"), (Op.ALL_REDUCE,), (2**30,), link_speed=10).whole
    other = predict_cluster(with_interface("ib0"), (Op.ALL_REDUCE,), (2**30,), link_speed=10)
    assert other.ops[0].unknown == ("which interface of gpu[01-04] TCP uses",)
    assert other.notes == ("--link-speed is not used: which one NIC of each node carries the data is not known",)


def test_a_named_speed_replaces_what_the_hcas_show_and_says_so() -> None:
    found = predict_cluster(HEALTHY, (Op.ALL_REDUCE,), (2**33,), link_speed=200)
    assert (round(found.ops[0].rows[0].busbw or 0), found.ops[0].limited_by) == (199, "NIC sum: 8 x 200 Gb/s")
    assert found.notes == (
        "mlx5_[0-7]:1 on gpu[01-04]: 200 Gb/s by --link-speed, in place of the 400 Gb/s that it shows",
    )
    assert found.changes == ()
    assert predict_cluster(HEALTHY, (Op.ALL_REDUCE,), (2**33,), link_speed=400) == predict_cluster(
        HEALTHY, (Op.ALL_REDUCE,), (2**33,)
    )


def test_one_rank_on_each_of_two_nodes_has_a_known_bandwidth_by_nccls_sockets_and_more_have_not() -> None:
    def sockets(own: EnvironmentFacts) -> EnvironmentFacts:
        return replace(own, variables={"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "=eno1"})

    pair = ranks(changed(HEALTHY, EnvironmentFacts, sockets), 1, "gpu01", "gpu02")
    found = predict_cluster(pair, (Op.ALL_REDUCE,), (2**30,), link_speed=10)
    assert (found.library, found.nics) == ("NCCL", {"gpu01": ("eno1",), "gpu02": ("eno1",)})
    assert found.ops[0].rows[0].busbw == pytest.approx(TCP_OF_10)
    more = predict_cluster(changed(HEALTHY, EnvironmentFacts, sockets), (Op.ALL_REDUCE,), (2**30,), link_speed=10)
    assert more.ops[0].unknown[1:] == ("the bandwidth of sockets between more than two ranks",)
    assert more.ops[0].at_most == pytest.approx(10 / 8 * 31 / 32 * 4 / 3)  # each node sends 2 x 3/4, a rank 2 x 31/32


@pytest.mark.parametrize(("op", "rates", "at_most"), [
    (Op.ALL_REDUCE, (25, 25), 25 / 8 * 2 * 3 / 4),
    (Op.ALL_REDUCE, (25, 5), 5 / 8 * 2 * 3 / 4),  # the slow one has to send its sums
    (Op.ALL_GATHER, (25, 25), 25 / 8 * 3 / 4 * 2),
    (Op.ALL_TO_ALL, (25, 25), 25 / 8 * 3 / 4),  # 2 ranks x 2/4 of what each has
    (Op.BROADCAST, (25, 5), 5 / 8),
    (Op.SEND_RECV, (25, 25), 25 / 8),
])  # fmt: skip
def test_what_interfaces_let_through_at_most_is_said_of_each_operation(
    op: Op, rates: tuple[int, int], at_most: float
) -> None:
    def rated(speed: int) -> Callable[[NicFacts], NicFacts]:
        return lambda own: NicFacts(tuple(replace(nic, speed=1000 * speed) for nic in own.interfaces))

    pair = ranks(CPUS, 2, "gpu01", "gpu02")
    pair = changed(changed(pair, NicFacts, rated(rates[0]), "gpu01"), NicFacts, rated(rates[1]), "gpu02")
    assert predict_cluster(pair, (op,), (2**30,)).ops[0].at_most == pytest.approx(at_most)


def test_what_the_interfaces_let_through_is_no_limit_where_the_data_does_not_cross_them() -> None:
    def elsewhere(own: EnvironmentFacts) -> EnvironmentFacts:
        return replace(own, variables={"NCCL_IB_HCA": "=mlx5_9"})

    found = predict_cluster(changed(HEALTHY, EnvironmentFacts, elsewhere, "gpu01"), (Op.ALL_REDUCE,), (2**33,))
    assert [(one.rows[0].busbw, one.at_most) for one in found.ops] == [(None, None)]
    alone = predict_cluster(ranks(CPUS, 2, "gpu01"), (Op.ALL_REDUCE,), (2**30,), link_speed=10)
    assert [(one.rows[0].busbw, one.at_most) for one in alone.ops] == [(None, None)]


@pytest.mark.parametrize("speed", ["0", "-1", "25G", "1e9", "nan", "inf", ""])
def test_a_speed_that_no_nic_has_is_refused(capsys: pytest.CaptureFixture[str], speed: str) -> None:
    code = main(("predict", "--from", str(RECORDED), "--link-speed", speed))
    out, err = capsys.readouterr()
    expected = f"ncheck: --link-speed: expected the Gb/s of one NIC, from 0.001 to 10000, as in 25, not '{speed}'"
    assert (code, out, err.count("\n"), err.startswith(expected)) == (2, "", 1, True), err
