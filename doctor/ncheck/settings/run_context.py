"""What a run is, beside its settings: nothing that a user sets by one option, one variable or one key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ncheck.facts.expected import ExpectedFacts
    from ncheck.facts.ranks import RanksFacts
    from ncheck.model.job import Target
    from ncheck.settings.own_checks import OwnCheck


@dataclass(frozen=True)
class RunContext:
    """What kind of run this is, who started it where, and where its settings came from.

    `expected`: what the user expects of every node, from --expect and --requirements. `probe_wanted`: it is ncheck
    probe, so what could not be measured is unknown, not skipped. `started_in`: the folder that ncheck was started in,
    where that is on a network file system. `rehearsal`: it is ncheck demo, whose temporary files must not appear in
    command lines. `target`: the job that ncheck triage is asked about. `ranks`: inside a job, by node, those that its
    launcher started. `milder`: settings of an ncheck.toml that was only found, and that may hide what is wrong, as
    "fail-on never". `sources`: by setting, the variable, the key of the file or the argument in Python that gave it;
    nothing for a typed option. `own_checks`: [[check]] of ncheck.toml and of the folder checks.d.
    """

    expected: ExpectedFacts | None = None
    probe_wanted: bool = False
    started_in: str | None = None
    rehearsal: bool = False
    target: Target | None = None
    ranks: Mapping[str, RanksFacts] = field(default_factory=dict)
    milder: tuple[str, ...] = field(default=(), compare=False)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    own_checks: tuple[OwnCheck, ...] = ()
