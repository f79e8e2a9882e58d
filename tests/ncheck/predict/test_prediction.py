"""ncheck predict on recorded clusters: the whole answer, what one change brings, and what is unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpudirect import GpuDirectFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.facts.pcie import PcieFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Unread
from ncheck.model.op import Op
from ncheck.model.report import Measurement, NcclChoice, Point, Probe
from ncheck.pipeline import look_again
from ncheck.predict.cluster import FACTS, choices, predict_cluster
from ncheck.predict.prediction import Prediction
from ncheck.probe.facts import ProbeFacts

RECORDED = Path(__file__).parents[3] / "fixtures"
HEALTHY = look_again(str(RECORDED / "healthy-4x8-h100"), (*FACTS, ProbeFacts))
SIZES = (2**13, 2**20, 2**26, 2**33)


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(("predict", *args))
    out, err = capsys.readouterr()
    return code, out, err


def changed(fact: type[object], change: Callable[..., object], *nodes: str) -> Cluster:
    """Return the healthy cluster with another value of one fact, on these nodes or on all."""
    known = {
        name: {**facts, fact: change(facts[fact])} if name in (nodes or HEALTHY.names) else facts
        for name, facts in HEALTHY.known.items()
    }
    return replace(HEALTHY, known=known)


def with_settings(*nodes: str, **variables: str) -> Cluster:
    return changed(EnvironmentFacts, lambda own: replace(own, variables={**own.variables, **variables}), *nodes)


def predictions(cluster: Cluster, *ops: Op) -> Prediction:
    return predict_cluster(cluster, ops or (Op.ALL_REDUCE,), SIZES)


def brings(prediction: Prediction) -> list[tuple[str, tuple[str, ...], int, int | None]]:
    """Return each change, where, at which size, and its gain in percent."""
    return [
        (one.change, one.nodes, one.size, None if one.gain is None else round(one.gain * 100))
        for one in prediction.changes
    ]


def chosen(prediction: Prediction) -> list[str]:
    return [f"{row.algorithm}/{row.protocol}" for row in prediction.ops[0].rows]


def test_what_a_healthy_cluster_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "--from", str(RECORDED / "healthy-4x8-h100"), "--op", "all-reduce,all-gather")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
4 nodes, 32 ranks: what NCCL 2.21.5 will do; nothing was measured
NICs on gpu[01-04]: mlx5_[0-7]:1

all-reduce: 396 GB/s at 8 GiB, limited by NIC sum: 8 x 400 Gb/s
     size  algorithm  protocol  channels     time       busbw
    8 KiB       Tree        LL         2  36.5 us  0.435 GB/s
  128 KiB       Tree        LL        16  64.2 us   3.95 GB/s
    1 MiB       Tree     LL128        16  82.5 us   24.6 GB/s
    8 MiB   NVLSTree    Simple        16   131 us    124 GB/s
   64 MiB   NVLSTree    Simple        16   484 us    269 GB/s
    1 GiB       Ring    Simple        16  5.63 ms    370 GB/s
    8 GiB       Ring    Simple        16    42 ms    396 GB/s

all-gather: 368 GB/s at 8 GiB, limited by ring over NVLink: 18 NVLinks x 20.6 GB/s
     size  algorithm  protocol  channels     time       busbw
    8 KiB       Ring        LL         1  43.1 us  0.184 GB/s
  128 KiB       Ring        LL         1  49.1 us   2.58 GB/s
    1 MiB       Ring     LL128        16  82.8 us   12.3 GB/s
    8 MiB       Ring     LL128        16   108 us   75.3 GB/s
   64 MiB       Ring     LL128        16   309 us    211 GB/s
    1 GiB       Ring    Simple        16  2.95 ms    353 GB/s
    8 GiB       Ring    Simple        16  22.6 ms    368 GB/s

rules: https://github.com/NVIDIA/nccl (src/graph/tuning.cc, src/graph/search.cc)
"""
    )


