"""The ranks of a running job, as they came to the meeting of `ncheck.preflight()`: the run itself contributes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RanksFacts:
    """The ranks of one node, and what is known of the whole job, which is the same on every node.

    `size` is the number of ranks that the launcher announced. `came` are this node's ranks that called preflight;
    `ended` maps those whose process ended before the verdict to its number; `missing` are ranks that should run here
    and did not come within `waited` seconds. `homeless` are missing ranks of the job whose host is not known.
    `could_come`: ranks on other machines did come, or none had to, so the network does not explain who is missing.
    `sizes` maps a rank of this node to the size that its launcher announced, where that is another one;
    `doubles` are ranks of which more than one process came, one of them on this node.
    `version` is the node's own ncheck; `ours` that of the process that judges.
    """

    size: int
    came: tuple[int, ...]
    missing: tuple[int, ...] = ()
    ended: Mapping[int, int] = field(default_factory=dict)
    homeless: tuple[int, ...] = ()
    could_come: bool = True
    sizes: Mapping[int, int] = field(default_factory=dict)
    doubles: tuple[int, ...] = ()
    waited: float = 0.0
    version: str = ""
    ours: str = ""


def ranks(numbers: tuple[int, ...]) -> str:
    """Return "rank 3", "ranks 3 and 5" or "ranks 0 to 7, 12 and 14", for people."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    parts = [part for span in spans for part in _parts(span)]
    if len(parts) > _MOST:
        parts = [*parts[:_MOST], f"{len(parts) - _MOST} more"]
    listed = ", ".join(parts[:-1]) + " and " * (len(parts) > 1) + parts[-1] if parts else "none"
    return f"{'rank' if len(set(numbers)) == 1 else 'ranks'} {listed}"


_MOST = 12  # parts of a list of ranks


def _parts(span: list[int]) -> list[str]:
    return [f"{span[0]} to {span[-1]}"] if len(span) > 2 else [str(number) for number in span]  # noqa: PLR2004
