"""Regular expressions that are compiled when they are first used: a run uses few of those that its modules have."""

from __future__ import annotations

import re
from typing import cast

_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split", "groupindex")


class Uncompiled:
    """A regular expression, until its first use. To ask for its text or its flags is none."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self.flags)

    def __getattr__(self, name: str) -> object:
        compiled = self.compiled()
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def expression(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what is used like re.compile(text, flags), and costs next to nothing until then."""
    return cast("re.Pattern[str]", Uncompiled(text, flags))