def test_the_same_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "--from", str(RECORDED / "port-polling"), "--sizes", "8G", "-o", "json")
    whole = json.loads(out)
    (op,) = whole.pop("ops")
    (row,) = op.pop("rows")
    (change,) = whole.pop("changes")
    assert {name: row[name] for name in ("size", "algorithm", "protocol", "channels")} == {
        "size": 2**33, "algorithm": "Ring", "protocol": "Simple", "channels": 28,
    }  # fmt: skip
    assert (round(row["busbw"]), round(row["seconds"], 3)) == (347, 0.048)
    assert op == {
        "op": "all-reduce", "limited_by": "NIC sum: 7 x 400 Gb/s", "lowered_by": ["7 of 8 rails on gpu02"],
        "unknown": [], "at_most": None,
    }  # fmt: skip
    assert (change["change"], change["nodes"], round(change["gain"], 2)) == ("bring up mlx5_3:1", ["gpu02"], 0.14)
    assert whole.pop("nics")["gpu02"] == [f"mlx5_{number}:1" for number in (0, 1, 2, 4, 5, 6, 7)]
    assert whole == {
        "schema": "ncheck.predict/1", "library": "NCCL", "version": "2.21.5", "checked": True,
        "ranks": dict.fromkeys(HEALTHY.names, 8), "notes": [],
        "unreachable": [], "source": "https://github.com/NVIDIA/nccl (src/graph/tuning.cc, src/graph/search.cc)",
    }  # fmt: skip


@pytest.mark.parametrize(("slots", "ranks", "busbw"), [("2", 8, 107), ("8", 32, 396)])
def test_the_ranks_of_a_node_can_be_given(
    capsys: pytest.CaptureFixture[str], slots: str, ranks: int, busbw: int
) -> None:
    _, out, _ = told(
        capsys, "--from", str(RECORDED / "healthy-4x8-h100"), "--sizes", "8G", "--slots", slots, "-o", "json"
    )
    whole = json.loads(out)
    assert sum(whole["ranks"].values()) == ranks
    assert round(whole["ops"][0]["rows"][0]["busbw"]) == busbw


def test_operations_and_sizes_that_are_given_twice_are_joined(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--from", str(RECORDED / "healthy-4x8-h100"), "-o", "json", "--sizes"
    twice = told(capsys, *words, "8G", "--sizes", "1M", "--op", "broadcast", "--op", "all-reduce,broadcast")
    assert twice == told(capsys, *words, "1M,8G", "--op", "broadcast,all-reduce")
    assert [one["op"] for one in json.loads(twice[1])["ops"]] == ["broadcast", "all-reduce"]


def test_a_healthy_cluster_gains_by_no_change() -> None:
    assert brings(predictions(HEALTHY, Op.ALL_REDUCE, Op.ALL_GATHER)) == []


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (with_settings(NCCL_IB_HCA="mlx5_0,mlx5_1"), [("unset NCCL_IB_HCA", HEALTHY.names, 2**33, 297)]),
        (with_settings(NCCL_ALGO="Tree"), [("unset NCCL_ALGO", HEALTHY.names, 2**33, 21)]),
        (with_settings(NCCL_PROTO="Simple"), [("unset NCCL_PROTO", HEALTHY.names, 2**13, 122)]),
        (with_settings(NCCL_IB_DISABLE="1"), [("unset NCCL_IB_DISABLE", HEALTHY.names, 2**33, None)]),
        (with_settings(NCCL_IB_DISABLE="1", NCCL_NET="Socket"), []),  # neither alone
        (with_settings(NCCL_DEBUG="INFO"), []),
    ],
)
def test_a_setting_that_keeps_nccl_from_more_is_named(cluster: Cluster, expected: object) -> None:
    assert brings(predictions(cluster)) == expected


def test_a_setting_that_is_removed_leaves_the_others() -> None:
    (change,) = predictions(with_settings(NCCL_IB_DISABLE="1", NCCL_IB_HCA="=mlx5_0:1")).changes
    assert (change.change, round(change.after)) == ("unset NCCL_IB_DISABLE", 50)


@pytest.mark.parametrize("nodes", [(), ("gpu02",)])
def test_a_choice_of_hcas_that_matches_none_is_named(nodes: tuple[str, ...]) -> None:
    found = predictions(with_settings(*nodes, NCCL_IB_HCA="=mlx5_00"))
    (change,) = found.changes
    assert (change.change, change.nodes, change.before, round(change.after)) == (
        "unset NCCL_IB_HCA", nodes or HEALTHY.names, None, 396,
    )  # fmt: skip
    assert change.reason == (
        "mlx5_[0-7]:1: not used (NCCL_IB_HCA==mlx5_00 in the environment matches none: data goes by sockets)"
    )
    assert "NCCL_IB_HCA" in change.fix
    assert found.nics["gpu02"] == ()


