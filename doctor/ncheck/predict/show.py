"""What a training step exchanges, and how long that takes, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from ncheck.predict.table import took
from ncheck.predict.training import SHARDED, Exchange, StepPrediction, Timed, TrainingRun
from ncheck.report.json import without_delete
from ncheck.report.tables import aligned
from ncheck.text import moved, printable

_HEADS = ("what", "operation", "group", "calls", "of each", "one GPU sends")
_TIMED = ("nodes x ranks", "time")
_LONGEST = 400


def as_text(step: StepPrediction) -> str:
    """Return what one GPU exchanges in a step as a table, with the times, and the formulas below it."""
    lines = [_headline(step.run), ""]
    if not step.exchanges:
        return "\n".join([*lines, "Nothing is exchanged: every group has one GPU."]) + "\n"
    heads: tuple[str, ...] = _HEADS
    rows = [_cells(each) for each in step.exchanges]
    if step.timed:
        heads = (*_HEADS, *_TIMED)
        rows = [
            (*row, f"{one.nodes} x {one.ranks}", "unknown" if one.seconds is None else took(one.seconds))
            for row, one in zip(rows, step.timed, strict=True)
        ]
    lines += ["In one step, the busiest GPU:", "", *aligned((heads, *rows), left=3), "", *_totals(step)]
    lines += ["", "formulas:"]
    lines += [f"  {_name(each)}: {each.formula}\n    {each.source}" for each in step.exchanges]
    return "\n".join([*lines, "", *_notes(step.run), *step.notes]) + "\n"


def as_json(step: StepPrediction) -> str:
    """Return the same as JSON; sizes in bytes, times in seconds."""
    run = step.run
    times = [asdict(one) for one in step.timed] if step.timed else [None] * len(step.exchanges)
    whole = {
        "schema": "ncheck.predict-model/1", "model": asdict(run), "gpus": run.gpus, "tokens": run.tokens,
        "exchanges": [
            {**asdict(each), "sent": each.sent, "time": time}
            for each, time in zip(step.exchanges, times, strict=True)
        ],
        "sent": by_op(step.exchanges), "seconds": step.seconds, "compute": step.compute,
        "notes": [*_notes(run), *step.notes],
    }  # fmt: skip
    return without_delete(json.dumps(whole, indent=2) + "\n")


def by_op(found: Sequence[Exchange]) -> dict[str, int]:
    """Return the bytes that one GPU sends in a step, by operation."""
    ops = dict.fromkeys(each.op for each in found)
    return {op.value: sum(each.sent for each in found if each.op is op) for op in ops}


def _cells(each: Exchange) -> tuple[str, ...]:
    group = f"{each.group.name}={each.group.size}"
    return each.what, each.op.value, group, f"{each.calls:,}", moved(each.size), moved(each.sent)


def _totals(step: StepPrediction) -> Iterator[str]:
    """Yield the bytes by operation, or where a step is timed, its time and what it is made of."""
    if not step.timed:
        yield from (f"{op}: {moved(sent)} a step" for op, sent in by_op(step.exchanges).items())
        return
    both = list(zip(step.exchanges, step.timed, strict=True))
    known = sum(one.seconds or 0.0 for one in step.timed)
    least = "" if step.seconds is not None else "at least "
    yield (
        f"communication: {least}{took(known)} a step, if nothing of it overlaps" if known else "communication: unknown"
    )
    if step.compute is not None and step.seconds is None:
        yield f"with {took(step.compute)} of computing: a step takes at least {took(max(known, step.compute))}"
    elif step.compute is not None:
        both_ways = f"a step takes {took(max(known, step.compute))} to {took(known + step.compute)}"
        share = known / (known + step.compute)
        yield f"with {took(step.compute)} of computing: {both_ways}; communication is {share:.0%} of the latter"
    for each, one in sorted(both, key=lambda row: -(row[1].seconds or 0.0)):
        yield printable(f"  {_name(each)}: {_why(one)}", _LONGEST)


def _why(one: Timed) -> str:
    """Return what most of the time goes to."""
    if one.seconds is None:
        return f"unknown: {one.unknown}"
    if one.start_up and 2 * one.start_up > one.seconds:
        return f"{took(one.seconds)}, of which {took(one.start_up)} is start-up: larger and fewer calls would help"
    return f"{took(one.seconds)}, limited by {one.limited_by}"


def _name(each: Exchange) -> str:
    return f"{each.what}, {each.op.value}"


def _headline(run: TrainingRun) -> str:
    split = " x ".join(f"{key} {getattr(run, key)}" for key in ("dp", "tp", "pp", "cp") if getattr(run, key) > 1)
    gpus = f"{run.gpus:,} GPUs ({split})" if split else "1 GPU"
    sequences = f"{run.batch * run.micro * run.dp:,} x {run.seq:,} tokens a step"
    return f"{_count(run.params)} parameters on {gpus}, {sequences}"


def _notes(run: TrainingRun) -> Iterator[str]:
    """Yield what is assumed, and what is not counted."""
    yield "Ranks are numbered as Megatron-LM does: tensor parallel first, then context, data and pipeline parallel."
    yield "Gradients and parameters go layer by layer; a framework's buckets change the calls, not the bytes."
    if not run.vocab:
        yield "The embeddings are counted as part of the layers (vocab= counts them where they are)."
    if run.zero == SHARDED - 1:
        yield "ZeRO 2 as DeepSpeed does it; FSDP's SHARD_GRAD_OP gathers the parameters once a micro-batch."
    if run.zero > 1 and run.pp > 1:
        yield f"DeepSpeed refuses zero={run.zero} with pp; torchtitan keeps the parameters between micro-batches then."
    if run.experts and run.tp > 1:
        yield "Experts with tp: sequence parallel, as Megatron-LM requires."
    yield "Not counted: the loss, the norm of the gradients, checkpoints, loading of data."


def _count(number: int) -> str:
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.4g}{unit}"
    return f"{number:,}"


FORMS: Mapping[str, Callable[[StepPrediction], str]] = {"text": as_text, "json": as_json}
