"""Which NIC carried how much, in few lines: those that did alike together, the odd ones by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from doctor.byte_words import moved
from doctor.model.report import Traffic
from doctor.report import text as words
from doctor.report.folding import grouped

LOOPBACK = "lo"
_ALIKE = 0.85  # of the middle of its like: less is odd
_LEAST = 1_000_000  # bytes: less are words between ranks that measured nothing
_SOME = 0.01  # of what the plan's devices carry: less by another is what ssh and the like send


@dataclass(frozen=True)
class Line:
    """One line about these devices; `odd` where something is not as the plan means it."""

    text: str
    odd: bool = False


def carried(traffic: Sequence[Traffic], *, together: bool = True) -> tuple[Line, ...]:
    """Return what the plan's devices carried, those of them that carried less, and what went by others.

    Where the nodes did not all run `together`, each had its own steps: none of them is odd for having had fewer.
    """
    if max((one.sent for one in traffic), default=0) < _LEAST:
        return ()
    planned = [one for one in traffic if one.planned]
    within = [one for one in traffic if not one.planned and one.device == LOOPBACK]
    others = [one for one in traffic if not one.planned and one.device != LOOPBACK]
    usual = median(one.sent for one in planned) if planned else 0.0
    least = usual * _ALIKE if together else 0.0
    lines = [
        *_well([one for one in planned if one.sent >= least]),
        *_less([o for o in planned if o.sent < least], usual),
    ]
    total = sum(one.sent for one in planned)
    astray = _others([one for one in others if one.sent > _SOME * total / max(len(others), 1)], bool(planned))
    return (*lines, *astray, *_within([one for one in within if one.sent > _SOME * usual]))


def _well(same: Sequence[Traffic]) -> list[Line]:
    if not same:
        return []
    if any(one.sent for one in same):
        return [Line(f"sent by {_devices(same)}: {_amount(same)}")]
    return [Line(f"sent by {_devices(same)}: nothing", odd=True)]


def _less(same: Sequence[Traffic], usual: float) -> list[Line]:
    told = {f"{one.node} {one.device}": moved(one.sent) if one.sent else "nothing" for one in same}
    return [Line(words.line(f"sent by {who}: {amount}, where the others sent {moved(usual)}"), odd=True)
            for who, amount in told.items()]  # fmt: skip


def _others(same: Sequence[Traffic], planned: bool) -> list[Line]:  # noqa: FBT001  whether there was a plan
    if not same:
        return []
    stray = ", and the plan means others" if planned else ""
    return [Line(f"sent by {_devices(same)}: {_amount(same)}{stray}", odd=planned)]


def _within(same: Sequence[Traffic]) -> list[Line]:
    """Tell of loopback: what goes by it leaves by no NIC."""
    return [Line(f"sent inside the node, by {_devices(same)}: {_amount(same)}")] if same else []


def _amount(same: Sequence[Traffic]) -> str:
    least, most = (moved(pick(one.sent for one in same)) for pick in (min, max))
    each = " each" if len(same) > 1 else ""
    return f"{least}{each}" if least == most else f"{least} to {most}{each}"


def _devices(same: Sequence[Traffic]) -> str:
    """Return "mlx5_[0-7]:1 on gpu[01-04]", the nodes that have the same devices together."""
    by_node: dict[str, list[str]] = {}
    for one in same:
        by_node.setdefault(one.node, []).append(one.device)
    folded = {node: _folded(devices) for node, devices in by_node.items()}
    return "; ".join(f"{words.line(devices)} on {words.node_set(nodes)}" for devices, nodes in grouped(folded))


def _folded(devices: Sequence[str]) -> str:
    """Fold "mlx5_0:1", "mlx5_1:1" to mlx5_[0-1]:1, by port."""
    ports: dict[str, list[str]] = {}
    for device in devices:
        name, _, port = device.partition(":")
        ports.setdefault(port, []).append(name)
    return ", ".join(words.node_set(names) + (f":{port}" if port else "") for port, names in ports.items())
