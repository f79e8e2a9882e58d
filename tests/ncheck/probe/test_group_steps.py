"""The steps of a probe that search between groups of nodes: only where nodes together fell short, and in their time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.gpu_health import Fabric, GpuHealth, GpuHealthFacts
from ncheck.model.op import Op
from ncheck.probe.boundary import Found
from ncheck.probe.facts import GroupFacts
from ncheck.probe.group_search import DOMAINS, NO_NVLINK, fell_short, search_groups
from ncheck.probe.links.hardware import hardware_of
from ncheck.probe.node_result import Stage
from ncheck.probe.results import Collective
from ncheck.probe.search import SOCKETS, SlowSearch, no_expectation
from ncheck.settings import RunContext, Settings

from .driven import Driven, fails, well
from .machines import ran

SIDES = {"leaf1": ("gpu01", "gpu02"), "leaf2": ("gpu03", "gpu04")}
TREE = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[01-02]\nSwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=gpu[03-04]\n"
RATE = 200e9


def trunk(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as nodes whose leaves have a slow uplink: the one NIC of a pair does not fill it."""
    return well(arguments, RATE / 4 if crosses(arguments) else RATE)


def crosses(arguments: Mapping[str, Any]) -> bool:
    pair = arguments["stage"] == "pair"
    return not pair and all({*arguments["group"]}.intersection(side) for side in SIDES.values())


def search(driven: Driven) -> Any:
    probed = {node: driven.probed(node) for node in driven.known}
    hardware = {node: hardware_of(facts) for node, facts in driven.known.items()}
    named = [one for facts in driven.known.values() if isinstance(one := facts.get(GroupFacts), GroupFacts)]
    return search_groups(probed, hardware, named)


def searching(driven: Driven) -> list[tuple[str, ...]]:
    return [group for name, groups in driven.told if name.startswith("searching") for group in groups]


@pytest.mark.parametrize("slurm", [True, False])
def test_where_all_are_slow_and_pairs_are_not_the_boundary_is_searched_between_named_groups(*, slurm: bool) -> None:
    settings = Settings() if slurm else Settings(run=RunContext(groups=SIDES))
    driven = Driven(trunk, settings, slurm=TREE if slurm else "").run()
    assert driven.stages()[-1].startswith("searching between groups, round ")
    assert all(one["ranks"] == [8] * len(one["group"]) for one in driven.asked if one["stage"] == "boundary")
    found = search(driven)
    assert [{*one.one, *one.other} for one in found.found.boundaries] == [{"leaf1", "leaf2"}]
    assert (found.found.nodes, found.stopped) == ((), "")
    assert 3 <= len(searching(driven)) <= 8


def test_a_healthy_probe_has_not_one_step_more() -> None:
    assert Driven(lambda asked: well(asked, RATE), Settings(run=RunContext(groups=SIDES))).run().stages() == [
        "measuring inside", "measuring pairs, round 1", "measuring pairs, round 2", "measuring 2 nodes",
        "measuring all",
    ]  # fmt: skip


