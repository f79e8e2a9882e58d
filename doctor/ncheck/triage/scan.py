"""Logs to what matters of them: lines that signatures read, lines that several together show something, progress.

Most lines of a log differ from others only in their numbers. The template of a line is the line in lower case without
digits; whether any pattern could match is decided once for each template, and the patterns are tried on few lines.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import cache

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.triage.across_lines import WORDS as WORDS_ACROSS_LINES
from ncheck.triage.across_lines.choices import once_per_node
from ncheck.triage.lines import LONGEST, LogLine, Moment, as_utf8, cleaned, host_of, moment_of, rank_of, rank_of_file
from ncheck.triage.literals import WordIndex, literals
from ncheck.triage.signature import LineClue, Signature
from ncheck.triage.wait_settings import WORDS as WORDS_OF_FRAMEWORKS
from ncheck.triage.wait_settings import WORDS_OF_SETTINGS, frameworks_in

CHUNK = 2**19  # bytes that are searched at once
AT_EACH_END = 500  # hits of one kind that are kept, from the beginning and from the end
_FIRST, _LAST = 2000, 200  # lines of one template that are read: what they say is in their words, not in their numbers
_MOST_TEMPLATES = 100_000
_MOST_CONTEXT = 20_000  # lines for what several lines show
_KEPT = 600  # characters of a line
_LOOK_BACK = 100  # lines in which a line without a time looks for the time of a line before it
_LOWER = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))  # noqa: PLR2004  A to Z
_NO_LINE_ENDS = bytes(set(range(256)) - set(b"\r\n"))

# 0x55d0ab12f00: nothing that a template needs
_HEX = re.compile(rb"0x[0-9a-f]+")

# colours and cursor movements, and titles of windows
_ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)")

# What follows is searched in templates: in lower case, without digits.

# # Avg bus bandwidth    : 9.0213
# Training completed. Do not forget to share your model on huggingface.co/models
# `Trainer.fit` stopped: `max_epochs=3` reached.
_DONE = expression(
    r"# (?:avg bus bandwidth|out of bounds values :  ok)"
    r"|\btraining (?:is |has )?(?:complete\b|completed|finished(?! iteration)|done\b)"
    r"|\bfinished training\b|`trainer\.fit` stopped: `max_|'train_runtime':|\bcompleted successfully\b"
)

# node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE
_STARTED = expression(r"init complete|launch mode parallel")

# Epoch: [0][ 20/625]  Time  1.428 ( 1.972)  Loss 6.9
# iteration       10/  500000 | consumed samples:  5120 | lm loss: 1.1E+01
# INFO:root:Epoch[0] Batch [20] Speed: 26.81 samples/sec accuracy=0.109747
# {'loss': 2.51, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.02}
# Iter #1: 172.3 img/sec per GPU
# Avg prompt throughput: 7.1 tokens/s, Avg generation throughput: 120.4 tokens/s, Running: 8 reqs
# [2025-06-26 02:04:09 TP0] Decode batch. #running-req: 3, #token: 100, gen throughput (token/s): 88.2
#     8388608       2097152     float     sum      -1    250.0   33.55   33.55      0
_STEPS = expression(
    r"\b(?:epoch|step|iter|iters|iterations?|batch)\b.{0,300}(?:loss|accuracy|(?:samples|images?|imgs?|tokens)/s)"
    r"|\bavg generation throughput\b|\bdecode batch\b.{0,200}\bgen throughput\b|\btraining finished iteration\b"
    r"|\bloss\b.{0,100}\b(?:epoch|step|iter)\b"
    r"|^[\s.:\[\]a-z_-]{0,40}\s(?:float|half|bfloat|double|u?int)\s{1,9}(?:sum|prod|min|max|avg|none)\s"
)

# step 512 loss nan
_NAN = expression(r"\bloss\b[^a-z]{0,20}\bnan\b")

# node01:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
_CONNECTED = expression(r"nccl info (?:channel|ring) .* via ")

# NaN detected in loss, aborting
# step 512 loss nan
# FATAL: checkpoint is corrupt
_BAD = expression(
    r"(?<![/.-])\b(?:abort(?:s|ed|ing)?(?! complete)|(?<!non-)fatal(?!: not a git)|panic|diverged|traceback"
    r"|terminat(?:ed|ing)(?! normally)|killed(?!  )|giving up)\b(?!\.+[a-z])"
    r"|\bnan\b(?! (?:iterations|checks?|count|steps))"
    r"|(?<!bus )(?<!level: )(?<![/=-])\b(?!dlerror)\w*(?:error|exception)\b(?=:\s*[^\s.,)\]}%|-]|\s*$)"
)

# The level that a line states, in text as it is written. The first one counts: a line of INFO may speak of an ERROR.
_LEVEL = expression(
    r"(?P<error>"
    # [E605 17:54:16.878770124 ProcessGroupNCCL.cpp:616] | F0605 17:54:16.878770 178707 rdma_context.cpp:198]
    r"(?:^|[\s\[\]:>)|])[EF](?:20\d\d)?\d{3,4} \d\d:\d\d:\d\d\.\d{3,9}\s.{0,80}?[\w-]\.\w{1,4}:\d{1,6}\]"
    # 2024-01-01 12:00:00.000001: E tensorflow/core/framework/op.cc:12]
    r"|\d: [EF] \S{1,120}\.\w{1,4}:\d{1,6}\]"
    # n1:7:8 [0] transport/net.cc:12 NCCL WARN: its level of errors
    r"|NCCL WARN "
    # ERROR 08-14 14:34:47 [core.py:684] | - ERROR - | UCX  ERROR
    r"|(?<![A-Za-z_='\"-])(?<!\b[Nn]o )(?<!\b0 )(?<!evel )(?<!evel: )(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b"
    r"(?!\(s\)|[='\"]|\W{1,3}0\b)"
    # |CCL_ERROR| | [error] | <critical>
    r"|\|[A-Z]{2,8}_ERROR\||[\[<|](?i:error|fatal|critical|crit|alert|emerg|panic)[\]>|]"
    # level=error msg="..." | {"level":"fatal"
    r"|(?<![\w-])(?:level|lvl|severity)(?:=|\": ?)\"?(?i:error|fatal|critical|d?panic)\b"
    # Warning  FailedMount  3m  kubelet  ...: an event of Kubernetes is normal, or of this level
    r"|^\s*Warning {2,20}[A-Z][A-Za-z]{2,60} "
    # EI0006: 2024-08-05-18:15:21.270 | ERR02200 DIST call hccl api failed
    r"|^\W{0,4}E[A-Z]\d{4}: |\bERR\d{5} )"
    r"|(?P<warning>(?<![A-Za-z])WARN(?:ING)?\b|[\[<|](?i:warn(?:ing)?)[\]>|]|\blevel(?:=|\": ?)\"?(?i:warn)"
    r"|(?:^|[\s\[\]:>)|])W\d{3,8} \d\d:\d\d:\d\d\.)"
    r"|(?P<information>(?<![A-Za-z])(?:INFO|DEBUG|TRACE|NOTICE|DIAG)\b|[\[<|](?i:info|debug|trace|notice)[\]>|]"
    r"|\blevel(?:=|\": ?)\"?(?i:info|debug|trace)|(?:^|[\s\[\]:>)|])I\d{3,8} \d\d:\d\d:\d\d\.)"
)
_LEVEL_WITHIN = 300  # characters of a line

# The words of a line that may state the level of an error, as templates have them.
_LEVEL_WORDS = (
    "error", "fatal", "critical", "severe", "panic", "crit]", "alert]", "emerg]", "e ::.", "f ::.", ": e ", ": f ",
    "nccl warn ", "warning  ", "err ", "ei: ", "ej: ", "ee: ", "ef: ", "eh: ", "ek: ", "el: ", "ez: ",
)  # fmt: skip

# What ncheck itself prints in a job's log.
#   ncheck 0.1.0 · 4 nodes: gpu[01-04] · 2026-01-02 03:04:05+00:00
# exit code 1: NC131
_REPORT_BEGINS = expression(r"^(?:\W*\w{0,12}\W{1,3})?ncheck \S* · ")
_REPORT_ENDS = expression(r"^(?:\W*\w{0,12}\W{1,3})?exit code : ")

# ncheck: warning: the name of gpu03 does not resolve; the job goes on
# error NC131 hostname-unresolvable  gpu03
_OF_NCHECK = expression(r"^(?:\W*\w{0,12}\W{1,3})?ncheck: |\bnc [a-z]+-[a-z]+(?:-[a-z]+)*(?: |$)")
_LONGEST_REPORT = 1000

# node01:77:80 [0] NCCL INFO comm 0x55d0 rank 3 nranks 16 cudaDev 3 busId 1a000 - Init COMPLETE
_RANK_OF_PROCESS = expression(
    r"(?<![\w.-])([\w.-]{1,253}):(\d{1,9}):\d+ \[\d+\] NCCL INFO .{0,200}\brank (\d{1,6}) nranks (\d{1,6})\b"
)

# node01:4000:5000 [0] NCCL WARN Cuda failure 2 'out of memory'
_PROCESS = expression(r"(?<![\w.-])([\w.-]{1,253}):(\d{1,9}):\d+ \[\d+\]")

# Words of programs that are known here: a log with none of them is of another program.
_PROGRAMS = (
    "nccl", "torch", "horovod", "mpirun", "mpiexec", "mpi_", "orte", "prte", "pmix", "hydra", "open mpi", "deepspeed",
    "slurm", "srun", "kernel:", "nvrm", "traceback", "gloo", "raylet", "lightning", "cuda", "tensorflow", "mxnet",
    "paddle", "oneflow", "ucx", "ssh:", "xla", "rank", "epoch", "nvidia", "accelerate", "linux version",
    "net/socket", "net/ib", "bootstrap : using", "bootstrap: using",
)  # fmt: skip


@dataclass
class Hit:
    """A line and what it says."""

    clue: LineClue
    line: LogLine


@dataclass
class _Template:
    """What the lines of one template are good for. `tail` are the last of those that were not read at once."""

    signatures: tuple[Signature, ...] = ()
    done: bool = False
    steps: bool = False
    progress: bool = False  # done, steps, or a job that started
    connected: bool = False
    bad: bool = False  # its words sound like a failure
    levelled: bool = False  # it may state the level of an error
    error: bool | None = None  # whether it reports one, by its level or its words; None until a line was looked at
    context: bool = False
    ranks: bool = False
    ignored: bool = False  # the exception below it ended nothing
    program: bool = False  # of a program that is known here
    own: str = ""  # of a report of ncheck: "begins", "ends"
    matters: bool = False  # whether its lines are to be looked at one by one
    seen: int = 0
    tail: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=_LAST))


# Of the lines that say only that a known program wrote them.
_PROGRAM = _Template(program=True)


@dataclass
class ScannedLog:
    """What is known of one log: `lines` read, and the numbers of the lines that show that its job goes on."""

    name: str
    index: int
    rank: str = ""
    lines: int = 0
    done: int = 0
    last_progress: deque[int] = field(default_factory=lambda: deque(maxlen=3))
    last_step: int = 0  # or the line in which the job ended well
    known: bool = False  # whether a known program wrote a line of it
    moment: Moment | None = None  # of the last line that was looked at
    steps: bool = False
    started: bool = False  # NCCL initialised a communicator
    connected: bool = False
    ignored: bool = False  # Python reported an exception that it ignores, and not yet its last line
    sampled: bool = False  # lines that say something together were left out: there were too many of one template
    report_until: int = 0  # the last line that may be of a report of ncheck itself: it is no evidence
    last: LogLine | None = None
    trouble: LogLine | None = None  # the first line since the last progress that sounds like a failure
    stated: bool = False  # that line states its level: it is an error, whatever its program is


class Scan:
    """Reads logs one after another, and keeps what matters of them: `hits`, `context`, and each log's progress."""

    def __init__(self) -> None:
        self.logs: list[ScannedLog] = []
        self.world_size = 0  # of the largest communicator, 0 if no line says it
        self.timed_out: set[str] = set()  # ranks
        self.frameworks: set[str] = set()  # as wait_limits.py names them
        self._index = _index()
        self._templates: dict[bytes, _Template | None] = {}
        self._seen: list[_Template] = []  # in the log that is read now
        self._first: dict[tuple[object, ...], list[Hit]] = {}
        self._last: dict[tuple[object, ...], deque[Hit]] = {}
        self._context: list[LogLine] = []
        self._late_context: deque[LogLine] = deque(maxlen=_MOST_CONTEXT)
        self._alike: set[tuple[int, str, str]] = set()  # what many lines of a node say, and one of them is kept
        self._rank_of_process: dict[tuple[str, str], tuple[int, str]] = {}  # in the largest communicator

    @property
    def known(self) -> bool:
        """Whether a line of a known program is among them."""
        return any(log.known for log in self.logs)

    @property
    def hits(self) -> list[Hit]:
        """The clues of single lines: the first and the last of each kind, in the order of the lines."""
        hits = [hit for kept in (*self._first.values(), *self._last.values()) for hit in kept]
        return sorted(hits, key=lambda hit: hit.line.order)

    @property
    def context(self) -> list[LogLine]:
        """Lines that say something only together with others, in their order."""
        return sorted((*self._context, *self._late_context), key=lambda line: line.order)

    def rank_of_process(self, line: LogLine) -> str:
        """Return the rank of the process that wrote a line of NCCL, if another line of it names its rank."""
        match = _PROCESS.search(line.text[:300])
        return self._rank_of_process.get((match[1], match[2]), (0, ""))[1] if match else ""

    def read(self, name: str, chunks: Iterable[bytes], rank: str = "") -> ScannedLog:
        """Read one log, in chunks of any size. `rank`: who wrote it, if its name does not say it."""
        log = ScannedLog(name, len(self.logs), rank or rank_of_file(name))
        self.logs.append(log)
        part = b"\n"
        for part in _whole_lines(chunks):
            self._read(log, part)
        log.lines += not part.endswith(b"\n")  # the last line has no end
        log.last = _last_line(log, part)
        self._read_tails(log)
        return log

    def _read(self, log: ScannedLog, part: bytes) -> None:
        part = as_utf8(part)
        part = _ESCAPE.sub(b"", part) if b"\x1b" in part else part
        part = part.replace(b"\r\n", b"\n")
        ends = part.translate(None, _NO_LINE_ENDS) if b"\r" in part else None  # a progress bar is one line
        lower = part.translate(_LOWER)
        if b"0x" in lower:
            lower = _HEX.sub(b"0x", lower)
        templates = lower.translate(None, b"0123456789*").replace(b"\r", b"\n").split(b"\n")
        self._learn(templates)
        known = self._templates
        raw: list[bytes] = []
        number, upto, timed = log.lines + 1, 0, (-1, log.moment)
        reports = bool(log.report_until) or b"ncheck" in lower
        for at, found in enumerate([known[template[:LONGEST]] for template in templates]):
            if found is None:
                continue
            log.known = log.known or found.program
            if found is _PROGRAM:
                continue
            if ends is None:
                number = log.lines + 1 + at
            else:
                number += ends[upto:at].count(b"\n")
                upto = at
            if reports and _in_report(log, found, number):
                continue
            if found.progress:
                self._progress(log, found, number)
                if not found.bad and not found.levelled and not found.matters:
                    continue
            raw = raw or part.replace(b"\r", b"\n").split(b"\n")
            if found.seen >= _FIRST and not (found.bad or found.levelled):
                found.tail.append((number, raw[at][: 4 * LONGEST]))
            else:
                timed = self._line(log, found, number, raw, at, timed)
        log.moment = timed[1]
        log.lines += part.count(b"\n")

    def _learn(self, templates: list[bytes]) -> None:
        known = self._templates
        new = {template[:LONGEST] for template in templates}.difference(known)
        if len(known) + len(new) > _MOST_TEMPLATES:
            self._templates = known = {}
            new = {template[:LONGEST] for template in templates}
        for template in new:
            known[template] = self._template(template)

    def _template(self, template: bytes) -> _Template | None:
        """Return what a template is good for; None if for nothing."""
        candidates = self._index.candidates(template)
        if not candidates:
            return None
        text = template.decode("utf-8", "replace")
        signatures = tuple(candidate for candidate in candidates if isinstance(candidate, Signature))
        marks = {candidate for candidate in candidates if isinstance(candidate, str)}
        if "own" in marks:
            if _OF_NCHECK.search(text):
                return None
            if _REPORT_BEGINS.search(text):
                return _Template(own="begins")
        if "framework" in marks:
            self.frameworks.update(frameworks_in(text))
        harmless = _is_harmless(text)
        if harmless:
            signatures = ()
        done = "done" in marks and bool(_DONE.search(text))
        steps = "steps" in marks and bool(_STEPS.search(text)) and not _NAN.search(text)
        found = _Template(
            signatures,
            done,
            steps,
            progress=done or steps or ("started" in marks and bool(_STARTED.search(text))),
            connected="connected" in marks and bool(_CONNECTED.search(text)),
            bad="bad" in marks and not harmless and bool(_BAD.search(text)) and not text.lstrip().startswith("#"),
            levelled="level" in marks and not harmless,
            context="context" in marks,
            ranks="ranks" in marks,
            ignored="ignored" in marks,
            program="program" in marks,
            own="ends" if "own" in marks and _REPORT_ENDS.search(text) else "",
            matters=bool(signatures) or not marks.isdisjoint(("context", "ranks", "ignored")),
        )
        if found.matters or found.progress or found.connected or found.bad or found.levelled or found.own:
            return found
        return _PROGRAM if found.program else None

    def _progress(self, log: ScannedLog, found: _Template, number: int) -> None:
        log.last_progress.append(number)
        log.trouble, log.stated = None, False
        if found.done:
            log.done = log.last_step = number
        elif found.steps:
            log.steps, log.last_step = True, number
        else:
            log.started = True

    def _line(  # noqa: PLR0913, PLR0917  what is known of the place
        self, log: ScannedLog, found: _Template, number: int, raw: list[bytes], at: int,
        timed: tuple[int, Moment | None],
    ) -> tuple[int, Moment | None]:  # fmt: skip
        """Take in one line; return where the last time was found, and that time."""
        log.connected = log.connected or found.connected
        if (found.bad or found.levelled) and found.error is not False and not log.stated:
            _judge(log, found, number, _text(raw[at]))
        if not found.matters:
            return timed
        found.seen += 1
        if found.seen == 1:
            self._seen.append(found)
        if found.seen > _FIRST:
            found.tail.append((number, raw[at][: 4 * LONGEST]))
            return timed
        timed = _timed(raw, at, timed)
        self._take(log, found, number, _text(raw[at]), timed[1])
        return timed

    def _read_tails(self, log: ScannedLog) -> None:
        """Read the lines that were put off; templates start anew with the next log."""
        for found in self._seen:
            log.sampled = log.sampled or (found.context and len(found.tail) == _LAST)
            for number, raw in found.tail:
                text = _text(raw)
                self._take(log, found, number, text, moment_of(text))
            found.tail.clear()
            found.seen = 0
        self._seen.clear()

    def _take(self, log: ScannedLog, found: _Template, number: int, text: str, moment: Moment | None) -> None:
        line = _line(log, number, text, moment)
        if found.ranks and (match := _RANK_OF_PROCESS.search(line.text)) and len(self._rank_of_process) < 10**5:
            process, ranks = (match[1], match[2]), int(match[4])
            self.world_size = max(self.world_size, ranks)
            if ranks >= self._rank_of_process.get(process, (0, ""))[0]:  # smaller ones are parts of the job
                self._rank_of_process[process] = ranks, match[3]
        if found.context and not self._is_kept(line):
            kept = self._context if len(self._context) < _MOST_CONTEXT else self._late_context
            kept.append(_short(line))
        if found.ignored:
            log.ignored = True
        for clue in _line_clues(found.signatures, line.text):
            if log.ignored and clue.kind == "exception":
                log.ignored = False
                continue
            if clue.tag == "waits" and line.rank:
                self.timed_out.add(line.rank)
            kind = clue.cause, clue.grade, clue.tag, clue.kind
            early = self._first.setdefault(kind, [])
            hits = early if len(early) < AT_EACH_END else self._last.setdefault(kind, deque(maxlen=AT_EACH_END))
            hits.append(Hit(clue, _short(line)))

    def _is_kept(self, line: LogLine) -> bool:
        """Return whether a line of its node that says the same is kept already."""
        alike = once_per_node(line.text)
        key = line.order[0], line.host, alike
        again = bool(alike) and key in self._alike
        if alike and len(self._alike) < _MOST_CONTEXT:
            self._alike.add(key)
        return again


