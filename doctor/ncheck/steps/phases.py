"""The phases of a collection: which facts a run reads, in which order, and what each node is asked for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from ncheck.facts.definition import (
    ASKING_PEERS,
    COLLECTING,
    FINDING,
    LISTENING,
    LOOKING,
    LOOKING_AGAIN,
    READING_FILES,
    TRYING_PLAN,
    Fact,
)
from ncheck.facts.learning import ALWAYS, definition_of, sources_for
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.evidence import Source
from ncheck.model.phase import NotAsked, Phase, Question, Questions
from ncheck.settings import Settings

# Shares of the run's deadline after which the next phase no longer waits for a node that is busy.
UNTIL: Mapping[str, float] = {
    COLLECTING: 0.6,
    LISTENING: 0.65,
    ASKING_PEERS: 0.9,
    TRYING_PLAN: 1.0,
    READING_FILES: 1.0,
    FINDING: 0.7,
    LOOKING: 1.0,
}


def wanted_facts(of_checks: Collection[FactType], settings: Settings) -> tuple[FactType, ...]:
    """Return the facts that a run reads: those of its checks, unless --select leaves these out those of the plan
    and of nodes that only this machine may not reach, and those that the questions about all these need.
    """
    if settings.select:
        return with_needs(of_checks)
    from ncheck.facts.lost_peers import LostPeerFacts
    from ncheck.facts.plan_facts import PLAN_FACTS

    return with_needs((*of_checks, *PLAN_FACTS, LostPeerFacts))


def with_needs(wanted: Collection[FactType]) -> tuple[FactType, ...]:
    """Return the wanted facts and those that their questions need, down to the last, each once."""
    definitions = [one for fact in wanted if (one := definition_of(fact))]
    once = tuple(dict.fromkeys((*wanted, *(need for one in definitions for need in one.needs))))
    return once if set(once) == set(wanted) else with_needs(once)


def collection_phases(cluster: Cluster, wanted: Collection[FactType], settings: Settings) -> tuple[Phase, ...]:
    """Return the phases that read the wanted facts: the first asks every node, the last only waits for slow ones."""
    definitions = [one for fact in dict.fromkeys((*ALWAYS, *wanted)) if (one := definition_of(fact))]
    exempt = {one.record: one.exempt(cluster, settings) if one.exempt else {} for one in definitions}
    alike = sources_for(one.record for one in definitions if one.for_all_alike)
    # Nodes that are exempt for the same reasons share their questions.
    made = cache(lambda reasons: _first_questions(definitions, reasons, alike))
    first = {name: made(tuple(exempt[one.record].get(name) for one in definitions)) for name in cluster.names}
    phases = []
    for stage, until in UNTIL.items():
        asked = [one for one in definitions if one.questions and one.phase is stage and _asks(one, exempt, cluster)]
        nodes = {name for name in cluster.names if any(name not in exempt[one.record] for one in asked)}
        if stage is COLLECTING:
            phases.append(_phase(stage, cluster.names, asked, first, until, settings))
        elif nodes:
            phases.append(_phase(stage, nodes, asked, {}, until, settings))
    phases.append(Phase(phases[-1].stage, frozenset(), None))  # waits for nodes that are slow, until the deadline
    return tuple(phases)


_LOOK = 10.0  # seconds, beyond the deadline where slow nodes took all the time: files are read, which takes no time


def last_phases(cluster: Cluster, wanted: Collection[FactType], settings: Settings) -> tuple[Phase, ...]:
    """Return what is asked at the very end, when all was measured: the second look at what counts during the run."""
    definitions = [one for fact in wanted if (one := definition_of(fact)) and one.phase is LOOKING_AGAIN]
    if not definitions:
        return ()
    looking = _phase(LOOKING_AGAIN, cluster.names, definitions, {}, 1.0, settings)
    return (replace(looking, seconds=_LOOK, meeting=False),)


Exempt = Mapping[FactType, Mapping[str, str]]


def _asks(definition: Fact[object], exempt: Exempt, cluster: Cluster) -> bool:
    return len(exempt[definition.record]) < len(cluster)


def _phase(  # noqa: PLR0913, PLR0917  each is a part of the phase
    stage: str,
    nodes: Collection[str],
    asked: Collection[Fact[object]],
    alike: Questions,
    until: float,
    settings: Settings,
) -> Phase:
    def questions(cluster: Cluster, seconds: float) -> Questions:
        made = [alike, *(one.questions(cluster, settings, seconds) for one in asked if one.questions)]
        names = {name for questions in made for name in questions}
        return {name: tuple(one for questions in made for one in questions.get(name, ())) for name in names}

    return Phase(stage, frozenset(nodes), questions, until)


def _first_questions(
    definitions: Sequence[Fact[object]], reasons: Sequence[str | None], alike: Sequence[Source]
) -> tuple[Question, ...]:
    """Return what a node is asked first that is exempt from these facts for these reasons.

    A source that facts share is asked for, unless the fact is exempt that it is the first source of, or all of them
    are.
    """
    not_asked: dict[str, NotAsked] = {}
    wanted: set[str] = set()
    owned: set[str] = set()
    for one, reason in zip(definitions, reasons, strict=True):
        if reason:
            owned.update(source.key for source in one.sources[:1])
            not_asked |= {source.key: NotAsked(source, reason) for source in one.sources}
        else:
            wanted |= {source.key for source in one.sources}
    left_out = {key: one for key, one in not_asked.items() if key in owned or key not in wanted}
    return (*(source for source in alike if source.key not in left_out), *left_out.values())


def asked_later(phases: Iterable[Phase], cluster: Cluster) -> frozenset[str]:
    """Return the nodes whose connections must stay open after the first phase.

    While links are tried that is every node: one that is done still listens for those that are not.
    """
    _, *later = phases
    return frozenset().union(*(phase.nodes for phase in later)) & frozenset(cluster.names)
