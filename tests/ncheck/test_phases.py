"""Which facts are asked for in which act, and what their questions are made of."""

from __future__ import annotations

from ncheck.facts.links import ListenFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.nccl_pick import PlannedPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.parsing import HOMES
from ncheck.facts.ssh_peers import PeerSshFacts
from ncheck.model.cluster import Cluster
from ncheck.model.node import Node
from ncheck.phases import LATER, STAGES, acts_for, with_needs
from ncheck.settings import Settings


def test_what_a_question_is_made_of_is_wanted_too_down_to_the_last() -> None:
    assert {PlannedPickFacts, ListenFacts, NicFacts, IdentityFacts, LoginFacts} <= set(with_needs([PlannedPickFacts]))


def test_no_fact_is_wanted_twice_for_each_would_be_parsed_twice() -> None:
    assert with_needs([NicFacts, LoginFacts, NicFacts]) == (NicFacts, LoginFacts)
    assert len(set(with_needs([PlannedPickFacts, NicFacts, NicFacts]))) == len(with_needs([PlannedPickFacts, NicFacts]))


def test_every_later_fact_has_a_stage_and_a_reader() -> None:
    assert {how.stage for how in LATER.values() if how.ask} == set(STAGES)
    assert set(LATER) <= set(HOMES)


def test_one_act_is_enough_where_nobody_is_asked_about_the_others() -> None:
    cluster = Cluster((Node("a"), Node("b")), {}, Settings(mesh="none"))
    assert [act.stage for act in acts_for(cluster, with_needs([PeerSshFacts, ListenFacts]))] == ["collecting"]