def test_flags_of_ll_take_half_of_the_links() -> None:
    slow = predictions(with_settings(NCCL_PROTO="LL")).ops[0].rows[-1]
    full = predictions(HEALTHY).ops[0].rows[-1]
    assert (slow.protocol, full.protocol) == ("LL", "Simple")
    assert (slow.busbw or 0) < (full.busbw or 0) / 2
    mixed = with_settings(NCCL_PROTO="LL")
    newer = {**mixed.known["gpu01"], LoadedNcclFacts: LoadedNcclFacts("2.27.7", "/x/libnccl.so.2")}
    found = predictions(replace(mixed, known={**mixed.known, "gpu01": newer}))
    assert [row.busbw for row in found.ops[0].rows] == [None] * 4


def test_a_narrow_slot_is_named_with_what_it_costs() -> None:
    def narrow(own: PcieFacts) -> PcieFacts:
        first, *others = own.hcas["mlx5_3"]
        return replace(own, hcas={**own.hcas, "mlx5_3": (replace(first, width=8), *others)})

    found = predictions(changed(PcieFacts, narrow, "gpu03"))
    assert found.ops[0].lowered_by == ("PCIe x8 of x16 at mlx5_3 of gpu03",)
    assert brings(found) == [("reseat mlx5_3", ("gpu03",), 2**33, 6)]


@pytest.mark.parametrize(
    ("slots", "limit"),
    [
        ((8, 8, 8, 8), (396, "NIC sum: 8 x 400 Gb/s")),
        ((2, 2, 2, 2), (107, "PCIe 5.0 x16 of GPU 0, of 2 ranks")),
        ((8, 8, 8, 1), (54, "PCIe 5.0 x16 of GPU 0")),
    ],
)
def test_few_gpus_of_a_node_fill_no_more_than_their_own_links(slots: tuple[int, ...], limit: tuple[int, str]) -> None:
    nodes = tuple(replace(node, slots=count) for node, count in zip(HEALTHY.nodes, slots, strict=True))
    one = predictions(replace(HEALTHY, nodes=nodes)).ops[0]
    assert (round(one.rows[-1].busbw or 0), one.limited_by) == limit


def test_two_faults_of_which_one_hides_the_other_are_named_together() -> None:
    def down(own: InfinibandFacts) -> InfinibandFacts:
        first, *others = own.ports
        return replace(own, ports=(replace(first, state="Down"), *others))

    found = predictions(changed(InfinibandFacts, down, "gpu02", "gpu03"))
    assert brings(found) == [("bring up mlx5_0:1 and 1 more", ("gpu02", "gpu03"), 2**33, 14)]


def test_many_faults_are_not_tried_one_by_one() -> None:
    def narrow(own: PcieFacts) -> PcieFacts:
        return replace(own, hcas={name: (replace(links[0], width=8), *links[1:]) for name, links in own.hcas.items()})

    found = predictions(changed(PcieFacts, narrow, "gpu03"))
    assert brings(found) == [("reseat mlx5_0 and 7 more", ("gpu03",), 2**33, 86)]
    alike = predictions(changed(PcieFacts, narrow))
    assert alike.ops[0].lowered_by == ("PCIe x8 of x16 at mlx5_[0-7] of gpu[01-04]",)
    assert brings(alike) == []  # the slots are wired so


def test_a_port_that_nccl_would_not_use_is_not_brought_up() -> None:
    down = changed(
        InfinibandFacts,
        lambda own: replace(own, ports=tuple(
            replace(port, state="Down") if port.hca == "mlx5_3" else port for port in own.ports
        )),
        "gpu02",
    )  # fmt: skip
    assert brings(predictions(down)) == [("bring up mlx5_3:1", ("gpu02",), 2**33, 14)]
    facts = down.known["gpu02"]
    excluded = {**facts, EnvironmentFacts: EnvironmentFacts({"NCCL_IB_HCA": "^mlx5_3"}, {})}
    assert brings(predictions(replace(down, known={**down.known, "gpu02": excluded}))) == []


