"""`horovodrun --check-build`: which frameworks, controllers and operations this Horovod was built with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ncheck.parse.capture import lines_of

# Horovod v0.22.1:
_VERSION = re.compile(r"\bHorovod v(\S+?):?\s*$")


# Available Tensor Operations:
_HEADING = re.compile(r"\bAvailable (Frameworks|Controllers|Tensor Operations):")


#     [X] NCCL
_FEATURE = re.compile(r"\[([Xx ]?)\]\s+(\S+)")


# Checking whether extension tensorflow was built.
_PROBING = re.compile(r"Checking whether extension (\w+) was built")


# Traceback (most recent call last):
_CRASH = re.compile(r"Traceback \(most recent|Check failure stack trace|Segmentation fault|[A-Za-z.]+Error: ")


_BLOCKS = {"Frameworks": "frameworks", "Controllers": "controllers", "Tensor Operations": "operations"}


@dataclass(frozen=True)
class HorovodBuild:
    """Each block maps a name to whether it was built in. `error` is why there is no answer, or only part of one.

    `probed` are the extensions that `--verbose` tells of looking for.
    """

    version: str | None = None
    frameworks: Mapping[str, bool] = field(default_factory=dict)
    controllers: Mapping[str, bool] = field(default_factory=dict)
    operations: Mapping[str, bool] = field(default_factory=dict)
    error: str | None = None
    probed: tuple[str, ...] = ()


def parse_build(text: str) -> HorovodBuild:
    """Read the answer; it is whole only when the version and all three blocks are there."""
    lines = lines_of(text)
    blocks: dict[str, dict[str, bool]] = {name: {} for name in _BLOCKS.values()}
    version, block = None, None
    for line in lines:
        if found := _VERSION.search(line):
            version = found[1]
        elif found := _HEADING.search(line):
            block = _BLOCKS[found[1]]
        elif block and (found := _FEATURE.search(line)):
            blocks[block][found[2]] = found[1].strip() != ""
    whole = version is not None and all(blocks.values())
    probed = tuple(found[1] for line in lines if (found := _PROBING.search(line)))
    return HorovodBuild(version, **blocks, error=None if whole else _why(lines, probed), probed=probed)


def _why(lines: list[str], probed: tuple[str, ...]) -> str:
    """Say what crashed, or what is missing."""
    if not any(_CRASH.search(line) for line in lines):
        return "no answer of horovodrun --check-build, or only part of one"
    return f"crash while probing the {probed[-1]} extension" if probed else "crash before anything was told"
