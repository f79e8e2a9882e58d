"""What a training step exchanges, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from ncheck.predict.training import Exchange, TrainingRun, exchanges
from ncheck.report.tables import aligned

_HEADS = ("what", "operation", "group", "calls", "of each", "one GPU sends")


def as_text(run: TrainingRun) -> str:
    """Return what one GPU exchanges in a step as a table, with the formulas below it."""
    lines, found = [_headline(run), ""], exchanges(run)
    if not found:
        return "\n".join([*lines, "Nothing is exchanged: every group has one GPU."]) + "\n"
    rows = [
        (each.what, each.op, f"{each.group.name}={each.group.size}", f"{each.calls:,}", _bytes(each.size),
         _bytes(each.sent))
        for each in found
    ]  # fmt: skip
    lines += ["In one step, the busiest GPU:", "", *aligned((_HEADS, *rows), left=3)]
    lines += ["", *(f"{op}: {_bytes(sent)} a step" for op, sent in by_op(found).items()), "", "formulas:"]
    lines += [f"  {each.what}, {each.op}: {each.formula}\n    {each.source}" for each in found]
    return "\n".join([*lines, "", *_notes(run)]) + "\n"


def as_json(run: TrainingRun) -> str:
    """Return the same as JSON; sizes in bytes."""
    found = exchanges(run)
    whole = {
        "schema": "ncheck.predict/1", "model": asdict(run), "gpus": run.gpus, "tokens": run.tokens,
        "exchanges": [{**asdict(each), "sent": each.sent} for each in found], "sent": by_op(found),
        "notes": list(_notes(run)),
    }  # fmt: skip
    return json.dumps(whole, indent=2) + "\n"


def by_op(found: Sequence[Exchange]) -> dict[str, int]:
    """Return the bytes that one GPU sends in a step, by operation."""
    return {op: sum(each.sent for each in found if each.op == op) for op in dict.fromkeys(each.op for each in found)}


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
    if run.zero == 2:  # noqa: PLR2004
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


def _bytes(number: float) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.4g} {unit}"
    return f"{number:.0f} B"


FORMS: Mapping[str, Callable[[TrainingRun], str]] = {"text": as_text, "json": as_json}