def test_nics_at_the_host_bridge_are_named_and_cost_what_the_model_does_not_know() -> None:
    def far(own: TopologyFacts) -> TopologyFacts:
        return replace(own, pairs={pair: "PHB" if level == "PIX" else level for pair, level in own.pairs.items()})

    found = predictions(changed(TopologyFacts, far, "gpu03"))
    (note,) = found.notes
    assert note == (
        "no GPUDirect RDMA on gpu03: its NICs are no nearer to the GPUs than PHB; NCCL_NET_GDR_LEVEL=PHB would use it. "
        "What that costs is not predicted; ncheck probe measures it"
    )
    assert chosen(found)[1] == "NVLSTree/Simple"  # LL128 needs GPUDirect RDMA on all nodes
    assert chosen(predictions(HEALTHY))[1] == "Tree/LL128"
    assert brings(found) == []


def test_an_older_nccl_is_named_where_the_links_carry_more_with_a_newer_one() -> None:
    two = replace(HEALTHY, nodes=HEALTHY.nodes[:2])
    facts = {
        name: {**two.known[name], LoadedNcclFacts: LoadedNcclFacts("2.17.1", "/x/libnccl.so.2")} for name in two.names
    }
    found = predictions(replace(two, known=facts))
    assert found.checked is False
    assert found.notes == ("the source of NCCL 2.17.1 was not read: its rules are assumed to be those since 2.18",)
    assert brings(found) == [("NCCL 2.30.7", two.names, 2**33, 32)]


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (changed(LoadedNcclFacts, lambda own: replace(own, version="2.20.5"), "gpu02"),
         "the nodes load different releases: NCCL 2.20.5 and 2.21.5"),
        (changed(LoadedNcclFacts, lambda _: Unread("no answer")), "it is not known which NCCL the nodes load"),
        (with_settings("gpu01", NCCL_ALGO="Ring"), "the nodes have different values of NCCL_ALGO"),
        (changed(TopologyFacts, lambda own: replace(own, nics=(), pairs={
            pair: level for pair, level in own.pairs.items() if "NIC" not in "".join(pair)})),
         "it is not known which GPUs of gpu01 are near mlx5_0 (nvidia-smi topo -m)"),
        (with_settings(NCCL_P2P_DISABLE="1"), "data goes through host memory: NCCL_P2P_DISABLE is set on gpu01"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said_and_not_guessed(cluster: Cluster, why: str) -> None:
    found = predictions(cluster)
    assert found.ops[0].unknown[0] == f"algorithm, protocol and start-up time, because {why}"
    assert chosen(found) == ["/"] * 4
    assert [row.busbw for row in found.ops[0].rows][:3] == [None] * 3
    assert not found.whole


def test_where_the_search_may_find_no_tree_nothing_is_said_of_the_choice() -> None:
    """NCCL's own search finds none, since 2.25, for A100s with a NIC at the switch of each."""

    def older(own: GpuFacts) -> GpuFacts:
        return replace(own, gpus=tuple(replace(gpu, name="NVIDIA A100-SXM4-80GB") for gpu in own.gpus))

    old = changed(GpuFacts, older)
    assert chosen(predictions(old))[-1] == "Ring/Simple"
    newer = LoadedNcclFacts("2.27.7", "/x/libnccl.so.2")
    found = predictions(replace(old, known={name: {**old.known[name], LoadedNcclFacts: newer} for name in old.names}))
    why = "NCCL's search may find no path for a tree on these nodes, and use one channel then"
    assert found.ops[0].unknown == (f"algorithm, protocol and start-up time, because {why}",)


def test_what_cannot_be_read_and_is_assumed_is_noted() -> None:
    assert predictions(changed(GpuDirectFacts, lambda _: Unread("no answer"))).notes == (
        "whether GPUDirect RDMA can be used could not be read: it is assumed",
    )


def test_without_nvlink_the_channels_are_less_sure() -> None:
    def bare(own: TopologyFacts) -> TopologyFacts:
        return replace(own, pairs={pair: "NODE" if level == "NV18" else level for pair, level in own.pairs.items()})

    found = predictions(changed(TopologyFacts, bare))
    assert found.notes == ("the GPUs of gpu[01-04] are joined by PCIe: NCCL's search may find other channels there",)
    assert found.ops[0].limited_by == "PCIe 5.0 x16 between GPUs, through the host bridge of an Intel processor"


def test_a_node_that_was_not_reached_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--from", str(RECORDED / "one-node-down"), "--sizes", "8G")
    assert code == 1
    assert out.splitlines()[0] == "3 nodes, 24 ranks: what NCCL 2.21.5 will do; nothing was measured"
    assert "left out: gpu03, which could not be asked" in out
    code, out, err = told(capsys, "--from", str(RECORDED / "all-refused"))
    assert (code, out) == (1, "")
    assert err.startswith("ncheck: nothing is predicted: no node could be asked")


def test_without_rdma_nothing_is_said_of_the_choice(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--from", str(RECORDED / "veth-without-infiniband"))
    assert code == 1
    assert "data goes by sockets" in out
    assert "GB/s" not in out  # two interfaces of a node carry it


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--op", "all"), "--op: expected all-reduce"),
        (("--sizes", "big"), "--sizes: 'big' is not a size"),
        (("--sizes", "1M,"), "--sizes: '1M,' lacks a size"),
        (("-o", "xml", "--from", str(RECORDED / "healthy-4x8-h100")), "-o: expected one of text, json, not 'xml'"),
        (("nodes.txt", "--from", "x"), "--from x names the nodes: remove nodes.txt"),
        (("--slurm", "--from", "x"), "--from x names the nodes: remove --slurm"),
        (("--from", "nowhere"), "nowhere: No such file or directory"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...], message: str
) -> None:
    code, out, err = told(capsys, *args)
    assert (code, out) == (2, "")
    assert message in err


def measurement(op: Op, *sizes: int, stage: str = "all") -> Measurement:
    curve = tuple(Point(size, in_place, 1e-3, 1.0, 1.0) for size in sizes for in_place in (False, True))
    return Measurement(
        op.value, 1.0, None, "GB/s", nodes=HEALTHY.names, stage=stage, ranks=32, curve=curve, op=op.value
    )


def logged(used: str) -> Cluster:
    """Return the healthy cluster, of which NCCL logged this on gpu02 in every step."""
    known = dict(HEALTHY.known)
    own = known["gpu02"][ProbeFacts]
    assert isinstance(own, ProbeFacts)
    results = tuple(replace(result, used=(used,)) for result in own.results)
    known["gpu02"] = {**known["gpu02"], ProbeFacts: replace(own, results=results)}
    return replace(HEALTHY, known=known)


def chosen_for(cluster: Cluster, *measured: Measurement, version: str = "2.21.5") -> list[NcclChoice]:
    probe = Probe(ran=True, reason="", means="nccl", version=version)
    return list(choices(cluster, measured or [measurement(Op.ALL_REDUCE, 2**30)], probe))


def test_what_was_measured_has_what_nccl_chose_for_it() -> None:
    ran = [measurement(Op.ALL_REDUCE, 2**20, 2**30), measurement(Op.ALL_TO_ALL, 2**30)]
    assert chosen_for(HEALTHY, *ran, measurement(Op.ALL_REDUCE, 2**30, stage="scaling")) == [
        NcclChoice("all-reduce", 2**20, "Tree", "LL128", 16, 8),
        NcclChoice("all-reduce", 2**30, "Ring", "Simple", 16, 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "cluster",
    [
        with_settings("gpu01", NCCL_ALGO="Ring"),
        with_settings(NCCL_TUNER_PLUGIN="/x/libtuner.so"),
        changed(GpuDirectFacts, lambda _: Unread("no answer")),
        changed(LoadedNcclFacts, lambda own: replace(own, version="2.20.5"), "gpu02"),
        changed(NetPluginFacts, lambda _: Unread("no answer"), "gpu02"),
        changed(EnvironmentFacts, lambda _: Unread("no answer"), "gpu02"),  # NCCL_ALGO may be set there
        logged("NCCL INFO NET/Socket : Using [0]eno1:10.20.0.12<0>"),
        logged("NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eno1:10.20.0.12<0>"),
        replace(HEALTHY, nodes=tuple(replace(node, slots=4) for node in HEALTHY.nodes)),
    ],
)
def test_where_something_has_to_be_assumed_the_report_of_what_was_measured_says_nothing_of_nccls_choice(
    cluster: Cluster,
) -> None:
    assert chosen_for(cluster) == []
    assert chosen_for(HEALTHY, version="2.20.5") == []  # another library was measured than the nodes load
