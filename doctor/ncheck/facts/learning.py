"""Evidence to facts: what nodes answered is parsed as it arrives, so memory does not grow with the size of answers."""

from __future__ import annotations

import marshal
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter, is_
from typing import TYPE_CHECKING, NamedTuple, cast

from ncheck.decode import MisfitError, decoded
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import called
from ncheck.facts.login import IdentityFacts, ListingFacts, LoginFacts
from ncheck.facts.run import UnreadFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import (
    INTERRUPTED,
    ROUND,
    Answer,
    Cause,
    Evidence,
    File,
    Login,
    Note,
    Reply,
    Source,
    Status,
    Tree,
)
from ncheck.model.fact import Absent, Unread

if TYPE_CHECKING:
    from ncheck.facts.definition import Fact
    from ncheck.model.cluster import Facts, FactType

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
    reader = _Reader((*ALWAYS, *wanted))
    try:
        for one in evidence:
            earlier = known.get(one.node, {})
            known[one.node] = _joined(earlier, reader.facts(one, reader.answered(one, first=LoginFacts not in earlier)))
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
    reader = _Reader(wanted)
    for name, login in cluster.facts(LoginFacts).items():
        facts = cluster.known[name]
        missing = [fact for fact in reader.definitions if fact not in facts]
        expected = [fact for fact in missing if not (recorded and reader.definitions[fact].unrecorded)]
        never = {} if login.login.cause else dict.fromkeys(reader.sources(expected), why)
        known[name] = {**reader.facts(Evidence(name, login.login, replies=never, recorded=recorded), missing), **facts}
    return replace(cluster, known=known)


def definition_of(fact: FactType) -> Fact[object] | None:
    """Return how a fact is read; None for what the run itself contributes. Its module lists it in FACTS; a fact that is
    made while ncheck runs has it as DEFINITION.

    LoginFacts is the exception: it lies beside Cluster, which reads it, and the module of IdentityFacts lists it.
    """
    if own := getattr(fact, "DEFINITION", None):
        return cast("Fact[object]", own)
    module = (IdentityFacts if fact is LoginFacts else fact).__module__
    definitions: tuple[Fact[object], ...] = getattr(sys.modules[module], "FACTS", ())
    return next((one for one in definitions if one.record is fact), None)


def sources_for(facts: Iterable[FactType]) -> tuple[Source, ...]:
    """Return what must be read for these facts, each source once: first what may take seconds."""
    definitions = (definition_of(fact) for fact in facts)
    once = {source.key: source for one in definitions if one for source in one.sources}
    return tuple(sorted(once.values(), key=lambda source: not source.slow))


def facts_of(evidence: Evidence, wanted: Iterable[FactType]) -> dict[FactType, object]:
    """Parse the wanted facts of one node. Each is a fact, Unread or Absent; nothing is raised for a bad node."""
    reader = _Reader(wanted)
    return reader.facts(evidence, reader.definitions)


# The type of a reply's value. A folder of a tree is None, an unreadable file {"error": why}.
_DECLARED: Mapping[type[Source], object] = {File: str, Tree: Mapping[str, str | Mapping[str, object] | None]}
_KINDS = 8  # of answers to the same question that are remembered: where all nodes differ, nothing is kept of them


