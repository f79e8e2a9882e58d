"""The types of the settings for a call in Python, made from the rows of settings/options.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import chain

_MODULE = """\
\"""The settings that a call in Python may give. `make docs` writes this from the rows of settings/options.py.\"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Literal, TypedDict

OnePath = str | PathLike[str]


class Given(TypedDict, total=False):
    \"""The settings that a call may give, named as in ncheck.toml. Times are in seconds, sizes in bytes.\"""

{}
    config: OnePath


class GivenToRun(Given, total=False):
    \"""The settings of `run`: with slurm=True, the nodes are those of the current Slurm allocation.

    `config`: the ncheck.toml to read; without it, none is read. `program`: the words of the job's command line.
    \"""

{}
"""


def given_module() -> str:
    """Return the text of settings/given.py. A setting that chooses the nodes is one of `run` alone."""
    from ncheck.settings.options import AGAIN, WHICH

    arguments = list(_arguments())
    of_run = [line for name, group, line in arguments if group in (WHICH, AGAIN) and name != "via"]
    return _MODULE.format("\n".join(line for *_, line in arguments if line not in of_run), "\n".join(of_run))


def _arguments() -> Iterator[tuple[str, object, str]]:
    """Yield the name, the group and the line of each argument, in the order of the fields."""
    from ncheck.settings import JobEnvironment, Settings

    records = chain.from_iterable(
        fields(JobEnvironment) if one.name == "environment" else (one,) for one in fields(Settings)
    )
    for one in records:
        option = one.metadata.get("option")
        if option and option.python is not None:
            yield one.name, option.group, f"    {one.name}: {option.python or _typed(str(one.type), option.read)}"


def _typed(declared: str, read: object) -> str:
    """Return what a call may give for a field of this type, with this reader."""
    from ncheck.settings import values

    if isinstance(read, values.OneOf):
        return f"Literal[{', '.join(map(_quoted, read.choices))}]"
    if read in (values.path, values.paths):
        return "OnePath" if read is values.path else "OnePath | Sequence[OnePath]"
    single = declared.removesuffix(" | None")
    if single.startswith("tuple["):  # tuple[str, ...]: one, or a sequence of them
        each = single.removeprefix("tuple[").removesuffix(", ...]")
        return f"{each} | Sequence[{each}]"
    return single


def _quoted(word: str) -> str:
    return f'"{word}"'