def states_error(text: str) -> bool:
    """Return whether a line states that it reports an error, in one of the forms in which programs state a level."""
    match = _LEVEL.search(text[:_LEVEL_WITHIN])
    return bool(match and match["error"] is not None)


def _judge(log: ScannedLog, found: _Template, number: int, text: str) -> None:
    """Take in a line that may report an error. One that states that it does outweighs one that sounds like it."""
    stated = found.levelled and states_error(text)
    match = None if stated else _LEVEL.search(text[:_LEVEL_WITHIN])
    informs = bool(match and match["information"] is not None)
    found.error = stated or (found.bad and not informs)
    if found.error and (stated or log.trouble is None):
        log.trouble, log.stated = _line(log, number, text, None), stated


_TROUBLE = expression(r"fail|error|retry|disabled|progress|without|mismatch|wrong|closed|nable|refused")


def _is_harmless(text: str) -> bool:
    # node01:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0; most INFO lines report no trouble
    # WARNING: Retrying (Retry(total=2)) after connection broken by 'NewConnectionError(...)': it is tried again
    # E external/local_xla/.../cuda_dnn.cc:9261] Unable to register cuDNN factory: each start of TensorFlow says so
    # n1:7:8 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]: no fault on a node without InfiniBand
    # libfabric:85:1747438790::core:core:fi_getinfo_():1392<info> fi_getinfo: provider shm returned -61
    _, information, message = text.partition("nccl info ")
    if information:
        return not _TROUBLE.search(message)
    return any(words in text for words in _HARMLESS)


