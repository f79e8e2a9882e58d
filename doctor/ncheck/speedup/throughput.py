"""The throughput of one training run, from its log: the frameworks' lines, the window of steps, the mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from ncheck.errors import NcheckError

DROP, STEPS = 20, 100  # steps that are left out at first, and steps of which the mean is taken
LEAST = 5  # steps that must be left
LONGEST_LINE = 4096  # characters
_NUMBER = r"(?P<value>[\d,]*\.?\d+(?:e[+-]?\d+)?)"


class NoThroughputError(NcheckError):
    """A log has no throughput, or too little of it; the message says which log lacks what."""


@dataclass(frozen=True)
class Kind:
    """How a framework prints its speed. `unit`: of the value; a group `unit` of the pattern wins.

    `seconds`: the value is the time of a step, in this many seconds. `per_gpu`: it is that of one GPU. `whole`: it is
    one value for the whole run.
    """

    name: str
    pattern: re.Pattern[str]
    unit: str = "steps/s"
    seconds: float = 0.0
    per_gpu: bool = False
    whole: bool = False


def _kind(name: str, pattern: str, **more: object) -> Kind:
    return Kind(name, re.compile(pattern.replace("NUMBER", _NUMBER), re.IGNORECASE), **more)  # type: ignore[arg-type]


_STEP = r"(?P<step>\d+)"
# The first that a log has is taken: samples before steps, the whole job before one GPU.
KINDS = (
    # iteration  100/ 500 | consumed samples: 9 | elapsed time per iteration (ms): 1234.5 | global batch size: 256 |
    _kind("Megatron-LM", rf"iteration\s+{_STEP}/.*elapsed time per iteration \(ms\):\s*NUMBER.*"
          r"global batch size:\s*(?P<batch>\d+)", unit="samples/s", seconds=1e-3),
    # epoch=0/micro_step=100/global_step=100, RunningAvgSamplesPerSec=35.2, CurrSamplesPerSec=36.1, MemAllocated=1GB
    _kind("DeepSpeed", rf"(?:global_step={_STEP}\b.*)?CurrSamplesPerSec=NUMBER", unit="samples/s"),
    # [Epoch 0/10][Iter: 100/1000] lr: 0.1, batch_cost: 0.123s, reader_cost: 0.01s, ips: 520.3 samples/s
    _kind("PaddlePaddle", r"\bips:\s*NUMBER\s*(?P<unit>samples|images|tokens|instance)s?/s"),
    # iter: 99/220  loss: 7.2  total_throughput: 123.45 samples/s
    _kind("OneFlow", rf"(?:\biter:\s*{_STEP}\b.*)?\b(?:total_)?throughput(?:\(samples/s\))?:\s*NUMBER",
          unit="samples/s"),
    # 10	images/sec: 2345.6 +/- 3.2 (jitter = 4.1)	7.9
    _kind("tf_cnn_benchmarks", rf"^\s*{_STEP}\s+(?P<unit>images)/sec:\s*NUMBER\s*\+/-"),
    # | epoch 001:    100 / 1000 loss=9.1, wps=12345.6, ups=3.2, num_updates=100
    _kind("fairseq", r"\bwps[=:]\s*\"?NUMBER", unit="tokens/s"),
    # Iter #0: 302.5 img/sec per GPU
    _kind("Horovod", r"Iter #(?P<step>\d+):\s*NUMBER\s*(?P<unit>img|images|samples|sentences)/sec per (?:GPU|CPU)",
          per_gpu=True),
    # step:  10  loss:  8.1  memory: 30GiB  tps: 5,123  mfu: 41.2%
    _kind("torchtitan", rf"\bstep:\s*{_STEP}\b.*\btps:\s*NUMBER", unit="tokens/s", per_gpu=True),
    # 1234.5 tokens/s   |   samples/sec: 512.3
    _kind("samples, images or tokens a second",
          r"(?<![\w.])NUMBER\s*(?P<unit>samples|images|img|tokens|tok|sequences)\s*/\s*s(?:ec(?:ond)?)?\b(?!\s*(?:per|/))"),
    _kind("samples, images or tokens a second",
          r"\b(?P<unit>samples|images|tokens|sequences)\s*(?:/|_?per_?)\s*s(?:ec(?:ond)?)?\s*[:=]\s*NUMBER"),
    # ***** train metrics: {'train_runtime': 123.4, 'train_samples_per_second': 45.6, 'train_steps_per_second': 1.4}
    _kind("Hugging Face Trainer", r"train_(?P<unit>samples)_per_second['\"]?\s*[:=]\s*['\"]?NUMBER", whole=True),
    # {... 'train_step_timing in s': 1.234}   |   train_step_timing in s=1.23
    _kind("NeMo", r"train_step_timing in s['\"]?\s*[:=]\s*NUMBER", seconds=1.0),
    # Epoch: [0][ 10/626]	Time  0.345 (  0.512)	Data  0.011
    _kind("PyTorch's ImageNet example", rf"Epoch: \[\d+\]\[\s*{_STEP}/\d+\]\s+Time\s+NUMBER", seconds=1.0),
    # Epoch(train) [1][ 50/1000]  lr: 1.0e-03  eta: 0:10:00  time: 0.3456  data_time: 0.0123
    _kind("MMEngine", rf"Epoch\(train\)\s*\[\d+\]\[\s*{_STEP}/\d+\].*?\btime:\s*NUMBER", seconds=1.0),
    # iter 100: loss 2.3456, time 123.45ms, mfu 41.20%
    _kind("nanoGPT", rf"\biter {_STEP}: loss \S+ time NUMBERms", seconds=1e-3),
    # 469/469 [==============================] - 5s 10ms/step - loss: 0.1
    _kind("Keras, by epoch", r"\b(\d+)/\1 \S+ (?:- )?.{0,20}?NUMBER(?P<scale>us|ms|s)/step", seconds=1.0, whole=True),
    #  45%|████      | 450/1000 [01:23<01:40,  5.48it/s]   |   1.25s/it
    _kind("tqdm", rf"\b{_STEP}/\d+ \[[\d:]+<[\d:?]+,\s*NUMBER(?P<unit>it/s|s/it)"),
)  # fmt: skip
_SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_UNITS = {"img": "images", "tok": "tokens", "instance": "samples"}
_PER_JOB = re.compile(r"Number of (?:GPU|CPU)s:\s*(\d+)|Total img/sec on (\d+) (?:GPU|CPU)", re.IGNORECASE)

# [1,0]<stdout>:   |   [0]:   |   0:   |   [rank0]:   |   [default0]:   |   gpu01: 0:
_RANK = re.compile(r"^(?:\[\d+,(\d+)\]<std(?:out|err)>:? ?|\[(?:rank|default)?(\d+)\]:| *(\d{1,5}): )")


@dataclass(frozen=True)
class Throughput:
    """The throughput of a run in `unit`, as `kind` prints it: the mean of so many steps after those that were dropped.

    `per_gpu`: the log says what one GPU does; `gpus` is the number of them, where the log says it.
    """

    value: float
    unit: str
    kind: str
    steps: int
    dropped: int
    per_gpu: bool = False
    gpus: int | None = None


@dataclass(frozen=True)
class _Point:
    """One line: the rate, or the time of a step in seconds where `timed`; the samples of a step, where it says them."""

    value: float
    unit: str
    step: int | None
    timed: bool
    batch: int | None


def throughput(name: str, lines: Iterable[str], pattern: str = "", drop: int = DROP, steps: int = STEPS) -> Throughput:
    """Return the throughput of the log with this name. Raises NoThroughputError.

    `pattern` is the user's own: its first group is a throughput. Of a log of several ranks the first rank is read.
    """
    kinds = (Kind("--pattern", _own(pattern), "by --pattern"),) if pattern else KINDS
    found: dict[int, dict[str, list[_Point]]] = {}
    gpus = None
    for line in _texts(lines):
        if counted := _PER_JOB.search(line):
            gpus = int(counted[1] or counted[2])
        prefix = _RANK.match(line)
        rank, text = (next(filter(None, prefix.groups())), line[prefix.end() :]) if prefix else ("", line)
        for place, kind in enumerate(kinds):
            if (match := kind.pattern.search(text)) and (point := _point(kind, match)):
                found.setdefault(place, {}).setdefault(rank, []).append(point)
                break
    if not found:
        known = "give its form with --pattern '([0-9.]+) samples/s'"
        raise NoThroughputError(f"{name}: no throughput in a form that is known; {known}")
    kind = kinds[min(found)]
    points = next(iter(found[min(found)].values()))
    if len(units := {point.unit for point in points}) > 1:
        several = ", ".join(sorted(units))
        raise NoThroughputError(f"{name}: throughput in several units: {several}; choose one with --pattern")
    if kind.whole:
        window = points[1:] or points
        return Throughput(_mean(window), window[0].unit, kind.name, 0, len(points) - len(window))
    points = _once(points)
    window, dropped, covered = _window(points, drop, steps)
    if covered < LEAST:
        least = f"the first {drop} are left out (--drop), and {LEAST} must be left"
        raise NoThroughputError(f"{name}: only {_steps_of(points)} steps; {least}")
    return Throughput(_mean(window), window[0].unit, kind.name, covered, dropped, kind.per_gpu, gpus)


def _own(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise NoThroughputError(f"--pattern: {error}") from None
    if not compiled.groups:
        raise NoThroughputError("--pattern: it has no group: put the number in brackets, as in '([0-9.]+) samples/s'")
    return compiled


def _texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines; a progress bar writes its states over each other, with a carriage return between."""
    for line in lines:
        yield from (part[:LONGEST_LINE] for part in line.rstrip("\n").split("\r") if part.strip())


