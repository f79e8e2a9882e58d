"""Faults of a network in which each node dialled only some others: what is named, whom it blames, what is unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random

import pytest
from ncheck.facts.links import Link, LinkCause, LinkFacts, Loss, Reach, Sample
from ncheck.network.link_faults import Carries, SubnetFault, carries, doubt, faults
from ncheck.network.link_matrix import Shape, folded
from ncheck.network.losses import lossy
from ncheck.network.peers import some_of

SUBNET = "10.1.0.0/16"
COUNT = 320
NAMES = [f"n{number:03}" for number in range(COUNT)]
PEERS = some_of(NAMES)
ADDRESS = {name: f"10.1.{number // 250}.{number % 250 + 1}" for number, name in enumerate(NAMES)}
Fails = Callable[[str, str], LinkCause | None]  # source and target


def links(fails: Fails) -> dict[str, LinkFacts]:
    return {name: _of(name, fails) for name in NAMES}


def _of(name: str, fails: Fails) -> LinkFacts:
    causes = {other: fails(name, other) for other in sorted(PEERS[name])}
    broken = tuple(Link(ADDRESS[name], o, ADDRESS[o], SUBNET, cause) for o, cause in causes.items() if cause)
    tried = frozenset(other for other, cause in causes.items() if cause is not LinkCause.UNTRIED)
    reach = Reach(SUBNET, ADDRESS[name], len(tried), sum(cause is None for cause in causes.values()))
    return LinkFacts((reach,), broken, tried, samples=(Sample(SUBNET, PEERS[name]),))


def into(nodes: Collection[str], cause: LinkCause = LinkCause.FILTERED) -> Fails:
    return lambda _, target: cause if target in nodes else None


def crossing(nodes: Collection[str], cause: LinkCause = LinkCause.FILTERED) -> Fails:
    return lambda source, target: cause if (source in nodes) != (target in nodes) else None


def found(fails: Fails) -> tuple[SubnetFault, ...]:
    return faults(links(fails), SUBNET, NAMES)


def told(fails: Fails) -> list[tuple[str, tuple[str, ...]]]:
    return [(fault.summary, fault.nodes) for fault in found(fails)]


def test_links_that_were_not_to_be_tried_are_no_doubt() -> None:
    known = links(lambda *_: None)
    assert faults(known, SUBNET, NAMES) == ()
    assert carries(known, SUBNET, NAMES) == Carries(whole=True)
    assert carries(known, "", NAMES) == Carries(whole=True)


def test_a_link_of_the_sample_that_was_not_tried_is_unknown() -> None:
    other = min(PEERS["n007"])
    known = links(lambda source, to: LinkCause.UNTRIED if (source, to) == ("n007", other) else None)
    left_out = doubt(known, SUBNET, NAMES)
    assert left_out is not None
    assert left_out.nodes == ("n007",)
    assert carries(known, "", NAMES).whole is None


def test_a_node_that_none_dialled_is_unknown() -> None:
    """It did not listen, so no other was asked to dial it, though it was among those to dial."""
    known = links(lambda *_: None)
    for name in PEERS["n033"]:
        known[name] = replace(known[name], tried_to=known[name].tried_to - {"n033"}, reaches=_less(known[name]))
    left_out = doubt(known, SUBNET, NAMES)
    assert left_out is not None
    assert set(left_out.nodes) == PEERS["n033"]


def _less(facts: LinkFacts) -> tuple[Reach, ...]:
    return tuple(replace(reach, tried=reach.tried - 1, reached=reach.reached - 1) for reach in facts.reaches)


def test_a_node_that_nobody_reaches_is_named_alone_and_the_message_says_how_far_that_was_tested() -> None:
    assert told(into(["n100"])) == [
        (f"n100 cannot be reached on {SUBNET} by any node, as far as it was tested: no answer", ("n100",))
    ]


def test_nodes_that_are_cut_off_from_the_rest_are_one_fault() -> None:
    rack = NAMES[75:115]
    (fault,) = found(crossing(rack))
    assert fault.nodes == tuple(rack)
    assert fault.summary == (
        f"n[075-114] and n[000-074,115-319] cannot reach each other on {SUBNET}, as far as it was tested: no answer"
    )


def test_two_halves_are_one_fault_that_names_both() -> None:
    half = Random(3).sample(NAMES, COUNT // 2)  # noqa: S311  the same half in every run
    (fault,) = found(crossing(half, LinkCause.UNROUTABLE))
    assert fault.nodes == tuple(NAMES)


def test_one_way_between_halves_is_one_fault() -> None:
    half = set(NAMES[: COUNT // 2])
    (fault,) = found(lambda source, to: LinkCause.FILTERED if source in half and to not in half else None)
    assert (fault.left, fault.right) == (tuple(NAMES[: COUNT // 2]), tuple(NAMES[COUNT // 2 :]))
    assert fault.nodes == tuple(NAMES)


def test_a_node_that_fails_with_most_of_those_it_tried_is_blamed_alone() -> None:
    rack = set(NAMES[96:112])
    (fault,) = found(lambda *ends: LinkCause.FILTERED if "n100" in ends and not rack.issuperset(ends) else None)
    assert fault.nodes == ("n100",)


def test_a_node_that_a_stranger_answers_for_is_blamed_alone() -> None:
    deceived = sorted(PEERS["n100"])[::3]
    (fault,) = found(lambda source, to: LinkCause.STRANGER if to == "n100" and source in deceived else None)
    assert fault.nodes == ("n100",)


def test_a_single_pair_names_both_ends() -> None:
    pair = {"n100", max(PEERS["n100"])}
    ((summary, nodes),) = told(lambda *ends: LinkCause.FILTERED if pair == set(ends) else None)
    assert set(nodes) == pair
    assert "as far as it was tested" not in summary


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_firewall_between_two_racks_is_found_and_names_nobody_else(seed: int) -> None:
    chance = Random(seed)  # noqa: S311  the same racks in every run
    one, other = (set(NAMES[16 * rack : 16 * rack + 16]) for rack in chance.sample(range(COUNT // 16), 2))
    seen = found(lambda *ends: LinkCause.FILTERED if one.intersection(ends) and other.intersection(ends) else None)
    assert seen
    assert {node for fault in seen for node in fault.nodes} <= one | other


def test_a_network_in_which_no_link_works_is_one_fault() -> None:
    (fault,) = found(lambda *_: LinkCause.FILTERED)
    assert fault.summary == f"no node reaches another one on {SUBNET}, as far as it was tested: no answer"


def test_a_node_that_loses_packets_is_named_alone() -> None:
    def losing(name: str, other: str) -> tuple[Loss, ...]:
        way = (18, 181) if name == "n100" else (0, 181)
        back = (0, 181) if name == "n100" else (18, 181)
        ends = ADDRESS[name], other, ADDRESS[other], SUBNET
        return tuple(Loss(*ends, *way, *back, alone=alone) for alone in (False, True))

    known = links(lambda *_: None)
    for name in NAMES:
        ends = [other for other in sorted(PEERS[name]) if "n100" in (name, other)]
        known[name] = replace(known[name], losses=tuple(loss for other in ends for loss in losing(name, other)))
    assert [(one.nodes, one.everywhere) for one in lossy(known)] == [(("n100",), False)]


@pytest.mark.parametrize("seed", range(10))
def test_every_broken_path_is_in_exactly_one_true_statement(seed: int) -> None:
    chance = Random(seed)  # noqa: S311  the same paths in every run
    asked = frozenset((name, other) for name, others in PEERS.items() for other in others)
    half, sick = set(chance.sample(NAMES, 40)), set(chance.sample(NAMES, 2))
    odds = (0.0, 0.002, 0.02, 0.1)[seed % 4]  # of a tenth of the links nearly all nodes have one
    broken = frozenset(
        path for path in asked
        if chance.random() < odds or path[1] in sick or (seed % 2 and len(half.intersection(path)) == 1)
    )  # fmt: skip
    folds = folded(NAMES, broken, asked - broken, asked)
    covered = [path for fold in folds for path in fold.paths]
    assert len(covered) == len(set(covered))
    assert set(covered) == broken
    for fold in folds:
        sides = {*fold.left, *fold.right}
        assert all(sides.intersection(path) for path in fold.paths)
        if fold.shape in (Shape.ONE_WAY, Shape.FORTH):
            assert all(source in fold.left and target in fold.right for source, target in fold.paths)
        assert set(fold.blamed) <= sides


def test_a_subset_of_the_nodes_keeps_what_they_were_to_dial() -> None:
    kept: Mapping[str, LinkFacts] = links(into(["n100"]))
    rest = frozenset(NAMES) - {"n100"}
    among = {name: facts.among(rest) for name, facts in kept.items() if name in rest}
    assert carries(among, SUBNET, sorted(rest)) == Carries(whole=True)
