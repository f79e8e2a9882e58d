"""Which network is the job's, and why the others are not used, in small clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.plan import Setting
from ncheck.plan.advice import Advice
from ncheck.plan.networks import Network

from .clusters import ACTIVE, DOCKER, FAST, IFNAME, MANAGEMENT, RULE, advised, chosen, node, two

RIGHT = "not needed, NCCL picks eth0"


def test_the_fastest_network_that_carries_is_the_jobs() -> None:
    assert chosen(advised(*two(MANAGEMENT, FAST))) == ("=eth1", "10.2.0.0/24", ())


def test_a_fast_network_that_goes_nowhere_is_left_out_and_the_plan_says_why() -> None:
    made = advised(*two(MANAGEMENT, FAST), dead=["10.2.0.0/24"])
    why = "10.2.0.0/24 is not used: n1 and n2 cannot reach each other on 10.2.0.0/24: no answer"
    assert chosen(made) == ("=eth0", "10.1.0.0/24", (why,))
    assert made.env[IFNAME].evidence == (f"eth0 is in 10.1.0.0/24; NCCL picks eth0 ({RULE}): n[1-2]", why)


def test_a_fast_network_that_one_node_lacks_is_left_out_and_the_plan_says_which() -> None:
    made = advised(*two(MANAGEMENT, FAST), node("eth0 10.1.0.3 1000 default"))
    why = "10.2.0.0/24 is not used: n3 has no address in it"
    assert chosen(made) == ("=eth0", "10.1.0.0/24", (why,))


def test_of_a_card_without_a_link_the_plan_says_that_and_not_that_it_has_no_address() -> None:
    nodes = [*two(MANAGEMENT, FAST), node("eth0 10.1.0.3 1000 default", "eth1 10.2.0.3")]
    lo, eth0, eth1 = nodes[2][NicFacts].interfaces  # type: ignore[attr-defined]
    nodes[2] = {**nodes[2], NicFacts: NicFacts((lo, eth0, replace(eth1, running=False)))}
    assert chosen(advised(*nodes))[1:] == ("10.1.0.0/24", ("10.2.0.0/24 is not used: eth1 has no link on n3",))


def test_a_slower_network_that_some_lack_stands_in_the_evidence_only() -> None:
    made = advised(*two("eth0 10.1.0.# 10000", "eth1 10.3.0.# 1000"), node("eth0 10.1.0.3 10000"))
    assert chosen(made) == ("=eth0", "10.1.0.0/24", ())
    assert made.env[IFNAME].evidence[-1] == "10.3.0.0/24 is not used: n3 has no address in it"


def test_where_no_network_is_whole_the_best_is_named_as_the_one_to_mend() -> None:
    made = advised(*two(MANAGEMENT), dead=["10.1.0.0/24"])
    why = "n1 and n2 cannot reach each other on 10.1.0.0/24: no answer"
    assert chosen(made) == (
        None, "10.1.0.0/24", (f"no network connects all nodes; the plan uses 10.1.0.0/24, so fix this first: {why}",),
    )  # fmt: skip


def test_where_nobody_tried_the_choice_stands_and_a_note_says_so() -> None:
    note = "it is unknown whether all nodes reach each other on 10.2.0.0/24: not tested: --mesh none"
    assert chosen(advised(*two(MANAGEMENT, FAST), tested=False)) == ("=eth1", "10.2.0.0/24", (note,))


def test_with_infiniband_ranks_meet_on_the_management_network() -> None:
    nodes = [{**facts, InfinibandFacts: ACTIVE} for facts in two("ib0 10.9.0.# 400000 infiniband", MANAGEMENT)]
    assert chosen(advised(*nodes)) == (None, "10.9.0.0/24", ())  # NCCL takes ib* first, and it carries
    why = "10.9.0.0/24 is not used: n1 and n2 cannot reach each other on 10.9.0.0/24: no answer"
    assert chosen(advised(*nodes, dead=["10.9.0.0/24"])) == ("=eth0", "10.1.0.0/24", (why,))


def test_docker_on_all_nodes_is_no_network() -> None:
    made = advised(*two(DOCKER, MANAGEMENT))
    assert made == Advice(
        {IFNAME: Setting(None, RIGHT, (f"eth0 is in 10.1.0.0/24; NCCL picks eth0 ({RULE}): n[1-2]",), pin="=eth0")},
        network=made.network,
    )
    assert isinstance(made.network, Network)
    assert made.network.subnet == "10.1.0.0/24"


def test_a_subnet_with_one_address_on_several_nodes_is_no_network_and_the_evidence_says_so() -> None:
    made = advised(*two("br0 192.168.9.1 bridge", MANAGEMENT))
    assert (
        made.env[IFNAME].evidence[-1] == "192.168.9.0/24 is not used: n[1-2] have the same address in it, 192.168.9.1"
    )


@pytest.mark.parametrize(("nodes", "why"), [
    ([("eth0 10.1.0.1",), ("eth0 10.2.0.2", "eth1 10.3.0.2"), ("eth0 10.2.0.3",)],
     "the nodes have no subnet in common: 10.2.0.0/24 on n[2-3], 10.1.0.0/24 on n1, 10.3.0.0/24 on n2"),
    ([("eth0 10.1.0.1",), (DOCKER,)], "n2 has no usable interface"),
])  # fmt: skip
def test_where_nothing_is_common_to_all_the_plan_says_what_it_could_not_decide(
    nodes: list[tuple[str, ...]], why: str
) -> None:
    made = advised(*(node(*words) for words in nodes))
    reason, found = made.env[IFNAME].reason, made.env[IFNAME]
    assert (reason.startswith(why), "see ncheck explain NC30" in reason) == (True, True)
    assert (found.value, found.decided, made.network) == (None, False, None)