def test_a_node_that_fails_and_says_why_is_no_reason_to_search() -> None:
    def out_of_memory(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return fails("CUDA error: out of memory") if arguments["stage"] == "all" else well(arguments, RATE)

    assert searching(Driven(out_of_memory).run()) == []


def test_the_search_ends_with_the_time_of_the_probe_and_says_so() -> None:
    driven = Driven(trunk, Settings(run=RunContext(groups=SIDES)), seconds=8.0).run()
    found = search(driven)
    assert (found.found.boundaries, found.stopped) == ((), "the time for the probe was over (--probe-time)")


def test_without_groups_nothing_is_claimed_of_four_nodes_nor_measured_for_it() -> None:
    driven = Driven(trunk).run()
    assert driven.stages()[-1] == "measuring all"
    assert "asking for groups" in [name for name, _ in driven.told]  # Slurm may name them
    assert (search(driven).found, search(driven).grouping.guessed) == (Found(unsure=True), True)


@pytest.mark.parametrize(("pairs", "searched"), [(20e9, False), (RATE, True)])
def test_where_pairs_are_as_slow_as_all_nodes_nothing_is_searched(pairs: float, *, searched: bool) -> None:
    """Inside the nodes all is well: the network is slow everywhere, and not between groups."""

    def slow(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return well(arguments, {"inside": 250e9, "pair": pairs}.get(arguments["stage"], 85e9))

    driven = Driven(slow, Settings(run=RunContext(groups=SIDES))).run()
    assert ("asking for groups" in [name for name, _ in driven.told]) is searched


@pytest.mark.parametrize(("net", "share", "searched"), [
    ("IB", 0.75, True), ("IB", 0.85, False), (SOCKETS, 0.75, False), (SOCKETS, 0.55, True),
])  # fmt: skip
def test_over_sockets_nodes_that_share_a_busy_machine_are_no_reason_to_search(
    net: str, share: float, *, searched: bool
) -> None:
    def on(stage: Stage, count: int, busbw: float) -> Collective:
        one = ran(stage, tuple(f"n{number}" for number in range(count)), 1, busbw)
        return replace(one, step=replace(one.step, net=net))

    measured = [on(Stage.SCALING, 2, 10.0), on(Stage.ALL, 4, 10.0 * share)]
    assert fell_short(measured, SlowSearch(), no_expectation, named=True) is searched


def test_where_nodes_share_nvlink_domains_it_is_done_again_without_nvlink_between_nodes() -> None:
    """By NVLink nothing but all eight together is slow."""

    def slow(arguments: Mapping[str, Any]) -> dict[str, Any]:
        assert arguments["variables"].get(NO_NVLINK) == ("0" if arguments.get("off") == NO_NVLINK else None)
        return well(arguments, RATE / 4 if len(arguments["group"]) == 8 else RATE)

    names = tuple(f"gpu{number:02}" for number in range(1, 9))
    facts: dict[str, dict[type[object], object]] = {
        node: {GpuHealthFacts: GpuHealthFacts((GpuHealth(0, fabric=Fabric(3, cluster=f"{number // 4:032x}")),))}
        for number, node in enumerate(names, 4)
    }
    driven = Driven(slow, facts=facts, more=names[4:]).run()
    assert list(dict.fromkeys(one.get("off") for one in driven.asked)) == [None, NO_NVLINK]
    found = search(driven)
    assert (found.off, found.grouping.source, found.found.explained) == (NO_NVLINK, DOMAINS, False)


def test_what_was_asked_for_comes_before_the_search_which_is_by_the_first_operation() -> None:
    ops, groups = (Op.ALL_REDUCE, Op.ALL_TO_ALL), RunContext(groups=SIDES)
    driven = Driven(trunk, Settings(ops=ops, nic_test=True, run=groups)).run()
    stages = driven.stages()
    named = max(stages.index("measuring all: all-to-all"), stages.index("measuring the NICs"))
    assert named < min(place for place, stage in enumerate(stages) if stage.startswith("searching"))
    assert {one["op"] for one in driven.asked if one["stage"] == "boundary"} == {"all-reduce"}
    assert [{*one.one, *one.other} for one in search(driven).found.boundaries] == [{"leaf1", "leaf2"}]
    short = Driven(trunk, Settings(ops=ops, probe_time=70.0, run=groups), seconds=6.0).run()
    assert "measuring all: all-to-all" in short.stages()
    assert search(short).stopped == "the time for the probe was over (--probe-time)"


def test_where_all_hang_and_fewer_do_not_it_is_searched_as_well() -> None:
    def hangs(arguments: Mapping[str, Any]) -> dict[str, Any]:
        across = arguments["stage"] != "pair" and all(
            {*arguments["group"]}.intersection(side) for side in SIDES.values()
        )
        return fails("", late=True) if across else well(arguments, RATE)

    driven = Driven(hangs, Settings(run=RunContext(groups=SIDES), probe_time=300.0)).run()
    assert [{*one.one, *one.other} for one in search(driven).found.boundaries] == [{"leaf1", "leaf2"}]


def test_a_node_that_does_not_say_what_slurm_knows_is_asked_once() -> None:
    silent = Driven(trunk)
    reply = silent.reply
    silent.reply = lambda name, question, groups: (  # type: ignore[method-assign]
        (question.key, None) if "scontrol" in question.key else reply(name, question, groups)
    )
    assert [name for name, _ in silent.run().told].count("asking for groups") == 1


def over_cpus(*slow: tuple[str, str], named: bool = False, slurm: str = "") -> Driven:
    def answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return well(arguments, 1e9 if tuple(sorted(arguments["group"])) in slow else 10e9)

    return Driven(answer, Settings(probe="tcp", run=RunContext(groups=SIDES if named else {})), slurm=slurm).run()


def asked_for_groups(driven: Driven) -> bool:
    return "asking for groups" in [name for name, _ in driven.told]


def test_over_cpus_slow_links_are_searched_only_where_groups_are_named_or_the_links_part_the_nodes() -> None:
    """One slow link may be a busy machine. Two that part the nodes are none."""
    one, two = ("gpu01", "gpu04"), ("gpu02", "gpu03")
    assert not asked_for_groups(over_cpus())
    assert not asked_for_groups(over_cpus(named=True))
    assert searching(over_cpus(one)) == []
    for by_name in (over_cpus(one, named=True), over_cpus(one, slurm=TREE)):
        assert [set(pair) for pair in searching(by_name)][:2] == [{"gpu01", "gpu03"}, {"gpu02", "gpu04"}]
        assert search(by_name).found.boundaries == (), "other nodes of both groups do not show it"
    assert asked_for_groups(over_cpus(one, two))