class _Reader:
    """Reads facts of many nodes. What several of them answer alike is parsed once, and is one object."""

    def __init__(self, wanted: Iterable[FactType]) -> None:
        self.definitions = {fact: one for fact in wanted if (one := definition_of(fact))}
        self.alike: dict[FactType, dict[object, object]] = {fact: {} for fact in self.definitions}
        self.latest: dict[_Part, _Read] = {}  # of the nodes before
        self.unusable: dict[str, Unread] = {}  # why nothing could be read of a node: one object for all such nodes
        self.of_login = {fact for fact, one in self.definitions.items() if not one.sources}
        self.of_all = {fact for fact, one in self.definitions.items() if one.sources and one.for_all_alike}
        self.of_key: dict[str, list[FactType]] = {}
        for fact, one in self.definitions.items():
            for source in one.sources:
                self.of_key.setdefault(source.key, []).append(fact)
        parts: dict[tuple[str, object], _Part] = {}
        self.parts = {
            fact: tuple([parts.setdefault((part.key, part.shape), part) for part in _parts(one)])
            for fact, one in self.definitions.items()
        }

    def sources(self, facts: Iterable[FactType]) -> Iterator[str]:
        """Return the keys of what must be read for these facts."""
        return (source.key for fact in facts for source in self.definitions[fact].sources)

    def answered(self, evidence: Evidence, *, first: bool) -> list[FactType]:
        """Return the wanted facts that this part of a node's evidence holds.

        What is read off the login alone is read again from each part that has it: a connection may fail in any phase.
        Facts of the first phase that were not answered are unread; those of later phases may still come.
        """
        has_login = first or evidence.greeting is not None  # what this machine answers for a node has none
        rounds = {key.rpartition(ROUND)[0] for key in evidence.keys if ROUND in key}
        held = {fact for key in rounds | evidence.keys for fact in self.of_key.get(key, ())}
        held |= self.of_login if has_login else set()
        held |= self.of_all if first else set()
        return [fact for fact in self.definitions if fact in held]

    def facts(self, evidence: Evidence, wanted: Iterable[FactType]) -> dict[FactType, object]:
        """Return the wanted facts, and which of them could not be read."""
        why = _unusable(evidence)
        node = _OneNode(evidence, self.unusable.setdefault(why, Unread(why)) if why else None, self)
        facts = {fact: self._fact(node, self.definitions[fact]) for fact in wanted}
        return {**facts, UnreadFacts: _unread(evidence, facts, self.definitions)}

    def _fact(self, node: _OneNode, definition: Fact[object]) -> object:
        if definition.sources and node.unusable:
            return node.unusable
        alike, answer = self.alike[definition.record], node.answer(definition)
        if answer is None:
            return _fact(node, definition)
        latest, fact = next(reversed(alike.values()), None), alike.pop(answer, None)
        if fact is None:
            fact = _fact(node, definition, latest)
        alike[answer] = fact
        if len(alike) > _KINDS:
            del alike[next(iter(alike))]
        return fact


class _OneNode:
    """One node's evidence. Each reply is compared with its declared type once, however many facts are made of it."""

    def __init__(self, evidence: Evidence, unusable: Unread | None, reader: _Reader) -> None:
        self.evidence = evidence
        self.unusable = unusable
        self.rounds = any(ROUND in key for key in evidence.keys)
        self.wrong: dict[str, str] = {}
        self.reader = reader
        self.encoded: dict[_Part, bytes | None] = {}

    def answer(self, definition: Fact[object]) -> object:
        """Return what a fact is made of, to be compared; None where it is made of more than replies.

        The seconds that a reply took do not count, but for a timeout: its reason names them.
        """
        if not definition.sources or self.rounds or definition.of_its_node:
            return None
        parts = [self._encoded(part) for part in self.reader.parts[definition.record]]
        return None if None in parts else (self.evidence.recorded, *parts)

    def misshapen(self, sources: Iterable[Source]) -> Unread | None:
        """Return which answer is not of its declared type; None if each is."""
        for source in sources:
            if source.key not in self.wrong:
                self.wrong[source.key] = self._misfit(source)
            if wrong := self.wrong[source.key]:
                return Unread(f"{called(source)} cannot be read: {wrong}")
        return None

    def _misfit(self, source: Source) -> str:
        reply, declared = self.evidence.reply(source), _DECLARED.get(type(source))
        if declared is None or not reply.succeeded:
            return ""
        try:
            decoded(reply.value, declared)
        except MisfitError as wrong:
            return str(wrong)
        return ""

    def _encoded(self, part: _Part) -> bytes | None:
        """Return a reply as bytes that differ where any value or type in it does: True is no 1.

        It has those of the node before where it is the same, or where what is read of it is.
        """
        if part not in self.encoded:
            reply = self.evidence.notes.get(part.key) or self.evidence.replies.get(part.key)
            self.encoded[part] = self._compared(part, reply) if reply else None
        return self.encoded[part]

    def _compared(self, part: _Part, reply: Reply | Note) -> bytes | None:
        latest = self.reader.latest.get(part)
        if latest and _same(reply, latest.reply):
            if latest.read is not None:
                self.evidence.read[part.key, part.shape] = latest.read
            return latest.encoded
        read = self._read(part, reply)
        alike = latest and read is not None and read == latest.read
        encoded = latest.encoded if latest and alike else _as_bytes(reply)
        self.reader.latest[part] = _Read(reply, encoded, read)
        return encoded

    def _read(self, part: _Part, reply: Reply | Note) -> object:
        """Return what is read of an answer with a declared type; None where more is."""
        if part.answer is None or isinstance(reply, Note) or not reply.succeeded or reply.asked is not None:
            return None
        with suppress(MisfitError):
            return answer_of(part.answer, self.evidence, shape=part.shape)
        return None


