"""Running the probe alone over the lab's hosts, and what its report says of who sent what."""

from __future__ import annotations

from typing import Any

from .command import Run, begin, listing
from .hosts import Lab
from .promises import HANGS, PATIENT, nothing_left

# Of an interface that carried nothing of the probe: what the kernel itself says there now and then.
IDLE = 100_000  # bytes


def probed(lab: Lab, *argv: str, select: str = "NC3,NC7") -> Run:
    """Run ncheck probe over all nodes, and these checks; nothing of it is left on any host."""
    with nothing_left(lab):
        listing(lab, lab.names)
        asked = ("nodes.txt", "-o", "json", "--select", select, *PATIENT, *argv)
        return begin(lab, *asked).wait(HANGS)


def told(run: Run) -> dict[str, Any]:
    """Return what the report says of the probe itself."""
    found: dict[str, Any] = run.report["probe"]
    return found


def sent(run: Run, *, planned: bool) -> dict[tuple[str, str], int]:
    """Map node and device to the bytes that left by it, of those that the plan means or of the others."""
    rows = [row for row in told(run)["traffic"] if row["planned"] is planned]
    return {(row["node"], row["device"]): row["sent"] for row in rows}


def met(run: Run) -> set[str]:
    """Return the nodes that were measured in a pair that came to its end."""
    return {node for pair in told(run)["pairs"] if pair["busbw"] for node in pair["nodes"]}


def named(run: Run, code: str) -> list[str]:
    """Return the nodes that findings of this code name."""
    return sorted({node for finding in run.report["findings"] if finding["code"] == code for node in finding["nodes"]})
