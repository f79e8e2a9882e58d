"""Which facts are read in which phase, and what their questions need."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import ncheck.facts
from ncheck.facts.definition import MEASURING, ON_THIS_MACHINE, Fact
from ncheck.facts.learning import definition_of
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.planned_pick import PlannedPickFacts
from ncheck.facts.ssh_peers import PeerSshFacts
from ncheck.model.cluster import Cluster
from ncheck.phases import UNTIL, asked_later, collection_phases, with_needs
from ncheck.settings import Settings

MODULES = [import_module(found.name) for found in pkgutil.iter_modules(ncheck.facts.__path__, "ncheck.facts.")]
DEFINITIONS: list[Fact[object]] = [fact for module in MODULES for fact in getattr(module, "FACTS", ())]


def test_what_a_question_needs_is_wanted_too_down_to_the_last() -> None:
    assert {PlannedPickFacts, ListenFacts, NicFacts, IdentityFacts, LoginFacts} <= set(with_needs([PlannedPickFacts]))


def test_no_fact_is_wanted_twice_for_each_would_be_parsed_twice() -> None:
    assert with_needs([NicFacts, LoginFacts, NicFacts]) == (NicFacts, LoginFacts)
    assert len(set(with_needs([PlannedPickFacts, NicFacts, NicFacts]))) == len(with_needs([PlannedPickFacts, NicFacts]))


def test_each_fact_is_defined_once_in_the_module_of_its_record() -> None:
    assert len(DEFINITIONS) >= 30
    assert [one.record for one in DEFINITIONS if definition_of(one.record) is not one] == []


def test_every_fact_is_read_in_a_phase_that_there_is() -> None:
    assert {one.phase for one in DEFINITIONS} == {*UNTIL, ON_THIS_MACHINE, MEASURING}
    assert [one.record for one in DEFINITIONS if one.phase not in (*UNTIL, ON_THIS_MACHINE, MEASURING)] == []


def test_what_a_question_needs_is_read_in_an_earlier_phase() -> None:
    order = [*UNTIL, MEASURING]
    for one in DEFINITIONS:
        for need in one.needs if one.phase != MEASURING else ():
            earlier = definition_of(need)
            assert earlier, need
            assert not earlier.sources or order.index(earlier.phase) < order.index(one.phase), (one.record, need)


def test_one_phase_is_enough_where_nobody_is_asked_about_the_others() -> None:
    cluster = Cluster.of({"a": {}, "b": {}})
    phases = collection_phases(cluster, with_needs([PeerSshFacts, ListenFacts]), Settings(mesh="none"))
    assert [phase.stage for phase in phases if phase.questions] == ["collecting"]
    assert asked_later(phases, cluster) == frozenset()


def test_while_links_are_tried_every_connection_stays_open() -> None:
    cluster = Cluster.of({"a": {}, "b": {}})
    phases = collection_phases(cluster, with_needs([LinkFacts]), Settings())
    assert [phase.stage for phase in phases if phase.questions] == ["collecting", "listening", "asking its peers"]
    assert asked_later(phases, cluster) == {"a", "b"}
