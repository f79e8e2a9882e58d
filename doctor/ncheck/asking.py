"""Ask the nodes phase after phase, and learn what they answer: the one loop of a check, of triage and of a watch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ncheck.facts.learning import InterruptedLearningError, learn
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Login

if TYPE_CHECKING:
    from ncheck.fleet.fleet import Fleet
    from ncheck.model.cluster import FactType
    from ncheck.model.phase import Phase

Passing = Callable[[Iterable[Evidence], str], Iterable[Evidence]]  # hands the evidence of a stage on as it comes


@dataclass(frozen=True)
class Asking:
    """What is known of the nodes by now, and the connections over which more can be asked.

    wanted    the facts that are read from what they answer
    passing   what the evidence passes through before it is read
    evidence  all that each node has answered, by name; empty where it is not kept, which takes memory
    """

    fleet: Fleet
    cluster: Cluster
    wanted: Collection[FactType]
    passing: Passing = lambda evidence, _: evidence
    evidence: Mapping[str, Evidence] = field(default_factory=dict)

    def keeping(self) -> Asking:
        """Return it as one that keeps the evidence."""
        return replace(self, evidence={name: Evidence(name, Login(reached=False)) for name in self.cluster.names})

    def ask(self, phase: Phase, stage: str = "") -> Asking:
        """Ask a phase's questions, made from what is known by now, and return what is known then.

        `stage`: where that is not the phase's own. Raises InterruptedLearningError on ^C.
        """
        seconds = self.fleet.begin(phase)
        answers = self.fleet.ask(phase, phase.questions(self.cluster, seconds) if phase.questions else {})
        return self.learn(answers, stage or phase.stage)

    def interrupted(self, stop: KeyboardInterrupt) -> Asking:
        """Return what was known when ^C came."""
        return replace(self, cluster=stop.cluster) if isinstance(stop, InterruptedLearningError) else self

    def learn(self, evidence: Iterable[Evidence], stage: str = "") -> Asking:
        """Return what is known with this evidence. Raises InterruptedLearningError on ^C."""
        kept = dict(self.evidence)

        def keep(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
            for one in evidence:
                kept[one.node] = kept[one.node].before(one)
                yield one

        passed = self.passing(evidence, stage)
        return replace(self, cluster=learn(self.cluster, keep(passed) if kept else passed, self.wanted), evidence=kept)
