"""What a node of a watched job answers: what triage asks, as far as it pauses, signals and dumps nothing."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ncheck.triage import facts
from ncheck.triage.facts.flight_recorder import FLIGHT_RECORDER
from ncheck.triage.facts.processes import asked
from ncheck.triage.facts.ras import RAS, SPARED
from ncheck.triage.facts.stacks import STACKS

if TYPE_CHECKING:
    from ncheck.model.evidence import Source


def harmless() -> tuple[Source, ...]:
    """Return all sources of triage's facts. Arguments that one has here are the only ones that it may be asked with."""
    modules = (import_module(f"{facts.__name__}.{found.name}") for found in iter_modules(facts.__path__))
    sources = {
        source.key: source for module in modules for fact in getattr(module, "FACTS", ()) for source in fact.sources
    }
    fixed = (
        asked(match=None),
        replace(STACKS, arguments={"native": False}),
        replace(FLIGHT_RECORDER, arguments={"dump": False}),
        replace(RAS, arguments={"spare": dict(SPARED)}),
    )
    return tuple({**sources, **{one.key: one for one in fixed}}.values())
