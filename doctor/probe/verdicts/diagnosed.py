"""What NCCL's diagnostics found, and on which nodes: the ranks that a line names tell, else who printed it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from doctor.model.facts import Means, ProbeFacts, Step, Turn
from doctor.parse.nccl_diagnostics import Diagnostic, Says, parse_diagnostics
from doctor.probe.collectives import turns_by_step

# p2p: write mismatch srcRank=0 ... dstRank=3     |    net bw: mode=same server_rank=0 ... client_rank=8
# net bw: cross-nic rank 3 (node0): 265.1 Gbit/s, >30% off median 391.5 Gbit/s
_RANK = re.compile(r"(?:\b[a-z]+_?[Rr]ank=|\brank )(\d{1,6})\b")


@dataclass(frozen=True)
class Found:
    """One thing that NCCL found."""

    nodes: tuple[str, ...]
    line: Diagnostic

    def told(self) -> str:
        """Return NCCL's words, with the check that said them."""
        return f"{self.line.check}: {self.line.words}" if self.line.check else self.line.words


@dataclass(frozen=True)
class Diagnosed:
    """One run of the diagnostics over `step`'s nodes. `failed` says why it came to no end, "" where it did."""

    step: Step
    found: tuple[Found, ...]
    untried: tuple[str, ...]
    spoke: bool
    failed: str


def diagnosed(probed: Mapping[str, ProbeFacts]) -> Diagnosed | None:
    """Return the last run; None where there was none."""
    ran = [(step, turns) for step, turns in turns_by_step(probed).items() if step.means is Means.DIAGNOSTICS]
    return _diagnosed(*ran[-1]) if ran else None


def _diagnosed(step: Step, turns: Mapping[str, Turn]) -> Diagnosed:
    said = [(node, line) for node, turn in turns.items() for line in parse_diagnostics(turn.log).lines]
    wrong = tuple(Found(_nodes(step, line) or (node,), line) for node, line in said if line.says is Says.WRONG)
    named = {line for _, line in said if line.says is Says.WRONG and _nodes(step, line)}
    failures = (f"{node}: {turn.failure.words}" for node, turn in turns.items() if turn.failure)
    return Diagnosed(
        step,
        tuple(one for one in wrong if one.line in named or not named),  # a summary adds nothing to what names ranks
        tuple(dict.fromkeys(f"{line.check}: {line.words}" for _, line in said if line.says is Says.UNTRIED)),
        bool(said),
        next(failures, ""),
    )


def _nodes(step: Step, line: Diagnostic) -> tuple[str, ...]:
    ranks = sorted({int(rank) for rank in _RANK.findall(line.words)})
    seats = [*_seats(step)]
    return tuple(dict.fromkeys(seats[rank] for rank in ranks if rank < len(seats)))


def _seats(step: Step) -> Iterator[str]:
    for node, ranks in zip(step.group, step.ranks, strict=True):
        yield from [node] * ranks
