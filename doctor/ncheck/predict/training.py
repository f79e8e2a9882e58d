"""The bytes that one training step exchanges, from the shape of a transformer and how it is split over GPUs.

Each `Exchange` has its formula and the publication that it is from. Sizes are those of nccl-tests: of an all-reduce,
the buffer; of an all-gather what is gathered, of a reduce-scatter what is reduced, of an all-to-all what one rank
holds, of send/recv the message. Where GPUs differ, the busiest one counts: the pipeline stage with the most layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace

from ncheck.errors import NcheckError
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op

MEGATRON = "Narayanan et al. 2021, arXiv 2104.04473"
SEQUENCE = "Korthikanti et al. 2022, arXiv 2205.05198, 4.2.2"
ZERO = "Rajbhandari et al. 2020, arXiv 1910.02054, 7.2"
RING = "Liu et al. 2023, arXiv 2310.01889; Transformer Engine, context_parallel.py"
GSHARD = "Lepikhin et al. 2020, arXiv 2006.16668; Megatron Core, token_dispatcher.py"


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """A transformer, how it is split, and its batch, in the words of --model.

    `batch` is the sequences of one micro-batch, `micro` the micro-batches per step and data-parallel replica. `active`
    is how many of `params` a token uses (mixture of experts); `kv` the width of all key heads together; `vp` the
    virtual pipeline stages per GPU. `dtype` is of weights and activations, `grads` of the gradients that are reduced.
    """

    params: int
    layers: int
    hidden: int
    seq: int
    batch: int = 1
    micro: int = 1
    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    vp: int = 1
    zero: int = 0
    sp: int = 0
    recompute: int = 0
    dtype: str = "bf16"
    grads: str = ""
    vocab: int = 0
    tied: int = 0
    kv: int = 0
    experts: int = 0
    top_k: int = 0
    active: int = 0
    moe_layers: int = 0
    ep: int = 1
    etp: int = 0

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    @property
    def tokens(self) -> int:
        """The tokens of one step, of all replicas together."""
        return self.batch * self.micro * self.seq * self.dp

    @property
    def width(self) -> int:
        """The bytes of a weight or an activation."""
        return _BYTES[self.dtype]

    @property
    def stage_layers(self) -> int:
        """The layers of the fullest pipeline stage."""
        return -(-self.layers // self.pp)


_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_COUNT = re.compile(r"[0-9]{1,9}")  # "8192"
_LARGE = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,6}))?([KMBT]?)")  # "70B", "1.5T"
_MOST = 10**6  # of what is counted; far beyond what anybody trains, as the following
_MOST_OF = {"seq": 10**8, "vocab": 10**8, "params": 10**15, "active": 10**15}
_MOST_GPUS, _MOST_BATCH = 10**7, 10**9
_MOST_OF_SHAPE = 10**4  # times layers x hidden^2, of a model without experts; usual are 12
_NEEDED = ("params", "layers", "hidden", "seq")
SHARDED = 3  # the ZeRO stage that shards the parameters too
_FLAGS = {"sp": 1, "recompute": 1, "tied": 1, "zero": SHARDED}  # the largest value of what may be 0


def training_run(text: str) -> TrainingRun:
    """Read "params=70B,layers=80,hidden=8192,seq=8192,dp=8,tp=8".

    Raises NcheckError, in one line, for what is no such text and for a split that is not possible.
    """
    keys = {field.name: field.type for field in fields(TrainingRun)}
    given: dict[str, int | str] = {}
    for word in text.split(","):
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals:
            raise NcheckError(f"--model: expected keys with values, as in params=70B,layers=80, not {word.strip()!r}")
        if key not in keys:
            raise NcheckError(f"--model: {word.strip()!r} has none of the keys {', '.join(keys)}")
        if key in given:
            raise NcheckError(f"--model: {key} is given twice")
        given[key] = _value(key, value)
    if missing := [key for key in _NEEDED if key not in given]:
        raise NcheckError(f"--model: {missing[0]} is missing, as in: --model params=70B,layers=80,hidden=8192,seq=8192")
    run = TrainingRun(**given)  # type: ignore[arg-type]  # each by the reader of its key
    for reason in _contradictions(run):
        raise NcheckError(f"--model: {reason}")
    return replace(
        run, grads=run.grads or run.dtype, kv=run.kv or run.hidden, etp=run.etp or (run.tp if run.experts else 1),
        moe_layers=run.moe_layers or (run.layers if run.experts else 0), sp=int(run.sp or (run.experts and run.tp > 1)),
    )  # fmt: skip


_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(s|ms)")  # "1.2s", "800ms"
_DAY = 86400.0


def seconds_of(text: str | None) -> float | None:
    """Read --compute. Raises NcheckError for what is no time."""
    if text is None:
        return None
    time = _TIME.fullmatch(text)
    seconds = float(time[1]) * (1 if time[2] == "s" else 1e-3) if time else 0.0
    if not 0 < seconds <= _DAY:
        raise NcheckError(f"--compute: expected a time such as 1.2s or 800ms, at most a day, not {text!r}")
    return seconds


def _value(key: str, text: str) -> int | str:
    if key in ("dtype", "grads"):
        if text not in _BYTES:
            raise NcheckError(f"--model: {key} is one of {', '.join(_BYTES)}, not {text!r}")
        return text
    if key in _FLAGS:
        if not (_COUNT.fullmatch(text) and int(text) <= _FLAGS[key]):
            raise NcheckError(f"--model: {key} is 0{' or 1' if _FLAGS[key] == 1 else ', 1, 2 or 3'}, not {text!r}")
        return int(text)
    if key in ("params", "active"):
        large = _LARGE.fullmatch(text)
        digits, decimals, unit = large.groups("") if large else ("", "", "")
        number = int((digits + decimals) or 0) * _UNITS[unit] // int(f"1{'0' * len(decimals)}")
        if not 0 < number <= _MOST_OF[key]:
            raise NcheckError(f"--model: {key} is a number such as 70B, 1.5T or 350M, at most 1000T, not {text!r}")
        return number
    most = _MOST_OF.get(key, _MOST)
    if not (_COUNT.fullmatch(text) and 0 < int(text) <= most):
        raise NcheckError(f"--model: {key} is a whole number from 1 to {most:,}, not {text!r}")
    return int(text)


def _contradictions(run: TrainingRun) -> Iterator[str]:
    """Yield why this split of this model is not possible."""
    tokens, stages, params = run.seq // run.cp, run.pp * run.vp, f"params={run.params:,}"
    split = f"sequence parallel: {tokens} tokens cannot be divided by tp={run.tp}"
    shape, sequences = run.layers * run.hidden**2, run.batch * run.micro * run.dp
    many = not run.experts and run.params - _embeddings(run) > _MOST_OF_SHAPE * shape
    refused = (
        (run.gpus > _MOST_GPUS, f"dp x tp x pp x cp = {run.gpus:,} GPUs are more than {_MOST_GPUS:,}"),
        (sequences > _MOST_BATCH, f"batch x micro x dp = {sequences:,} sequences are more than {_MOST_BATCH:,}"),
        (many, f"{params} are too many for {run.layers} layers of {run.hidden}"),
        (run.params < shape, f"{params} are too few for {run.layers} layers of {run.hidden}"),
        (run.params < 2 * run.layers * run.hidden * run.kv, f"{params} are too few for kv={run.kv}"),
        (run.layers < stages, f"pp x vp = {stages} stages are more than layers={run.layers}"),
        (run.vp > 1 and run.pp == 1, f"vp={run.vp} needs pp"),
        (run.hidden % run.tp, f"hidden={run.hidden} cannot be divided by tp={run.tp}"),
        (run.seq % run.cp, f"seq={run.seq} cannot be divided by cp={run.cp}"),
        (run.sp and run.tp == 1, "sp=1 needs tp"),
        ((run.sp or run.experts) and tokens % run.tp, split),
        (run.tied and not run.vocab, "tied=1 needs vocab"),
        (_embeddings(run) >= run.params, f"{params} are too few for vocab={run.vocab}"),
        *(_of_mixture(run) if run.experts else _of_none(run)),
    )  # fmt: skip
    yield from (reason for wrong, reason in refused if wrong)


def _of_none(run: TrainingRun) -> Iterator[tuple[object, str]]:
    for key in ("top_k", "active", "moe_layers", "etp"):
        yield getattr(run, key), f"{key} needs experts"
    yield run.ep > 1, "ep needs experts"


def _of_mixture(run: TrainingRun) -> Iterator[tuple[object, str]]:
    ranks, split = run.dp * run.cp * run.tp, run.ep * (run.etp or run.tp)
    yield not run.top_k, "top_k is missing: experts needs it"
    yield not run.active, "active is missing: experts needs it, the parameters that a token uses"
    yield run.top_k >= run.experts, f"top_k={run.top_k} is not less than experts={run.experts}"
    yield run.active >= run.params, f"active={run.active:,} is not less than params={run.params:,}"
    few = run.top_k < run.experts and _of_experts(run) >= run.params
    yield few, f"active={run.active:,} is too few for top_k={run.top_k} of {run.experts} experts"
    yield run.moe_layers > run.layers, f"moe_layers={run.moe_layers} is more than layers={run.layers}"
    yield run.experts % run.ep, f"experts={run.experts} cannot be divided by ep={run.ep}"
    yield ranks % split, f"dp x cp x tp = {ranks} cannot be divided by ep x etp = {split}"


def _embeddings(run: TrainingRun) -> int:
    """Return the parameters of the input's and the output's embedding, which may be one."""
    return run.vocab * run.hidden * (1 if run.tied else 2)


def _of_experts(run: TrainingRun) -> int:
    """Return the parameters of all routed experts: what a token does not use is that of all experts but its top_k."""
    return run.experts * (run.params - run.active) // (run.experts - run.top_k) if run.experts else 0


@dataclass(frozen=True)
class Group:
    """Ranks that exchange with each other: `size` of them, at a distance of `stride` (the order tp, cp, dp, pp)."""

    name: str
    size: int
    stride: int

    def placed(self, world: int, gpus_per_node: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return where the groups of so many ranks lie: each group's (node, ranks there), each placement once."""
        block = self.size * self.stride
        firsts = (start + offset for start in range(0, world, block) for offset in range(self.stride))
        ranks = (range(first, first + block, self.stride) for first in firsts)
        return tuple(
            dict.fromkeys(
                tuple(Counter(rank // gpus_per_node for rank in one).items()) for one in ranks if one[-1] < world
            )
        )


@dataclass(frozen=True)
class Exchange:
    """One kind of collective operation of a step: `calls` of `size` bytes each, and the rule that says so."""

    what: str
    op: Op
    group: Group
    calls: int
    size: int
    formula: str
    source: str

    @property
    def sent(self) -> int:
        """The bytes that one GPU sends in a step, by a ring: bus bandwidth is this per second."""
        return round(self.calls * self.size * self.op.bus_factor(self.group.size))


@dataclass(frozen=True)
class Timed:
    """What one exchange takes in a step: of `seconds`, None if unknown, `start_up` does not depend on the bytes; None
    if it is unknown and so not counted.

    `nodes` and `ranks`: how many nodes a group spans, and its ranks on the fullest; `limited_by`: the slowest link.
    """

    nodes: int
    ranks: int
    seconds: float | None = None
    start_up: float | None = None
    limited_by: str = ""
    unknown: str = ""


@dataclass(frozen=True)
class StepPrediction:
    """What one step exchanges, and where it is timed on a cluster, how long each exchange takes, in the same order.

    `compute`: the seconds that a step computes, as the user gave it.
    """

    run: TrainingRun
    exchanges: tuple[Exchange, ...]
    timed: tuple[Timed, ...] = ()
    compute: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """The seconds of communication in a step if nothing overlaps; None where one is unknown, or none is timed."""
        known = [one.seconds for one in self.timed if one.seconds is not None]
        return sum(known) if self.timed and len(known) == len(self.timed) else None


def exchanges(run: TrainingRun) -> tuple[Exchange, ...]:
    """Return what the busiest GPU exchanges in one step; nothing of a group of one."""
    found = (*_of_tensors(run), *_of_context(run), *_of_tokens(run), *_of_pipeline(run), *_of_parameters(run))
    return tuple(each for each in found if each.group.size > 1)


def _of_tensors(run: TrainingRun) -> Iterator[Exchange]:
    """Tensor parallelism. A layer has two parts, attention and MLP; experts are not split by it. For the embeddings see
    Megatron Core, tensor_parallel/layers.py.
    """
    group, what = Group("tp", run.tp, 1), "activations of each layer"
    parts = 2 * run.stage_layers - min(run.moe_layers, run.stage_layers)
    size = run.batch * run.seq // run.cp * run.hidden * run.width
    whole = "batch x seq/cp x hidden"
    again = 1 if run.recompute else 0
    ends = (2 if run.pp == 1 else 1) if run.vocab else 0  # the embedding and the output layer
    if not run.sp:
        calls = run.micro * (parts * (2 + again) + ends)
        per_layer = 2 * (2 + again)
        yield Exchange(what, Op.ALL_REDUCE, group, calls, size, f"{per_layer} a layer and micro-batch, of {whole}",
                       f"{MEGATRON}, 3.2")  # fmt: skip
        return
    gathers, scatters = run.micro * (parts * (3 + again)), run.micro * (parts * (2 + again) + ends)
    gathers += run.micro * (ends + 1) if run.vocab else 0  # what the output layer multiplies is gathered in both passes
    yield Exchange(what, Op.ALL_GATHER, group, gathers, size,
                   f"{2 * (3 + again)} a layer and micro-batch, of {whole}", SEQUENCE)  # fmt: skip
    yield Exchange(what, Op.REDUCE_SCATTER, group, scatters, size,
                   f"{2 * (2 + again)} a layer and micro-batch, of {whole}", SEQUENCE)  # fmt: skip


def _of_context(run: TrainingRun) -> Iterator[Exchange]:
    """Ring attention: keys and values go round in each pass, and their gradients in the backward one."""
    rounds = 4 if run.recompute else 3
    size = 2 * run.batch * run.seq // run.cp * max(1, run.kv // run.tp) * run.width
    calls = run.micro * run.stage_layers * rounds * (run.cp - 1)
    yield Exchange("keys and values", Op.SEND_RECV, Group("cp", run.cp, run.tp), calls, size,
                   f"{rounds} x (cp-1) a layer and micro-batch, of 2 x batch x seq/cp x kv/tp", RING)  # fmt: skip


def _of_tokens(run: TrainingRun) -> Iterator[Exchange]:
    """Experts: tokens go to their experts and back, in both passes."""
    layers, again = run.micro * min(run.moe_layers, run.stage_layers), 1 if run.recompute else 0
    size = run.batch * run.seq // (run.cp * run.tp) * run.top_k * run.hidden * run.width
    tokens = "batch x seq/(cp x tp) x top_k x hidden"
    yield Exchange("tokens to experts and back", Op.ALL_TO_ALL, Group("ep", run.ep, run.etp), layers * 2 * (2 + again),
                   size, f"{2 * (2 + again)} an MoE layer and micro-batch, of {tokens}", GSHARD)  # fmt: skip
    for op in (Op.ALL_GATHER, Op.REDUCE_SCATTER):
        yield Exchange("tokens of split experts", op, Group("etp", run.etp if run.experts else 1, 1),
                       layers * (2 + again), size * run.etp,
                       f"{2 + again} an MoE layer and micro-batch, of etp x {tokens}", GSHARD)  # fmt: skip


def _of_pipeline(run: TrainingRun) -> Iterator[Exchange]:
    """Between stages: activations go on and their gradients back; of two stages, each sends one of both less."""
    size = run.batch * run.seq // run.cp * run.hidden * run.width // (run.tp if run.sp else 1)
    calls = run.micro * (2 * run.vp - (1 if run.pp == 2 else 0))  # noqa: PLR2004  two stages
    group = Group("pp", run.pp, run.tp * run.cp * run.dp)
    yield Exchange("activations between stages", Op.SEND_RECV, group, calls, size,
                   f"2 x vp a micro-batch, of batch x seq/cp x hidden{'/tp' if run.sp else ''}",
                   f"{MEGATRON}, 2.2.2 and 3.2")  # fmt: skip


def _of_parameters(run: TrainingRun) -> Iterator[Exchange]:
    """Yield what replicas exchange: the gradients of the fullest stage, and its parameters."""
    replicas, embedding = run.dp * run.cp, run.vocab * run.hidden
    ends = _embeddings(run) if run.pp == 1 else embedding  # the first stage and the last one have one each
    layers = run.params - _of_experts(run) - _embeddings(run)
    dense = (layers * run.stage_layers // run.layers + ends) // run.tp
    name = "dp x cp" if run.cp > 1 else "dp"
    yield from _of_replicas(run, Group(name, replicas, run.tp), dense, "")
    if run.experts:
        split = run.ep * run.etp
        routed = _of_experts(run) * min(run.moe_layers, run.stage_layers) // run.moe_layers // split
        group = Group("expert dp", replicas * run.tp // split, split)
        yield from _of_replicas(run, group, routed, " of experts")
    if run.tied and run.pp > 1:
        group = Group("first and last stage", 2, run.tp * run.cp * run.dp * (run.pp - 1))
        size = embedding // run.tp * _BYTES[run.grads]
        yield Exchange("gradients of the tied embedding", Op.ALL_REDUCE, group, 1, size,
                       "1 a step, of vocab x hidden/tp", "Megatron Core, finalize_model_grads.py")  # fmt: skip


def _of_replicas(run: TrainingRun, group: Group, parameters: int, of: str) -> Iterator[Exchange]:
    """Yield what replicas exchange of so many parameters, layer by layer."""
    gradients, weights = f"gradients{of}", f"parameters{of}"
    count = run.stage_layers
    grads, values = parameters * _BYTES[run.grads] // count, parameters * run.width // count
    if not run.zero:
        yield Exchange(gradients, Op.ALL_REDUCE, group, count, grads, f"once a step, all {gradients} of the GPU", ZERO)
        return
    scatters, often = (run.micro, "once a micro-batch") if run.zero > 1 else (1, "once a step")
    yield Exchange(gradients, Op.REDUCE_SCATTER, group, count * scatters, grads, f"{often}, all {gradients} of the GPU",
                   ZERO)  # fmt: skip
    gathers, often = (2 * run.micro, "twice a micro-batch") if run.zero == SHARDED else (1, "once a step")
    yield Exchange(weights, Op.ALL_GATHER, group, count * gathers, values, f"{often}, all {weights} of the GPU",
                   ZERO)  # fmt: skip