_HARMLESS = (
    "retrying (retry(total=", "unable to register cu", "failed to open libibverbs", "<info> ", "event : port active",
    "event : communication established", "event : send queue drained", "event : path migrated", "event : srq limit",
    "event : last wqe",
)  # fmt: skip


def _line_clues(signatures: Iterable[Signature], text: str) -> Iterator[LineClue]:
    """Yield the clues of one line; a fallback counts only if no other signature reads the line."""
    found = [clue for signature in signatures if (clue := signature.read(text))]
    return iter([clue for clue in found if not clue.fallback] or found)


def _line(log: ScannedLog, number: int, text: str, moment: Moment | None) -> LogLine:
    rank = rank_of(text) if "ank" in text or "<std" in text or ": " in text[:12] else ""
    return LogLine(number, text, host_of(text), rank or log.rank, log.name, (log.index, number), moment)


def _in_report(log: ScannedLog, found: _Template, number: int) -> bool:
    """Return whether a line is of a report that ncheck itself printed in the log."""
    if found.own == "begins":
        log.report_until = number + _LONGEST_REPORT
    inside = number <= log.report_until
    if found.own == "ends":
        log.report_until = 0
    return inside


def _last_line(log: ScannedLog, part: bytes) -> LogLine | None:
    """Return the last line that is not empty, of the last part of a log."""
    text = part.rstrip()
    empty = max(part[len(text) :].count(b"\n") - 1, 0)
    return _line(log, log.lines - empty, _text(text.rpartition(b"\n")[2]), None) if text else None