@dataclass(frozen=True, eq=False)
class _Part:
    """What a fact is made of: the key of a source, and of an answer the type as which it is read."""

    key: str
    answer: Answer | None = None
    shape: object = None


def _parts(definition: Fact[object]) -> Iterator[_Part]:
    for one in definition.sources:
        shape = one.shape if isinstance(one, Answer) and definition.parse else definition.record
        yield _Part(one.key, one, shape) if isinstance(one, Answer) and shape else _Part(one.key)


class _Read(NamedTuple):
    """A reply of one node, its bytes, and what its declared type holds of it."""

    reply: Reply | Note
    encoded: bytes | None
    read: object


def _same(reply: Reply | Note, other: Reply | Note) -> bool:
    """Whether both are one object, or consist of the same ones but for the seconds: files of a recording share them."""
    if reply is other or isinstance(reply, Note) or isinstance(other, Note):
        return reply is other
    timeout = reply.status is Status.TIMEOUT and reply.seconds != other.seconds
    return not timeout and all(map(is_, _PARTS(reply), _PARTS(other)))


_PARTS = attrgetter("status", "reason", "exit_status", "stdout", "stderr", "truncated", "value", "asked")


def _as_bytes(reply: Reply | Note) -> bytes | None:
    if isinstance(reply, Note):
        return marshal.dumps((reply.reason, reply.failed, reply.remedy, reply.asked), _BY_VALUE)
    seconds = reply.seconds if reply.status is Status.TIMEOUT else 0.0
    texts = (reply.status.value, reply.reason, reply.exit_status, reply.stdout, reply.stderr, reply.truncated)
    try:
        return marshal.dumps((*texts, reply.value, reply.asked, seconds), _BY_VALUE)
    except ValueError:  # no JSON
        return None


_BY_VALUE = 2  # the last format of marshal in which equal values are equal bytes, wherever they lie in memory


def _joined(earlier: Facts, later: Facts) -> Facts:
    """Return a node's facts with those of a later part of its evidence. Some facts come in parts, and add up."""
    parts = {
        fact: value.after(earlier[fact])
        for fact, value in later.items()
        if fact in earlier and hasattr(value, "after") and isinstance(earlier[fact], fact)
    }
    unread = earlier.get(UnreadFacts)
    kept: Facts = {UnreadFacts: unread} if isinstance(unread, UnreadFacts) else {}
    return {**earlier, **later, **kept, **parts}


def _unread(
    evidence: Evidence, facts: Mapping[FactType, object], definitions: Mapping[FactType, Fact[object]]
) -> UnreadFacts | Unread:
    """Return what should have been readable on a reached node and was not.

    What never came because the connection ended is not listed fact by fact: the cause is a finding of its own. Nor is
    what ^C cut short.
    """
    if why := _unusable(evidence):
        return Unread(why)
    unread = {fact: value for fact, value in facts.items() if isinstance(value, Unread) and not value.needs_root}
    came = {
        fact: value
        for fact, value in unread.items()
        if INTERRUPTED not in value.reason
        and (evidence.login.cause is None or all(one.key in evidence.keys for one in definitions[fact].sources))
    }
    return UnreadFacts({fact.__name__: value for fact, value in came.items()})


def _fact(node: _OneNode, definition: Fact[object], latest: object = None) -> object:
    """Return a fact of one node: `latest` itself, that of another node, where it is equal."""
    fact = _parsed(node, definition)
    return latest if fact == latest else fact


def _parsed(node: _OneNode, definition: Fact[object]) -> object:
    if definition.was_not_asked(node.evidence):
        return Absent(definition.unrecorded)
    try:
        if definition.parse is None:
            return answer_of(cast("Answer", definition.sources[0]), node.evidence, shape=definition.record)
        if misshapen := node.misshapen(definition.sources):
            return misshapen
        return definition.parse(node.evidence)
    except MisfitError as wrong:
        return Unread(str(wrong))
    except Exception as error:  # noqa: BLE001  whatever a reader stumbles on costs this fact of this node, not the run
        return Unread(f"could not be parsed: {type(error).__name__}: {error}")


def _unusable(evidence: Evidence) -> str:
    """Say why nothing at all can have been read there; what was answered before a connection failed is still read."""
    login = evidence.login
    if not login.reached:
        return f"not reached ({login.cause.value if login.cause else 'no cause known'})"
    return f"{login.cause.value}: {login.detail}" if login.cause and not evidence.keys else ""
