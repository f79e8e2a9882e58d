"""The facts that checks read: a module per topic, with the record, what to read on the node and how to parse it.

Import a fact from its module (`from ncheck.facts.nics import NicFacts`) or from this package by its name alone.
The names here are found by looking through the modules, so that a new fact is one new file.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module


def __getattr__(name: str) -> type[object]:
    if name.endswith("Facts"):
        for module in pkgutil.iter_modules(__path__, f"{__name__}."):
            fact = getattr(import_module(module.name), name, None)
            if isinstance(fact, type):
                return fact
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
