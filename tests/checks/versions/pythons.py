"""Interpreters for the checks that compare what is installed in them."""

from __future__ import annotations

from ncheck.facts.interpreter import InterpreterFacts, TorchBuild

PATH = "/opt/venv/bin/python3"


def python(
    torch: TorchBuild | None = None, frameworks: dict[str, str] | None = None, **libraries: str
) -> InterpreterFacts:
    """Return one with these libraries, by their names with _ for -."""
    named = {name.replace("_", "-"): version for name, version in libraries.items()}
    installed = {**({"torch": torch.version} if torch else {}), **(frameworks or {})}
    return InterpreterFacts(PATH, "3.11.2", "active venv", installed, libraries=named, torch=torch)
