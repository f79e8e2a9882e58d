"""What the user expects of every node: the run itself contributes it, from --expect or [expect] in ncheck.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncheck.expression import expression
from ncheck.facts.requirements import Requirement
from ncheck.lazy_dataclass import dataclass

_AT_LEAST = ">="


@dataclass(frozen=True)
class ExpectedFacts:
    """What a node must have; None where it does not matter.

    `gpus` and `hcas` are how many. `gpu`: words of the model's name; `rate`: Gb/s of a port; `commit`: the first
    digits of the git commit of the job's code. `requirements`: those of --requirements. `versions` by name:
    {"nccl": "2.21.5", "driver": ">=550", "torch": "2.3"}.
    """

    gpus: int | None = None
    gpu: str | None = None
    hcas: int | None = None
    rate: float | None = None
    commit: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()


def fits(version: str, expected: str) -> bool:
    """Return whether a version is the expected one: "2.21.5" is 2.21, and >=2.19; "550.54.15" is 550 and not 55."""
    if expected.startswith(_AT_LEAST):
        return _parts(version) >= _parts(expected.removeprefix(_AT_LEAST))
    wanted = _parts(expected)
    return _parts(version)[: len(wanted)] == wanted


# 2.3.0+cu121, 4.1.0rc1
_PART = expression(r"\d+|[A-Za-z]+")


def _parts(version: str) -> tuple[tuple[int, str], ...]:
    """Return the parts of a version in their order: letters, as in 4.1.0rc1, come before every number."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part.lower()) for part in _PART.findall(version))


def shown(expected: str) -> str:
    """Return an expectation for people."""
    return f"at least {expected.removeprefix(_AT_LEAST)}" if expected.startswith(_AT_LEAST) else expected
