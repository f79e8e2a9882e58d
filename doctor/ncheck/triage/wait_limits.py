"""What limits the waits of a job for its ranks, as logs, dumps and a running job show it: setting, value, work.

A limit ends a job whose ranks came too late, and one in which a rank never comes. More time is right for the first
kind only, so it is proposed where work was seen that takes longer than the limit, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.report.language import tr
from ncheck.text import span
from ncheck.triage.certainty import NAMED, Grade
from ncheck.triage.diagnosis import Diagnosis, WaitLimit
from ncheck.triage.facts.flight_recorder import DumpFile, FlightRecorderFacts
from ncheck.triage.facts.log_tails import LogTailsFacts
from ncheck.triage.facts.stacks import StacksFacts
from ncheck.triage.wait_settings import (
    LINES,
    MINUTE,
    WAITS_FOR_A_RANK,
    WORDS_OF_SETTINGS,
    Setting,
    framework_of,
    frameworks_in,
    given,
    seconds_of,
)  # fmt: skip

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.job import Job
    from ncheck.triage.parse.flight_recorder import Dump
    from ncheck.triage.scan import Hit, Scan, ScannedLog

_WORDS = (*WORDS_OF_SETTINGS, "nccl version")
_SHORTEST = 300.0  # seconds: no framework's limit is shorter by default
_MARGIN = 1.5  # of the time that the work takes


@dataclass(frozen=True)
class Shown:
    """What is known of the limit that a wait has reached, or may reach. `works`: it waits for work that goes on.

    `causes`: those that this limit can end. `note`: what somebody set in vain, "" for nothing.
    """

    setting: Setting
    causes: frozenset[str]
    seconds: float | None
    needs: float | None = None
    works: bool = False
    note: str = ""


def shown_in(scan: Scan, recorded: Iterable[Dump] = ()) -> Shown | None:
    """Return which limit the failures in logs, and dumps of the flight recorder, name; None if none does."""
    hits = scan.hits
    words = [line.text for line in scan.context if _is_of_setting(line.text)]
    for line in LINES:
        for hit in hits:
            if match := line.pattern.search(hit.line.text):
                seconds = seconds_of(match)
                setting = line.setting or framework_of(scan.frameworks, words, seconds)
                known = seconds if seconds is not None else next(given(setting, words), None)
                return _noted(Shown(setting, line.causes, known, *_work(hits, scan.logs, known)), words)
    setting = framework_of(scan.frameworks, words, None)
    known = next(given(setting, words), None)
    needs, works = _work(hits, scan.logs, known)
    if works:
        return _noted(Shown(setting, WAITS_FOR_A_RANK, known, needs, works), words)
    return _recorded(recorded, scan.frameworks, words)


def _work(hits: Iterable[Hit], logs: Sequence[ScannedLog], seconds: float | None) -> tuple[float | None, bool]:
    """Return how long one rank works that the others wait for, and whether it was seen to: after the job's last step,
    and for longer than the limit. A progress bar that shows no time, or a short one, is of other work.
    """
    lines = [
        hit.line.text for hit in hits
        if hit.clue.cause == "slow_rank_timeout" and hit.clue.grade >= Grade.LIKELY
        and hit.line.number > logs[hit.line.order[0]].last_step
    ]  # fmt: skip
    needs = max(filter(None, map(_needs, lines)), default=0.0)
    if needs > (seconds or _SHORTEST):
        return needs, True
    return None, any("%|" not in line for line in lines) and not needs


def settings_of(job: Job, cluster: Cluster) -> tuple[str, ...]:
    """Return what a running job shows of its settings: command lines, variables, and lines of its logs."""
    variables = (word for rank in job.ranks for word in _as_words(rank.variables))
    return tuple(dict.fromkeys((*_commands(job), *variables, *_lines_of_settings(cluster))))


def _commands(job: Job) -> Iterator[str]:
    yield from (rank.process.command for rank in job.ranks)
    yield from (one.command for held in job.launchers.values() for one in held)


def shown_of(job: Job, cluster: Cluster, words: Collection[str]) -> Shown | None:
    """Return what limits the waits of a running job with these settings; None if nothing shows it."""
    files = dict.fromkeys(file for facts in cluster.facts(StacksFacts).values() for file in _files(facts))
    names = {
        name
        for text in dict.fromkeys((*_commands(job), *_lines_of_settings(cluster), *files))
        for name in frameworks_in(text.lower())
    }
    read = (one for facts in cluster.facts(FlightRecorderFacts).values() for one in facts.dumps.values())
    recorded = _recorded((one.dump for one in read if isinstance(one, DumpFile)), names, words)
    if recorded is not None:
        return recorded
    setting = framework_of(names, words, None)
    known = next(given(setting, words), None)
    if known is None and not names and not any("torch/distributed/" in file for file in files):
        return None
    return _noted(Shown(setting, WAITS_FOR_A_RANK, known), words)


def _files(facts: StacksFacts) -> Iterator[str]:
    for process in facts.processes.values():
        for threads in process.looks if isinstance(process.looks, tuple) else ():
            yield from (frame.file for thread in threads for frame in thread.frames)


def _lines_of_settings(cluster: Cluster) -> Iterator[str]:
    """Yield the lines of the job's logs that may say how a limit is set, as a list of arguments does."""
    for facts in cluster.facts(LogTailsFacts).values():
        for tail in facts.tails:
            if isinstance(tail.text, str) and _is_of_setting(tail.text):
                yield from filter(_is_of_setting, tail.text.splitlines())


