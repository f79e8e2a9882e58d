"""A prediction as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from ncheck.hostlist import fold
from ncheck.parity import nodes_by_value
from ncheck.predict.carriers import folded
from ncheck.predict.prediction import Change, OpPrediction, Predicted, Prediction
from ncheck.report.json import without_delete
from ncheck.report.tables import aligned
from ncheck.text import printable, size

_HEADS = ("size", "algorithm", "protocol", "channels", "time", "busbw")
_UNKNOWN = "-"
_LONGEST = 400


def as_text(prediction: Prediction) -> str:
    """Return what NCCL will do, operation by operation, then what single changes would bring."""
    lines = [_headline(prediction), *_nics(prediction)]
    for one in prediction.ops:
        lines += ["", *_operation(one)]
    if prediction.changes:
        lines += ["", "what one change would bring:", *map(_change, prediction.changes)]
    lines += ["", *(f"note: {note}" for note in prediction.notes)]
    if lost := prediction.unreachable:
        lines += [f"left out: {fold(lost)}, which could not be asked"]
    lines += [f"rules: {prediction.source}"]
    return "".join(printable(line, _LONGEST) + "\n" for line in lines)


def _headline(prediction: Prediction) -> str:
    nodes, ranks = len(prediction.ranks), sum(prediction.ranks.values())
    what = f"{nodes} node{'s' if nodes > 1 else ''}, {ranks} rank{'s' if ranks > 1 else ''}"
    return (
        f"{what}: what {' '.join(filter(None, (prediction.library, prediction.version)))} will do; nothing was measured"
    )


def _nics(prediction: Prediction) -> Iterator[str]:
    for names, nodes in nodes_by_value(prediction.nics).items():
        if names:
            yield f"NICs on {fold(nodes)}: {folded(names)}"


def _operation(one: OpPrediction) -> Iterator[str]:
    largest = max(one.rows, key=lambda row: row.size)
    limit = f", limited by {one.limited_by}" if one.limited_by else ""
    if largest.busbw:
        yield f"{one.op.value}: {_speed(largest)} at {size(largest.size)}{limit}"
    else:
        yield f"{one.op.value}:{'' if one.at_most is None else f' at most {one.at_most:.3g} GB/s{limit}'}"
    yield from (f"  lowered by {why}" for why in one.lowered_by)
    if any(row.busbw is not None or row.algorithm for row in one.rows):
        columns = zip(_HEADS, *map(_cells, one.rows), strict=True)
        known = [column for column in columns if set(column[1:]) != {_UNKNOWN}]
        yield from (f"  {line}" for line in aligned(tuple(zip(*known, strict=True)), left=0))
    yield from (f"  unknown: {what}" for what in one.unknown)


def _cells(row: Predicted) -> tuple[str, ...]:
    channels = _UNKNOWN if row.channels is None else str(row.channels)
    time = _UNKNOWN if row.seconds is None else took(row.seconds)
    words = (row.algorithm or _UNKNOWN, row.protocol or _UNKNOWN)
    return size(row.size), *words, channels, time, _speed(row)


def _speed(row: Predicted) -> str:
    return _UNKNOWN if row.busbw is None else f"{row.busbw:.3g} GB/s"


def took(seconds: float) -> str:
    """Return a time: "36.5 us"."""
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1, "s"), (1e-3, "ms")) if seconds >= scale), (1e-6, "us")
    )  # fmt: skip
    return f"{seconds / scale:.3g} {unit}"


def _change(change: Change) -> str:
    where = f" on {fold(change.nodes)}" if change.nodes else ""
    before = "unknown" if change.before is None else f"{change.before:.3g}"
    what = f"{change.op.value} of {size(change.size)}: {before} -> {change.after:.3g} GB/s"
    gain = "" if change.gain is None else f"+{change.gain * 100:.0f} %  "
    fix = f"; there: {change.fix}" if change.fix else ""
    return f"  {gain}{change.change}{where} ({change.reason}): {what}{fix}"


def as_json(prediction: Prediction) -> str:
    """Return the prediction as JSON; sizes in bytes, times in seconds, bandwidths in GB/s."""
    whole = asdict(prediction)
    whole["changes"] = [{**asdict(change), "gain": change.gain} for change in prediction.changes]
    return without_delete(json.dumps({"schema": whole.pop("schema"), **whole}, indent=2) + "\n")


FORMS: Mapping[str, Callable[[Prediction], str]] = {"text": as_text, "json": as_json}
