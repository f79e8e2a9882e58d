"""The acts of the probe: what is measured next is made of what was measured before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from doctor.advice import PLAN_FACTS
from doctor.collect.probe import TURN
from doctor.model.act import Act, NotAsked, Told
from doctor.model.evidence import Reply, Source, Status
from doctor.model.facts import (
    GpuFacts,
    IdentityFacts,
    ListenFacts,
    LoadedNcclFacts,
    MeetingFacts,
    ProbeFacts,
    Stage,
    ToolFacts,
    TopologyFacts,
)
from doctor.model.plan import LaunchPlan

if TYPE_CHECKING:
    from doctor.company import Company

PROBE_FACTS = (
    *PLAN_FACTS, GpuFacts, TopologyFacts, LoadedNcclFacts, IdentityFacts, ListenFacts, ToolFacts, MeetingFacts,
)  # fmt: skip


AGAIN = "ncheck probe nodes.txt"


@dataclass(frozen=True)
class Prospect:
    """What can be judged by now: the plan, whom --drop-bad leaves out, and what is against measuring under it."""

    plan: LaunchPlan
    dropped: Mapping[str, str]
    against: tuple[str, ...]


def spared_probe(company: Company) -> dict[str, str]:
    """Return the nodes on which nothing is to be measured."""
    none = company.settings.probe == "none"
    return dict.fromkeys((node.name for node in company.nodes), "not asked (--probe none)") if none else {}


def rounds(
    company: Company, prospect: Callable[[], Prospect], clock: Callable[[], float] = time.monotonic
) -> Iterator[Act]:
    """Yield the acts of the probe, or the one that says why there is none.

    With --drop-bad it is judged once more when all pairs have met: who is bad by that has no part in larger groups.
    """
    from doctor.probe.choice import Refused, choose  # noqa: PLC0415  what measures is dear, and read when it is wanted
    from doctor.probe.stages import Stages  # noqa: PLC0415
    from doctor.probe.ways.ground import ground_of  # noqa: PLC0415

    found = prospect()
    ground = ground_of(company, found.plan, found.dropped)
    if found.dropped:
        yield told(company, NotAsked(TURN, "left out by --drop-bad"), found.dropped)
    chosen = choose(ground, found.against)
    if isinstance(chosen, Refused):
        yield told(company, refusal(company, chosen.why, chosen.fix), ground.nodes)
        return
    stages = Stages(ground, chosen, clock, clock() + company.settings.probe_time)
    yield from stages.search()
    if company.settings.drop_bad:
        now = prospect()
        yield from stages.leave_out(ground_of(company, now.plan, {**found.dropped, **now.dropped}))
    yield from stages.groups()


def cut_short(probed: Mapping[str, object], why: str) -> dict[str, tuple[Source, Reply]]:
    """Return what notes, of each node, that nothing more was measured, and why: a source and its reply.

    `probed` are the reached nodes' ProbeFacts, None where there is none yet. Nobody is noted who was spared.
    """
    from doctor.probe.questions import skipped  # noqa: PLC0415  what measures is dear, and read when it is wanted

    begun = {node: facts for node, facts in probed.items() if isinstance(facts, ProbeFacts) and facts.turns}
    again = Reply(Status.FAILED, why, value=AGAIN)
    never: dict[str, tuple[Source, Reply]] = {node: (TURN, again) for node, facts in probed.items() if facts is None}
    if not begun:
        return never
    ran = [turn.step.round for facts in begun.values() for turn in facts.turns]
    noted = [skip.step.round for facts in begun.values() for skip in facts.skipped]
    last = next(iter(begun.values())).turns[-1].step
    stage = Stage.ALL if len(probed) > 1 else Stage.INSIDE
    step = replace(last, round=1 + max(ran + noted), stage=stage, group=tuple(begun), ranks=(1,) * len(begun))
    note = skipped(step, why)
    return {**never, **dict.fromkeys(begun, (note.source, note.reply))}


def refusal(company: Company, why: str, fix: str) -> NotAsked | Told:
    """Return why nothing is measured. By default there was nothing to measure then; who asked for it has no answer."""
    settings = company.settings
    wanted = settings.probe != "auto" or settings.probe_wanted
    return Told(TURN, Reply(Status.FAILED, why, value=fix)) if wanted else NotAsked(TURN, why)


def told(company: Company, words: NotAsked | Told, nodes: Collection[str]) -> Act:
    """Return the act that asks nothing and tells these nodes why."""
    names = [node.name for node in company.reached if node.name in nodes]
    return Act("measuring", frozenset(names), lambda _: dict.fromkeys(names, (words,)), seconds=1.0)
