"""The acts of a run: what every node is asked first, and what is asked later because it needs the others' answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ncheck.facts.arrivals import ArrivalFacts, ask_arrivals
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import LinkFacts, ListenFacts, ask_connect, ask_listen, spared_listening
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.names import NameFacts, ask_names
from ncheck.facts.nccl_pick import PlannedPickFacts, ask_pick, spared_pick
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.parsing import HOMES, reader_of, sources_for
from ncheck.facts.probe import MeetingFacts, ProbeFacts
from ncheck.facts.routes import MADE_FROM, RouteFacts, ask_routes
from ncheck.facts.ssh_peers import PeerSshFacts, ask_peers, spared_peers
from ncheck.facts.tools import ToolFacts, ask_tools
from ncheck.judge import facts_wanted
from ncheck.model.check import Check
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.evidence import TURN, Evidence
from ncheck.model.phase import Act, NotAsked, Questions
from ncheck.plan import PLAN_FACTS
from ncheck.probe.steps import PROBE_FACTS, spared_probe
from ncheck.settings import Settings

Maker = Callable[[Cluster, float], Questions]


@dataclass(frozen=True)
class Later:
    """A fact that each node is asked for in words of its own, in which act, and the facts that they are made of.

    What is made of the listing alone is asked in the first act.
    `ask` None: it is asked in rounds, each made of what the one before it told (probe/). `spared` tells, before
    anything was asked, which nodes have nothing to tell of it, and why.
    """

    stage: str
    ask: Maker | None
    needs: tuple[FactType, ...]
    spared: Callable[[Cluster], Mapping[str, str]]


_WHERE = (LoginFacts, IdentityFacts, NicFacts, InterpreterFacts)


LATER: Mapping[FactType, Later] = {
    ListenFacts: Later("listening", ask_listen, _WHERE, spared_listening),
    LinkFacts: Later("asking its peers", ask_connect, (*_WHERE, ListenFacts), Cluster.spared),
    ArrivalFacts: Later("asking its peers", ask_arrivals, (LoginFacts, NicFacts, NetSettingsFacts), Cluster.spared),
    RouteFacts: Later("asking its peers", ask_routes, (LoginFacts, *MADE_FROM), Cluster.spared),
    NameFacts: Later("collecting", ask_names, (), Cluster.spared),
    PeerSshFacts: Later("asking its peers", ask_peers, (LoginFacts,), spared_peers),
    PlannedPickFacts: Later("trying the plan", ask_pick, PLAN_FACTS, spared_pick),
    ToolFacts: Later("collecting", ask_tools, (), spared_probe),
    ProbeFacts: Later("measuring", None, PROBE_FACTS, spared_probe),
    MeetingFacts: Later("measuring", None, (), spared_probe),
}


# The acts, and the part of the run's deadline after which the next one waits no longer for a node that is busy.
STAGES: Mapping[str, float] = {"collecting": 0.6, "listening": 0.65, "asking its peers": 0.9, "trying the plan": 1.0}


def wanted_facts(checks: Iterable[Check], settings: Settings) -> tuple[FactType, ...]:
    """Return the facts that a run brings: those of its checks, those of the plan unless only some checks are to judge,
    and what the questions about them are made of.
    """
    return with_needs((*facts_wanted(checks), *(() if settings.select else PLAN_FACTS)))


def with_needs(wanted: Collection[FactType]) -> tuple[FactType, ...]:
    """Return the wanted facts and those that their questions are made of, down to the last, each once."""
    needed = dict.fromkeys(need for fact in wanted if fact in LATER for need in LATER[fact].needs)
    once = tuple(dict.fromkeys((*wanted, *needed)))
    return once if set(once) == set(wanted) else with_needs(once)


def brought(evidence: Evidence, wanted: Collection[FactType], *, first: bool) -> tuple[FactType, ...]:
    """Return the wanted facts that this part of a node's evidence tells of, by the act that it came in.

    What is read off the login alone is told anew by each part: a connection may end in any act.
    """
    answered = {key.rpartition(TURN)[0] for key in evidence.replies} | evidence.replies.keys()
    return tuple(fact for fact in wanted if _tells(answered, fact, first=first))


def _tells(answered: Collection[str], fact: FactType, *, first: bool) -> bool:
    sources = reader_of(fact).sources if fact in HOMES else ()
    return not sources or (first and fact not in LATER) or any(source.key in answered for source in sources)


def acts_for(cluster: Cluster, wanted: Collection[FactType]) -> tuple[Act, ...]:
    """Return the acts that bring the wanted facts; `cluster.known` is to hold, by then, what the act before brought."""
    later = {fact: LATER[fact] for fact in wanted if fact in LATER}
    spared = {fact: how.spared(cluster) for fact, how in later.items()}
    names = [node.name for node in cluster.nodes]
    alike = sources_for(fact for fact in wanted if fact not in LATER)
    first: Questions = {name: (*alike, *_spared(spared, name)) for name in names}

    def makers(stage: str) -> dict[FactType, Maker]:
        wanted_here = {fact: how.ask for fact, how in later.items() if how.ask and how.stage == stage}
        return {fact: ask for fact, ask in wanted_here.items() if len(spared[fact]) < len(names)}

    begin, *others = STAGES
    acts = [Act(begin, frozenset(names), _together(cluster, makers(begin), first), STAGES[begin])]
    for stage in others:
        asked = frozenset(name for name in names if any(name not in spared[fact] for fact in makers(stage)))
        if asked:
            acts.append(Act(stage, asked, _together(cluster, makers(stage), {}), STAGES[stage]))
    if LinkFacts in later and len(spared[LinkFacts]) < len(names):  # who is done still listens for those who are not
        acts.append(Act("listening", frozenset(names), lambda _: {}))
    return tuple(acts)


def _spared(spared: Mapping[FactType, Mapping[str, str]], name: str) -> Iterator[NotAsked]:
    for fact, reasons in spared.items():
        if name in reasons:
            yield from (NotAsked(source, reasons[name]) for source in reader_of(fact).sources)


def _together(cluster: Cluster, makers: Mapping[FactType, Maker], also: Questions) -> Callable[[float], Questions]:
    def ask(left: float) -> Questions:
        made = [also, *(maker(cluster, left) for maker in makers.values())]
        names = {name for questions in made for name in questions}
        return {name: tuple(one for questions in made for one in questions.get(name, ())) for name in names}

    return ask