def _is_of_setting(line: str) -> bool:
    lower = line.lower()
    return any(word in lower for word in _WORDS)


def _as_words(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables of a process as a launch line has them."""
    return (f"{name}={value}" for name, value in variables.items())


def _recorded(dumps: Iterable[Dump], names: Collection[str], words: Collection[str]) -> Shown | None:
    seconds = min((dump.limit for dump in dumps if dump.limit), default=None)
    if seconds is None:
        return None
    return _noted(Shown(framework_of(names, words, seconds), WAITS_FOR_A_RANK, seconds), words)


# Running tokenizer on dataset:  88%|########  | 383700/433643 [29:55<03:25, 2432.70 examples/s]
_PROGRESS = expression(r"%\|[^|]{0,200}\|.{0,60}\[(\d[\d:]{0,9})<(\d[\d:]{0,9})[,\]]")


def _needs(text: str) -> float | None:
    """Return how long the work takes in all that a progress bar reports."""
    bars = _PROGRESS.findall(text)
    return sum(map(_clock, bars[-1])) if bars else None


def _clock(text: str) -> float:
    total = 0
    for part in text.split(":"):
        total = total * MINUTE + int(part or 0)
    return float(total)


def limited(diagnoses: Iterable[Diagnosis], shown: Shown | None) -> tuple[Diagnosis, ...]:
    """Return diagnoses with what limits the wait of those that are about one, and how to give it more time.

    Beside another cause that is as sure, the wait may be for a rank that died of it.
    """
    found = tuple(diagnoses)
    if shown is None:
        return found
    helps = shown.works and all(one.cause in shown.causes for one in found if one.confidence >= NAMED)
    limit = WaitLimit(shown.setting.framework, shown.setting.name, shown.seconds, shown.needs, helps)
    fix, do = _more_time(shown) if helps else ("", "")
    return tuple(
        replace(one, limit=limit, fix=one.fix or fix, do=one.do or do) if one.cause in shown.causes else one
        for one in found
    )


def _more_time(shown: Shown) -> tuple[str, str]:
    """Return a command or a sentence that gives a wait the time of the work that it is for."""
    setting = shown.setting
    enough = max(_MARGIN * (shown.needs or 0.0), 2 * (shown.seconds or 0.0))
    number = math.ceil(enough / (10 * MINUTE)) * 10 * MINUTE // setting.unit
    line = setting.change.format(n=number or ("SECONDS" if setting.unit == 1 else "MINUTES"))
    return (line, "") if setting.typed and number else ("", line)


def sentence(limit: WaitLimit, *, works: bool = False) -> str:
    """Return what a report says of a limit: "30 min, set by --ddp_timeout (transformers); the work takes 33 min".

    `works`: the rank that the others wait for was seen to work.
    """
    value = span(limit.seconds) if limit.seconds is not None else tr("not known here")
    said = tr("{value}, set by {setting} ({framework})", value=value, setting=limit.setting, framework=limit.framework)
    needs = tr("; the work takes about {span}", span=span(limit.needs)) if limit.needs else ""
    doubt = tr("; the work must end within it" if works else "; more time helps only if the late rank still comes")
    return f"{said}{needs}{'' if limit.helps else doubt}"


# What people set to get more time, and what limits no wait: export NCCL_TIMEOUT=3600
_NCCL_TIMEOUT = expression(r"\bNCCL_TIMEOUT[\"']?\s?(?:=|: ?|set by environment to )[\"']?(\d{1,12})\b")


def _noted(shown: Shown, words: Iterable[str]) -> Shown:
    """Say that NCCL_TIMEOUT, which is set, has no effect.

    No version of NCCL and of PyTorch reads it. Some programs do, and pass it to init_process_group(): InternEvo and
    VeOmni among them. A limit of that value is one of those.
    """
    value = next((int(found) for text in words for found in _NCCL_TIMEOUT.findall(text)), None)
    if value is None or shown.seconds in (None, value, value / 1000, value * MINUTE):
        return shown
    why = f"neither NCCL nor PyTorch reads it; {shown.setting.name} sets how long a rank waits"
    return replace(shown, note=f"NCCL_TIMEOUT={value} has no effect: {why}")
