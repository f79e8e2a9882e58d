"""Expressions are compiled at their first use, and every one that the program has can be."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import ncheck
import ncheck_checks
from ncheck.expression import expression

PACKAGES = (ncheck, ncheck_checks)


def test_an_expression_does_what_a_compiled_one_does() -> None:
    made = expression(r"(?P<name>gpu)(\d+)", re.IGNORECASE)
    found = made.search("on GPU07")
    assert found
    assert found.groups() == ("GPU", "07")
    assert (made.sub("x", "gpu1"), made.flags & re.IGNORECASE) == ("x", re.IGNORECASE)
    assert (made.pattern, dict(made.groupindex)) == (r"(?P<name>gpu)(\d+)", {"name": 1})


def test_who_asks_for_its_text_or_its_flags_compiles_nothing() -> None:
    made = expression("(", re.IGNORECASE)  # what could not be compiled
    assert (made.pattern, made.flags) == ("(", re.IGNORECASE)


def test_every_expression_can_be_compiled() -> None:
    kind = type(expression(""))
    names = [
        name for package in PACKAGES for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    ]
    modules = [import_module(name) for name in names if not name.endswith("__main__")]
    found = [one for module in modules for one in vars(module).values() if isinstance(one, kind)]
    assert len(found) > 300
    for one in found:
        assert re.compile(one.pattern)
