"""The throughput of one training run, from its log: the frameworks' lines, the window of steps, the mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import mean, median

from ncheck.errors import NcheckError
from ncheck.lazy_dataclass import dataclass

DROP, STEPS = 20, 100  # steps that are left out at first, and steps of which the mean is taken
LEAST = 5  # steps that must be left
LONGEST_LINE = 4096  # characters
# Of at most 20 digits and commas before the point, lest a long run of them takes squared time.
_NUMBER = r"(?P<value>(?:[\d,]{0,20}\.\d+|[\d,]{0,20}\d)(?:e[+-]?\d+)?)"
_RATE = _NUMBER + r"(?P<thousands>[kmgb](?=\b|_))?"  # 2.1M, 262K


class NoThroughputError(NcheckError):
    """A log has no throughput, or too little of it; the message says which log lacks what."""


@dataclass(frozen=True)
class LogFormat:
    """How a framework prints its speed. `unit`: of the value; a group `unit` of the pattern wins.

    `seconds`: the value is the time of a step, in this many seconds. `per_gpu`: it is that of one GPU. `whole`: it is
    one value for the whole run. `each`: the steps of a line that counts something larger.
    """

    name: str
    pattern: re.Pattern[str]
    unit: str = "steps/s"
    seconds: float = 0.0
    per_gpu: bool = False
    whole: bool = False
    each: int = 1


def _kind(name: str, pattern: str, **more: object) -> LogFormat:
    return LogFormat(name, re.compile(pattern.replace("NUMBER", _NUMBER).replace("RATE", _RATE), re.IGNORECASE), **more)  # type: ignore[arg-type]


_STEP = r"(?P<step>\d+)"
# The first that a log has is taken: samples before steps, the whole job before one GPU.
KINDS = (
    # iteration  100/ 500 | consumed samples: 9 | elapsed time per iteration (ms): 1234.5 | global batch size: 256 |
    _kind("Megatron-LM", rf"iteration\s+{_STEP}/.*elapsed time per iteration \(ms\):\s*NUMBER.*"
          r"global batch size:\s*(?P<batch>\d+)", unit="samples/s", seconds=1e-3),
    # epoch=0/micro_step=100/global_step=100, RunningAvgSamplesPerSec=35.2, CurrSamplesPerSec=36.1, MemAllocated=1GB
    _kind("DeepSpeed", rf"(?:global_step={_STEP}\b.*)?CurrSamplesPerSec=NUMBER", unit="samples/s"),
    # batch: [20/900], speed: 2.00 step/s, ips_total: 16384 tokens/s, ips: 2048 tokens/s
    _kind("PaddlePaddle", r"\bips_total:\s*RATE\s*(?P<unit>samples|images|tokens)/s"),
    # iter: 99/220  loss: 7.2  total_throughput: 123.45 samples/s
    _kind("OneFlow", rf"(?:\biter(?:ation)?:\s*{_STEP}\b.*)?\b(?:total_)?throughput(?:\(samples/s\))?:\s*NUMBER"
          r"(?=\s*(?:samples/s\b|\||,|$))", unit="samples/s"),
    # 10	images/sec: 2345.6 +/- 3.2 (jitter = 4.1)	7.9
    _kind("tf_cnn_benchmarks", rf"^\s*{_STEP}\s+(?P<unit>images)/sec:\s*NUMBER\s*\+/-"),
    # | epoch 001:    100 / 1000 loss=9.1, wps=12345.6, ups=3.2, num_updates=100   |   "wps": "12345.6"
    _kind("fairseq", r"\bwps\"?\s*[=:]\s*\"?NUMBER", unit="tokens/s"),
    # Train throughput/samples_per_sec: 256.1, below [batch=100/4800]:
    _kind("MosaicML Composer", r"\bthroughput/(?P<unit>samples)_per_sec: NUMBER"),
    # Iteration: 10  train.loss : 6.9  train.compute_ips : 2900.1 images/s train.total_ips : 2800.2 images/s
    _kind("DeepLearningExamples", rf"Iteration:\s*{_STEP}\b.*train\.total_ips : NUMBER (?P<unit>images)/s"),
    # Iter #0: 302.5 img/sec per GPU, the mean of ten batches
    _kind("Horovod", r"Iter #(?P<step>\d+):\s*NUMBER\s*(?P<unit>img|images|samples|sentences)/sec per (?:GPU|CPU)",
          per_gpu=True, each=10),
    # step:  10  loss:  8.1  memory: 30GiB  tps: 5,123  mfu: 41.2%
    _kind("torchtitan", rf"\bstep:\s*{_STEP}\b.*\btps:\s*NUMBER", unit="tokens/s", per_gpu=True),
    # Epoch: [0]  [  10/10009]  eta: 1:02:33  lr: 0.1  img/s: 320.3  loss: 6.9  time: 0.1  data: 0.0002
    _kind("torchvision", rf"Epoch: \[\d+\]\s+\[\s*{_STEP}/\d+\].*\b(?P<unit>img)/s:\s*NUMBER", per_gpu=True),
    # [Epoch 0/10][Iter: 100/1000] lr: 0.1, batch_cost: 0.123s, reader_cost: 0.01s, ips: 520.3 samples/s
    _kind("PaddlePaddle", r"\bips:\s*NUMBER\s*(?P<unit>samples|images|tokens|instance)s?/s", per_gpu=True),
    # 1234.5 tokens/s   |   samples/sec: 512.3   |   tokens_per_sec: 2.1M
    _kind("samples, images or tokens a second",
          r"(?<![\w.])RATE\s*(?P<unit>samples|images|img|tokens|tok|sequences)\s*/\s*s(?:ec(?:ond)?)?\b"
          r"(?!\s*(?:per|/|[:=]))"),
    _kind("samples, images or tokens a second",
          r"(?<![\w/])(?P<unit>samples|images|img|tokens|sequences)\s*(?:/|_?per_?)\s*s(?:ec(?:ond)?)?\s*[:=]\s*RATE"),
    # tokens_per_second_per_gpu:512.3   |   Tokens/s/device: 5123.4   |   512.3 tokens/s/GPU
    _kind("throughput of one GPU",
          r"\b(?P<unit>samples|images|tokens)(?:/|_per_)s(?:ec(?:ond)?)?(?:/|_per_| per )(?:gpu|device)\s*[:=]\s*RATE",
          per_gpu=True),
    _kind("throughput of one GPU",
          r"(?<![\w.])RATE\s*(?P<unit>samples|images|tokens)/s(?:ec)?(?:/| per )(?:gpu|device)\b", per_gpu=True),
    # ***** train metrics: {'train_runtime': 123.4, 'train_samples_per_second': 45.6, 'train_steps_per_second': 1.4}
    _kind("Hugging Face Trainer", r"train_(?P<unit>samples)_per_second['\"]?\s*[:=]\s*['\"]?NUMBER", whole=True),
    # iteration  100/ 500 | elapsed time per iteration (ms): 1234.5 | learning rate: 1E-04 |
    _kind("Megatron-LM", rf"iteration\s+{_STEP}/.*elapsed time per iteration \(ms\):\s*NUMBER", seconds=1e-3),
    # global_batch_size: 128 | global_step: 9 | train_step_timing in s: 1.234   |   train_step_timing in s=1.23
    _kind("NeMo", r"global_batch_size: (?P<batch>\d+).*train_step_timing in s: NUMBER", unit="samples/s", seconds=1.0),
    _kind("NeMo", r"train_step_timing in s['\"]?\s*[:=]\s*NUMBER", seconds=1.0),
    # Epoch: [0][ 10/626]	Time  0.345 (  0.512)	Data  0.011
    _kind("PyTorch's ImageNet example", rf"Epoch: \[\d+\]\[\s*{_STEP}/\d+\]\s+Time\s+NUMBER", seconds=1.0),
    # Epoch(train) [1][ 50/1000]  lr: 1.0e-03  eta: 0:10:00  time: 0.3456  data_time: 0.0123
    _kind("MMEngine", rf"Epoch(?:\(train\))?\s*\[\d+\]\[\s*{_STEP}/\d+\].*?\btime:\s*NUMBER", seconds=1.0),
    # eta: 2:03:04  iter: 99  total_loss: 1.2  time: 0.3500  last_time: 0.3600  data_time: 0.0123
    _kind("Detectron2", rf"\biter: {_STEP} .*?\btime: NUMBER", seconds=1.0),
    # iter 100: loss 2.3456, time 123.45ms, mfu 41.20%
    _kind("nanoGPT", rf"\biter {_STEP}: loss \S+ time NUMBERms", seconds=1e-3),
    # 469/469 [==============================] - 5s 10ms/step - loss: 0.1
    _kind("Keras, by epoch", r"\b(\d+)/\1 \S+ (?:- )?.{0,20}?NUMBER(?P<scale>us|ms|s)/step", seconds=1.0, whole=True),
    #  45%|████      | 450/1000 [01:23<01:40,  5.48it/s]   |   1.25s/it
    _kind("tqdm", rf"\b{_STEP}/(?P<total>\d+) \[[\d:]+<[\d:?]+,\s*NUMBER(?P<unit>it/s|s/it)", seconds=1.0),
)  # fmt: skip
_SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_THOUSANDS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
_UNITS = {"img": "images", "tok": "tokens", "instance": "samples"}
_COLORS = re.compile("\x1b\\[[0-9;]*m")  # ESC[31mstep:  1ESC[0m
# step 100   |   "num_updates": "100"   |   iteration: 100 / 500   |   Batch [0-20]
_ANY_STEP = re.compile(
    r"(?:\b|_)(?:step|iter|iteration|batch|num_updates)['\"]?\s{0,9}[:=#]?\s{0,9}['\"\[]?(\d+)\b(?!\.\d)", re.IGNORECASE
)
_COMPOSER = re.compile(r"^\[batch=(\d+)/")  # [batch=100/4800]:
# One of these is in every line that a kind, or one of the above, reads: most lines of a large log have none.
_SIGNS = (
    "/s", "s/it", "sec", "per s", "per_s", "time", "timing", "throughput", "wps", "tps", "ips", "number of",
    "variables", "[batch=",
)  # fmt: skip
_OTHER_BAR = re.compile("valid|eval|test|sanity|predict|load|map", re.IGNORECASE)  # Validation DataLoader 0: 4/4
# Number of GPUs: 8   |   Total img/sec on 8 GPU(s): 2400.1 +-9.6
_PER_JOB = re.compile(r"Number of (?:GPU|CPU)s:\s*(\d+)|Total img/sec on (\d+) (?:GPU|CPU)", re.IGNORECASE)
_HOROVOD = re.compile(r"^Variables:\s+horovod")  # of tf_cnn_benchmarks, which then prints what one GPU does

# [1,0]<stdout>:   |   [0]:   |   0:   |   [rank0]:   |   [default0]:   |   gpu01: 0:
_RANK = re.compile(r"^(?:\[\d+,(\d+)\]<std(?:out|err)>:? ?|\[(?:rank|default)?(\d+)\]:| *(\d{1,5}): )")


@dataclass(frozen=True)
class Throughput:
    """The throughput of a run in `unit`, as `kind` prints it: the mean of so many steps after those that were dropped.

    `per_gpu`: the log says what one GPU does; `gpus` is the number of them, where the log says it. `ranks` have printed
    one; that of the first was read.
    """

    value: float
    unit: str
    kind: str
    steps: int
    dropped: int
    per_gpu: bool = False
    gpus: int | None = None
    ranks: int = 1


@dataclass(frozen=True)
class _Point:
    """One line: the rate, or the time of a step in seconds where `timed`; the samples of a step, where it says them.

    `total`: the steps of the bar that was drawn.
    """

    value: float
    unit: str
    step: int | None
    timed: bool
    batch: int | None
    total: int = 0


def throughput(name: str, lines: Iterable[str], pattern: str = "", drop: int = DROP, steps: int = STEPS) -> Throughput:
    """Return the throughput of the log with this name. Raises NoThroughputError.

    `pattern` is the user's own: its first group is a throughput. Of a log of several ranks the first rank is read.
    """
    kinds = (LogFormat("--pattern", _own(pattern), "by --pattern"),) if pattern else KINDS
    found: dict[int, dict[str, list[_Point]]] = {}
    gpus = latest = None
    horovod = False
    best = len(kinds)  # the place of the first kind that the log has: those after it no longer matter
    for line in _texts(lines, every=bool(pattern)):
        if counted := _PER_JOB.search(line):
            gpus = int(counted[1] or counted[2])
        prefix = _RANK.match(line)
        rank, text = (next(filter(None, prefix.groups())), line[prefix.end() :]) if prefix else ("", line)
        horovod = horovod or bool(_HOROVOD.match(text))
        if header := _COMPOSER.match(text):
            latest = int(header[1])
        for place, kind in enumerate(kinds[: best + 1]):
            if (match := kind.pattern.search(text)) and (point := _point(kind, match, latest)):
                best = place
                found.setdefault(place, {}).setdefault(rank, []).append(point)
                break
    if not found:
        known = "give its form with --pattern '([0-9.]+) samples/s'"
        raise NoThroughputError(f"{name}: no throughput in a form that is known; {known}")
    kind, ranks = kinds[best], found[best]
    points = next(iter(ranks.values()))
    if len(units := {point.unit for point in points}) > 1:
        several = ", ".join(sorted(units))
        raise NoThroughputError(f"{name}: throughput in several units: {several}; choose one with --pattern")
    if kind.whole:
        window = points[1:] or points
        return Throughput(_mean(window), window[0].unit, kind.name, 0, len(points) - len(window), ranks=len(ranks))
    points = _once(_of_one_bar(points))
    how = f", the bar of {points[0].total} steps" if points[0].total else ""
    how = how or (", each line counted as a step" if all(point.step is None for point in points) else "")
    per_gpu = kind.per_gpu or (horovod and kind.name == "tf_cnn_benchmarks")
    window, dropped, covered = _window(points, drop, steps, kind.each)
    if covered < LEAST:
        least = f"the first {drop} are left out (--drop), and {LEAST} must be left"
        raise NoThroughputError(f"{name}: only {round(len(points) * _every(points) * kind.each)} steps; {least}")
    return Throughput(_mean(window), window[0].unit, f"{kind.name}{how}", covered, dropped, per_gpu, gpus, len(ranks))


def _own(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise NoThroughputError(f"--pattern: {error}") from None
    if not compiled.groups:
        raise NoThroughputError("--pattern: it has no group: put the number in brackets, as in '([0-9.]+) samples/s'")
    return compiled


def _texts(lines: Iterable[str], *, every: bool) -> Iterator[str]:
    """Yield every line, or those that may say something; a progress bar ends its states with a carriage return."""
    for line in lines:
        for part in line.rstrip("\n").split("\r"):
            if part.strip() and (every or any(sign in part.lower() for sign in _SIGNS)):
                yield _COLORS.sub("", part[:LONGEST_LINE])


def _point(kind: LogFormat, match: re.Match[str], latest: int | None) -> _Point | None:
    """Return what a line says; None for a number that is none, or zero, and for a bar of something else."""
    groups = match.groupdict()
    try:
        value = float((groups.get("value") or groups.get("ms") or groups.get("s") or match[1] or "").replace(",", ""))
    except ValueError:
        return None
    value *= _THOUSANDS[(groups.get("thousands") or "").lower()]
    if not 0 < value < 1e15:  # noqa: PLR2004  no rate and no time is larger
        return None
    word = (groups.get("unit") or "").lower()
    total = int(groups.get("total") or 0)
    if total and _OTHER_BAR.search(match.string[: match.start()]):
        return None
    value = 1 / value if word == "it/s" else value
    own = groups.get("step") or ((any_step := _ANY_STEP.search(match.string)) and any_step[1])
    step = int(own) if own else latest
    seconds = 1e-3 if groups.get("ms") else 1.0 if groups.get("s") else kind.seconds
    seconds *= _SCALES.get((groups.get("scale") or "s").lower(), 1.0)
    unit = f"{_UNITS.get(word, word)}/s" if word and "it" not in word else kind.unit
    unit = "steps/s" if seconds and not kind.seconds else unit  # the user's own step time
    batch = int(groups["batch"]) if groups.get("batch") else None
    return _Point(value * seconds if seconds else value, unit, step, bool(seconds), batch, total)


def _of_one_bar(points: list[_Point]) -> list[_Point]:
    """Return the points of the longest bar: others are of a validation, or of files that are loaded."""
    longest = max((point.total for point in points if point.step), default=0)
    return [point for point in points if point.total == longest]


def _once(points: list[_Point]) -> list[_Point]:
    """Return each step once: several ranks may have printed it, and a bar is drawn again. An epoch begins again."""
    if len({point.step for point in points}) == 1:
        return points
    epochs: list[dict[int, _Point]] = [{}]
    highest = 0
    for place, point in enumerate(points):
        step = -1 - place if point.step is None else point.step
        if 0 <= step < highest / 2:
            epochs.append({})
            highest = 0
        highest = max(highest, step)
        epochs[-1][step] = point
    return [point for epoch in epochs for point in epoch.values()]


def _every(points: list[_Point]) -> float:
    """Return how many steps lie between two lines."""
    numbers = [point.step for point in points if point.step is not None]
    apart = [later - earlier for earlier, later in pairwise(numbers) if later > earlier]
    return median(apart) if apart else 1


def _window(points: list[_Point], drop: int, steps: int, each: int) -> tuple[list[_Point], int, int]:
    """Return the lines that count, the steps that were dropped before them, and the steps that they cover."""
    every = _every(points) * each
    first = -(-drop // max(1, round(every)))
    kept = points[first : first + max(1, round(steps / every))]
    return kept, round(first * every), round(len(kept) * every)


def _mean(window: list[_Point]) -> float:
    """Return the mean rate; of times, the samples or steps of all of it by the time of all of it."""
    if not window[0].timed:
        return mean(point.value for point in window)
    return sum(point.batch or 1 for point in window) / sum(point.value for point in window)