def _short(line: LogLine) -> LogLine:
    """Return the line with as much of its text as evidence needs."""
    return line if len(line.text) <= _KEPT else replace(line, text=line.text[:_KEPT])


def _text(raw: bytes) -> str:
    return cleaned(raw[: 4 * LONGEST].decode("utf-8", "replace"))


def _timed(raw: list[bytes], at: int, last: tuple[int, Moment | None]) -> tuple[int, Moment | None]:
    """Return the time of a line, or that of the nearest line before it that has one."""
    for back in range(at, max(last[0], at - _LOOK_BACK, -1), -1):
        moment = moment_of(raw[back][:300].decode("utf-8", "replace"))
        if moment:
            return at, moment
    return at, last[1]


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts of about CHUNK that end at the end of a line; the rest of a line that is too long is left out."""
    rest = b""
    skipping = False
    for chunk in chunks:
        for start in range(0, len(chunk), CHUNK):
            part = chunk[start : start + CHUNK]
            if skipping:
                _, newline, part = part.partition(b"\n")
                skipping = not newline
                if skipping:
                    continue
                part = newline + part
            head, newline, tail = part.rpartition(b"\n")
            if newline:
                yield rest + head + newline
                rest = tail
            else:
                rest += tail
            if len(rest) > 2 * CHUNK:
                yield rest[:CHUNK]
                rest, skipping = b"", True
    if rest:
        yield rest


def _any_of(*words: str) -> frozenset[tuple[str, ...]]:
    return frozenset((word,) for word in words)


@cache
def _index() -> WordIndex[Signature | str]:
    """Return all that can matter in a line, by the words that the line needs for it. Compiling it takes a while."""
    from ncheck.triage.signatures import SIGNATURES

    marks = {
        "done": literals(_DONE), "steps": literals(_STEPS), "started": literals(_STARTED), "bad": literals(_BAD),
        "level": _any_of(*_LEVEL_WORDS),
        "connected": _any_of(" via "), "ranks": _any_of(" nranks "), "ignored": _any_of("exception ignored in"),
        "context": _any_of(*WORDS_ACROSS_LINES, *WORDS_OF_SETTINGS),
        "framework": _any_of(*WORDS_OF_FRAMEWORKS), "program": _any_of(*_PROGRAMS),
        "own": _any_of("ncheck ", "ncheck: ", "exit code ", "nc "),
    }  # fmt: skip
    return WordIndex(
        [
            *((literals(signature.pattern), signature) for signature in SIGNATURES),
            *((alternatives, mark) for mark, alternatives in marks.items()),
        ]
    )
