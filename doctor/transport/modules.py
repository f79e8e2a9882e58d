"""Modules that travel to a node only when its agent asks for them."""

from __future__ import annotations

from functools import cache

_TRAVEL = frozenset({"pynvml"})  # one pure file; a node gets nothing else, whatever it asks for
RANK_PROGRAM = "rank-program"


@cache
def module_text(name: str) -> str | None:
    """Return the text of a module that may travel; None for any other, and where it is not installed here."""
    if name == RANK_PROGRAM:
        from doctor.transport.rank_program import rank_program  # noqa: PLC0415  only a probe needs it

        return rank_program()
    if name not in _TRAVEL:
        return None
    from importlib.util import find_spec  # noqa: PLC0415  only nodes with an NVIDIA device need it

    spec = find_spec(name)
    source = getattr(spec.loader, "get_source", None) if spec else None
    text = source(name) if source else None
    return text if isinstance(text, str) else None
