"""Which facts are asked for in which act, and what their questions are made of."""

from __future__ import annotations

from doctor.acts import LATER, STAGES, acts_for, with_needs
from doctor.collect import HOMES
from doctor.company import Company
from doctor.model.facts import IdentityFacts, ListenFacts, LoginFacts, NicFacts, PeerSshFacts, PlannedPickFacts
from doctor.model.node import Node
from doctor.settings import Settings


def test_what_a_question_is_made_of_is_wanted_too_down_to_the_last() -> None:
    assert {PlannedPickFacts, ListenFacts, NicFacts, IdentityFacts, LoginFacts} <= set(with_needs([PlannedPickFacts]))


def test_no_fact_is_wanted_twice_for_each_would_be_parsed_twice() -> None:
    assert with_needs([NicFacts, LoginFacts, NicFacts]) == (NicFacts, LoginFacts)
    assert len(set(with_needs([PlannedPickFacts, NicFacts, NicFacts]))) == len(with_needs([PlannedPickFacts, NicFacts]))


def test_every_later_fact_has_a_stage_and_a_reader() -> None:
    assert {how.stage for how in LATER.values() if how.ask} == set(STAGES)
    assert set(LATER) <= set(HOMES)


def test_one_act_is_enough_where_nobody_is_asked_about_the_others() -> None:
    company = Company((Node("a"), Node("b")), {}, Settings(mesh="none"))
    assert [act.stage for act in acts_for(company, with_needs([PeerSshFacts, ListenFacts]))] == ["collecting"]
