"""Evidence to facts: what nodes answered is parsed as it arrives, so memory does not grow with the size of answers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.facts.definition import called
from ncheck.facts.login import IdentityFacts, ListingFacts, LoginFacts
from ncheck.facts.run import UnreadFacts
from ncheck.facts.shapes import misfit, shape_of
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import TURN, Cause, Evidence, Login, Reply
from ncheck.model.fact import Absent, Unread

if TYPE_CHECKING:
    from ncheck.facts.definition import Fact
    from ncheck.model.cluster import Facts, FactType
    from ncheck.model.evidence import Source

ALWAYS: tuple[FactType, ...] = (ListingFacts, LoginFacts, IdentityFacts)  # read off the login: they cost no question


class InterruptedLearningError(KeyboardInterrupt):
    """^C came while nodes were answering. `cluster` is what was known by then."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster


def learn(cluster: Cluster, evidence: Iterable[Evidence], wanted: Collection[FactType]) -> Cluster:
    """Return the cluster with the wanted facts that this evidence holds. Evidence itself is not kept.

    Raises InterruptedLearningError on ^C.
    """
    known = dict(cluster.known)
    try:
        for one in evidence:
            earlier = known.get(one.node, {})
            known[one.node] = _joined(earlier, facts_of(one, _answered(one, wanted, first=LoginFacts not in earlier)))
    except KeyboardInterrupt:
        raise InterruptedLearningError(replace(cluster, known=known)) from None
    return replace(cluster, known=known)


def unheard(cluster: Cluster, why: str) -> list[Evidence]:
    """Return evidence that stands for the nodes that never answered anything."""
    login = Login(reached=False, cause=Cause.DEADLINE, detail=why)
    silent = (node for node in cluster.nodes if LoginFacts not in cluster.known.get(node.name, {}))
    return [Evidence(node.name, login, places=node.places, slots=node.slots) for node in silent]


def complete(cluster: Cluster, wanted: Collection[FactType], why: Reply, *, recorded: bool = False) -> Cluster:
    """Return the cluster with a reason for each wanted fact that never came: why the node's session failed, or `why`,
    for which no node is at fault.
    """
    known: dict[str, Facts] = {}
    for name, login in cluster.facts(LoginFacts).items():
        facts = cluster.known[name]
        missing = [fact for fact in wanted if fact not in facts]
        never = {} if login.login.cause else {source.key: why for source in sources_for(missing)}
        known[name] = {**facts_of(Evidence(name, login.login, replies=never, recorded=recorded), missing), **facts}
    return replace(cluster, known=known)


def definition_of(fact: FactType) -> Fact[object] | None:
    """Return how a fact is read; None for what the run itself contributes. Its module lists it in FACTS."""
    definitions: tuple[Fact[object], ...] = getattr(sys.modules[fact.__module__], "FACTS", ())
    return next((one for one in definitions if one.record is fact), None)


def sources_for(facts: Iterable[FactType]) -> tuple[Source, ...]:
    """Return what must be read for these facts, each source once."""
    definitions = (definition_of(fact) for fact in facts)
    return tuple({source.key: source for one in definitions if one for source in one.sources}.values())


def facts_of(evidence: Evidence, wanted: Iterable[FactType]) -> dict[FactType, object]:
    """Parse the wanted facts of one node. Each is a fact, Unread or Absent; nothing is raised for a bad node."""
    definitions = {fact: one for fact in wanted if (one := definition_of(fact))}
    facts = {fact: _fact(evidence, one) for fact, one in definitions.items()}
    return {**facts, UnreadFacts: _unread(evidence, facts, definitions)}


def _answered(evidence: Evidence, wanted: Collection[FactType], *, first: bool) -> tuple[FactType, ...]:
    """Return the wanted facts that this part of a node's evidence holds.

    What is read off the login alone is read again from each part that has it: a connection may fail in any phase. Facts
    of the first phase that were not answered are unread; those of later phases may still come.
    """
    has_login = first or evidence.greeting is not None  # what this machine answers for a node has none
    replies = {key.rpartition(TURN)[0] for key in evidence.replies} | evidence.replies.keys()

    def holds(fact: FactType) -> bool:
        definition = definition_of(fact)
        if definition is None:
            return False
        sources = definition.sources
        unasked = (first and definition.for_all_alike) or (has_login and not sources)
        return unasked or any(one.key in replies for one in sources)

    read_from_login = ALWAYS if has_login else ()
    return tuple(fact for fact in dict.fromkeys((*read_from_login, *wanted)) if holds(fact))


def _joined(earlier: Facts, later: Facts) -> Facts:
    """Return a node's facts with those of a later part of its evidence. Some facts come in parts, and add up."""
    parts = {
        fact: value.after(earlier[fact])
        for fact, value in later.items()
        if hasattr(value, "after") and isinstance(earlier.get(fact), fact)
    }
    unread = earlier.get(UnreadFacts)
    kept: Facts = {UnreadFacts: unread} if isinstance(unread, UnreadFacts) else {}
    return {**earlier, **later, **kept, **parts}


def _unread(
    evidence: Evidence, facts: Mapping[FactType, object], definitions: Mapping[FactType, Fact[object]]
) -> UnreadFacts | Unread:
    """Return what should have been readable on a reached node and was not.

    What never came because the connection ended is not listed fact by fact: the cause is a finding of its own.
    """
    if why := _unusable(evidence):
        return Unread(why)
    unread = {fact: value for fact, value in facts.items() if isinstance(value, Unread) and not value.needs_root}
    came = {
        fact: value
        for fact, value in unread.items()
        if evidence.login.cause is None or all(one.key in evidence.replies for one in definitions[fact].sources)
    }
    return UnreadFacts({fact.__name__: value for fact, value in came.items()})


def _fact(evidence: Evidence, definition: Fact[object]) -> object:
    if definition.sources and (why := _unusable(evidence)):
        return Unread(why)
    try:
        return _misshapen(evidence, definition.sources) or _held(definition.parse(evidence), definition)
    except Exception as error:  # noqa: BLE001  whatever a reader stumbles on costs this fact of this node, not the run
        return Unread(f"could not be parsed: {type(error).__name__}: {error}")


def _misshapen(evidence: Evidence, sources: Iterable[Source]) -> Unread | None:
    """Return which answer is not of its declared type; None if each is."""
    for source in sources:
        reply, shape = evidence.reply(source), shape_of(source)
        if shape and reply.succeeded and (wrong := misfit(reply.value, shape)):
            return Unread(f"{called(source)} cannot be read: {wrong}")
    return None


def _held(fact: object, definition: Fact[object]) -> object:
    """Return a fact; Unread where its fields are not of the types that its record declares."""
    if definition.sources and not isinstance(fact, (Unread, Absent)) and (wrong := misfit(fact, definition.record)):
        return Unread(f"could not be parsed: {wrong}")
    return fact


def _unusable(evidence: Evidence) -> str:
    """Say why nothing at all can have been read there; what was answered before a connection failed is still read."""
    login = evidence.login
    if not login.reached:
        return f"not reached ({login.cause.value if login.cause else 'no cause known'})"
    return f"{login.cause.value}: {login.detail}" if login.cause and not evidence.replies else ""
