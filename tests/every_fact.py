"""Every fact that ncheck can read on a node: those of the checker, and those of the rooms."""

from __future__ import annotations

import pkgutil
from importlib import import_module


def every_fact() -> tuple[type[object], ...]:
    """Return the facts in the order of the modules."""
    packages = [import_module(name) for name in ("ncheck.facts", "ncheck.plan", "ncheck.probe", "ncheck.triage.facts")]
    names = [
        found.name for package in packages for found in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
    ]
    return tuple(fact.record for name in names for fact in getattr(import_module(name), "FACTS", ()))
