"""Simulated calls of a communicator: ranks compute, enter a collective, and leave it together."""

from __future__ import annotations

from random import Random
from typing import Literal

Jitter = Literal["normal", "heavy", "lasting", "bursts", "nodes"]
JITTERS: tuple[Jitter, ...] = ("normal", "heavy", "lasting", "bursts", "nodes")
COMPUTES, TRANSFERS = 100_000.0, 20_000.0  # us of a step
_PER_NODE = 8


def calls(  # noqa: PLR0913, PLR0917  the kind of job
    seed: int, ranks: int, steps: int, jitter: Jitter = "normal", size: float = 0.02, slow: tuple[int, ...] = (),
    by: float = 0.1,
) -> list[dict[int, float]]:  # fmt: skip
    """Return how long the kernel of each rank runs, in us, in each of so many steps.

    `jitter`: "normal", with a standard deviation of `size` of what a step computes; "heavy", rarely ten times that;
    "lasting" from step to step (AR(1), 0.9); "bursts": in 20 steps of about 70 one rank is late; of whole "nodes".
    `slow` ranks compute for so much longer: `by` is a share.
    """
    random = Random(seed)  # noqa: S311  the same calls each time
    lasting = [random.gauss(0, 1) for _ in range(ranks)]
    found, late_one, until = [], 0, 0
    for step in range(steps):
        lasting = [0.9 * one + random.gauss(0, 0.436) for one in lasting]
        if step >= until and random.random() < 0.02:
            late_one, until = random.randrange(ranks), step + 20
        late = lasting if jitter == "lasting" else [random.gauss(0, 1) for _ in range(ranks)]
        if jitter == "heavy":
            late = [one * (10 if random.random() < 0.05 else 1) for one in late]
        elif jitter == "bursts" and step < until:
            late[late_one] += 5
        elif jitter == "nodes":
            of_node = [random.gauss(0, 1) for _ in range(-(-ranks // _PER_NODE))]
            late = [of_node[rank // _PER_NODE] + 0.2 * one for rank, one in enumerate(late)]
        enters = [COMPUTES * (1 + size * late[rank] + by * (rank in slow)) for rank in range(ranks)]
        last = max(enters)
        found.append({rank: TRANSFERS * (1 + abs(random.gauss(0, 0.01))) + last - at for rank, at in enumerate(enters)})
    return found