def _point(kind: Kind, match: re.Match[str]) -> _Point | None:
    """Return what a line says; None for a number that is none, or zero."""
    groups = match.groupdict()
    try:
        value = float((groups.get("value") or match[1] or "").replace(",", ""))
    except ValueError:
        return None
    if not 0 < value < 1e15:  # noqa: PLR2004  no rate and no time is larger
        return None
    word = (groups.get("unit") or "").lower()
    step = int(groups["step"]) if groups.get("step") else None
    seconds = kind.seconds * _SCALES.get(groups.get("scale") or "s", 1.0) or (1.0 if word == "s/it" else 0.0)
    unit = f"{_UNITS.get(word, word)}/s" if word and "it" not in word else kind.unit
    batch = int(groups["batch"]) if groups.get("batch") else None
    return _Point(value * seconds if seconds else value, unit, step, bool(seconds), batch)


def _once(points: list[_Point]) -> list[_Point]:
    """Return each step once: several ranks may have printed it, and a bar is drawn again."""
    by_step = {point.step if point.step is not None else -1 - place: point for place, point in enumerate(points)}
    return list(by_step.values()) if _rises(points) else points


def _rises(points: list[_Point]) -> bool:
    """Whether the steps are numbers of the whole run; those of an epoch begin again."""
    steps = [point.step for point in points if point.step is not None]
    return all(later >= earlier for earlier, later in pairwise(steps))


def _every(points: list[_Point]) -> float:
    """Return how many steps lie between two lines."""
    numbers = [point.step for point in points if point.step is not None]
    apart = [later - earlier for earlier, later in pairwise(numbers) if later > earlier]
    return median(apart) if apart else 1


def _steps_of(points: list[_Point]) -> int:
    return round(len(points) * _every(points))


def _window(points: list[_Point], drop: int, steps: int) -> tuple[list[_Point], int, int]:
    """Return the lines that count, the steps that were dropped before them, and the steps that they cover."""
    every = _every(points)
    first = -(-drop // max(1, round(every)))
    kept = points[first : first + max(1, round(steps / every))]
    return kept, round(first * every), round(len(kept) * every)


def _mean(window: list[_Point]) -> float:
    """Return the mean rate; of times, the rate of the mean time."""
    value = mean(point.value for point in window)
    if not window[0].timed:
        return value
    return (window[0].batch or 1) / value
