"""What NCCL's RAS answers to VERBOSE STATUS (since 2.24), and RCCL's: text, or JSON since 2.28.7.

Layouts: src/ras/client_support.cc of NCCL 2.24.3 to 2.30.7, and of RCCL. The text lists only ranks that differ from
most others, JSON lists all. Counts are of collectives that a rank has launched, by kind since 2.26, without those that
CUDA graphs replay and without send and receive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable
from ncheck.triage.parse import tolerant_json

MOST = 16384  # communicators, and ranks of one: larger numbers are nonsense
_MOST_NOTICES = 200
_LARGEST = 2**63

# The state of a rank in a communicator. NO_MEMBER: its process answers, and is no member, as before or after its time.
INIT, RUNNING, FINALIZE, ABORT, NO_MEMBER = "INIT", "RUNNING", "FINALIZE", "ABORT", "NOCOMM"

# ncclResult_t in NCCL's own words
_RESULTS: Mapping[int, str] = {
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
    6: "Remote process error",
}

_SUCCESS, _IN_PROGRESS = 0, 7


@dataclass(frozen=True)
class RasProcess:
    """A process as RAS names it: an address of its node, and its number in its own namespace of processes."""

    host: str
    pid: int


@dataclass(frozen=True)
class RasRank:
    """One rank of a communicator; `rank` is its number in that. What was not printed is empty, or None.

    `counts`: collectives launched, by kind. `error`: NCCL's words.
    """

    rank: int
    process: RasProcess | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    state: str = ""
    error: str = ""


@dataclass(frozen=True)
class MissingRank:
    """A rank that gave no data. `dead`: not reached for 60 s. `answers`: its process does, but it is no member."""

    rank: int
    process: RasProcess | None = None
    dead: bool = False
    answers: bool = False


@dataclass(frozen=True)
class Communicator:
    """`key` names it in all answers of a job. `size` is the number of its ranks, None if it was not printed.

    `spread`: of each kind of collective in which ranks differ, (count, ranks with that count), most ranks first.
    """

    key: str
    size: int | None = None
    ranks: tuple[RasRank, ...] = ()
    missing: tuple[MissingRank, ...] = ()
    spread: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CommunicatorRow:
    """A row of the text's table: communicators of one size, status and errors."""

    communicators: int
    nodes: int
    ranks: int
    status: str
    errors: str


@dataclass(frozen=True)
class RasStatus:
    """One answer. `library` is "NCCL" or "RCCL"; `form` "text" or "json"; `whole`: nothing of it is missing.

    `silent`: processes that gave no data; `dead`: those that were not reached for 60 s; the numbers with them include
    those that are not named. `timeouts` of RAS's own messages. `notices`: lines of errors and warnings, as printed.
    `processes`: how many the job has, which text alone tells.
    """

    version: str
    library: str
    form: str
    communicators: tuple[Communicator, ...] = ()
    groups: tuple[CommunicatorRow, ...] = ()
    silent: tuple[RasProcess, ...] = ()
    silent_count: int = 0
    dead: tuple[RasProcess, ...] = ()
    dead_count: int = 0
    timeouts: int = 0
    notices: tuple[str, ...] = ()
    whole: bool = True
    processes: int | None = None


def parse_ras(text: str) -> RasStatus:
    """Read an answer of either form; a last line without its end may be cut, and is left out.

    Raises ValueError for anything else.
    """
    text = text.replace("\r\n", "\n")
    begin = _JSON.search(text)
    found = _VERSION.search(text)
    if found:
        return _RasText(found).read(text[found.end() :].split("\n")[:-1])
    if begin:
        return _json(text[begin.start() :])
    raise ValueError("not an answer of NCCL's RAS")


# JSON


# {
#   "nccl_version": "2.30.7",
_JSON = expression(r'^\{\s*"nccl_version"', re.MULTILINE)


def _json(text: str) -> RasStatus:
    loaded, whole = tolerant_json.loads(text)
    top: Mapping[str, object] = loaded if isinstance(loaded, dict) else {}
    version = str(top.get("nccl_version", ""))
    if not version:
        raise ValueError("not an answer of NCCL's RAS")
    found = [(row, one) for row in _rows(top.get("communicators")) if (one := _communicator(row))]
    communicators = tuple(one for _, one in found)
    whole = whole and len(found) == top.get("communicators_count") and all(_has_all(row, one) for row, one in found)
    ras = top.get("ras")
    timeouts = _number(ras.get("timeouts_count")) if isinstance(ras, dict) else None
    missing = [rank for one in communicators for rank in one.missing if rank.process and not rank.answers]
    dead = tuple(dict.fromkeys(rank.process for rank in missing if rank.process and rank.dead))
    silent = tuple(dict.fromkeys(rank.process for rank in missing if rank.process and not rank.dead))
    return RasStatus(
        printable(version, 40), "NCCL", "json", communicators, (), silent, len(silent), dead, len(dead),
        timeouts or 0, (), whole and timeouts is not None,
    )  # fmt: skip


def _communicator(row: Mapping[str, object]) -> Communicator | None:
    key, size = row.get("hash"), _number(row.get("size"), MOST)
    if not isinstance(key, str) or size is None:
        return None
    ranks = tuple(one for each in _rows(row.get("ranks")) if (one := _rank(each, size)))
    missing = tuple(lost for each in _rows(row.get("missing_ranks")) if (lost := _missing(each, size)))
    return Communicator(_hash(key), size, ranks, missing, _spread(ranks))


def _has_all(row: Mapping[str, object], communicator: Communicator) -> bool:
    """Return whether a communicator has all the ranks that it says it has, each once and in a form that can be read."""
    counts = (row.get("ranks_count"), row.get("missing_ranks_count"))
    numbers = {one.rank for one in communicator.ranks} | {one.rank for one in communicator.missing}
    return counts == (len(communicator.ranks), len(communicator.missing)) and len(numbers) == communicator.size


def _hash(text: str) -> str:
    """Return a communicator's hash as the text form prints it: "0xae94" is "000000000000ae94" there."""
    return printable(text.removeprefix("0x").rjust(16, "0"), 20)


def _rank(row: Mapping[str, object], size: int) -> RasRank | None:
    """Return a rank whose object was read to its end; half of one says nothing."""
    number, state, counts = _number(row.get("rank"), size - 1), row.get("status"), row.get("collective_counts")
    parts = (row, state, counts)
    if number is None or not isinstance(state, dict) or not isinstance(counts, dict):
        return None
    init, problem = _number(state.get("init_state")), _number(state.get("async_error"))
    launched = {
        kind: count for kind, each in counts.items() if _KIND.match(kind) and (count := _number(each)) is not None
    }
    if init is None or problem is None or len(launched) < len(counts):
        return None
    if any(isinstance(one, tolerant_json.Cut) for one in parts):
        return None
    return RasRank(number, _process(row), launched, _state(state, init), _error(init, problem))


# ReduceScatter
_KIND = expression(r"[A-Za-z]{1,30}$")


def _state(flags: Mapping[str, object], init: int) -> str:
    if flags.get("abort_flag") is True:
        return ABORT
    if flags.get("finalize_called") is True or flags.get("destroy_flag") is True:
        return FINALIZE
    return RUNNING if init == _SUCCESS else INIT


def _error(*results: int) -> str:
    wrong = [one for one in results if one not in (_SUCCESS, _IN_PROGRESS)]
    return _RESULTS.get(wrong[0], "Unexpected error") if wrong else ""


def _missing(row: Mapping[str, object], size: int) -> MissingRank | None:
    number, state = _number(row.get("rank"), size - 1), row.get("status")
    if number is None or not isinstance(state, dict) or isinstance(state, tolerant_json.Cut):
        return None
    dead = state.get("considered_dead") is True
    return MissingRank(number, _process(row), dead, state.get("unresponsive") is False and not dead)


def _process(row: Mapping[str, object]) -> RasProcess | None:
    """Return the process of a rank; RAS prints "unknown" and -1 where it does not know it."""
    host, pid = row.get("host"), _number(row.get("pid"))
    return RasProcess(printable(host, 64), pid) if isinstance(host, str) and pid else None


def _rows(value: object) -> list[Mapping[str, object]]:
    return [one for one in value[:MOST] if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object, most: int = _LARGEST) -> int | None:
    return value if type(value) is int and 0 <= value <= most else None


def _spread(ranks: Iterable[RasRank]) -> dict[str, tuple[tuple[int, int], ...]]:
    found: dict[str, dict[int, int]] = {}
    for one in ranks:
        for kind, count in one.counts.items():
            counts = found.setdefault(kind, {})
            counts[count] = counts.get(count, 0) + 1
    return {kind: _most_first(counts) for kind, counts in found.items() if len(counts) > 1}


def _most_first(counts: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], -item[0])))


# Text


# NCCL version 2.26.2 compiled with CUDA 12.6          RCCL version 2.27.7 compiled with ROCm 7.0.0.0-38
_VERSION = expression(r"^([NR]CCL) version (\S{1,40}) compiled with ", re.MULTILINE)

#     0         8         4       7-8         4        32   RUNNING  INCOMPLETE
_ROW = expression(
    r" {0,9}\d{1,5} +(\d{1,7}) +(\d{1,7}) +[\d-]{1,15} +(\d{1,7}) +\d{1,7} +([A-Z]{1,12}) +([A-Z,]{1,40})$"
)

#       4          8            1         32       32      |        4         31           31
_TOTALS = expression(r" {0,6}\d{1,7} +(?:\d{1,7} +\d{1,7} +(\d{1,7}) +\d{1,7}|(\d{1,7}) +\d{1,7})$")

# #0-0 (fa93daea854b060b) MISMATCH
_HEAD = expression(r"#(\d{1,5})-(\d{1,5}) \(([0-9a-f]{16})\) (INCOMPLETE|ERROR|MISMATCH)$")

#   Communicator ranks have different AllGather operation counts
#   Communicator ranks have different status
_DIFFERENT = expression(r"  Communicator ranks have different (?:(.{1,40}) operation counts|(status))$")

#   30 ranks have launched up to operation 640            |   2 ranks have status FINALIZE
#   30 ranks have not launched any operations             |   2 ranks reported System error
_MANY = expression(
    r"  (\d{1,7}) ranks (?:have (?:launched up to operation (\d{1,19})|(not) launched any operations"
    r"|status ([A-Z]{1,20}))|reported (.{1,60}))$"
)

#   Rank 7 has launched up to operation 6649 -- GPU 7 managed by process 483079 on node 172.16.64.210
#   Rank 21 -- GPU 5 (NVML 7) managed by process 3487984 on node fe80::1
#   Rank 5 has status UNKNOWN
_ONE = expression(
    r"  Rank (\d{1,7})(?: has (?:launched up to operation (\d{1,19})|(not) launched any operations"
    r"|status ([A-Z]{1,20}))| reported ([^-]{1,60}?))?"
    r"(?: -- (?:GPU [^m]{1,40}managed by process (\d{1,10}) on node (\S{1,64})|\[process information not found\]))?$"
)

#   Process 3487984 on node 172.16.64.213 managing GPUs 5,6
_PROCESS = expression(r"  Process (\d{1,10}) on node (\S{1,64}) managing GPU")

#   Missing communicator data from 2 job processes        |   1 job process is considered dead (unreachable ...
_PROCESSES = expression(r"  (?:Missing communicator data from )?(\d{1,7}) job process")

#   The missing ranks: 3,21               |   The unknown ranks: 0,1
_LISTED = expression(r"  The (?:missing|unknown) ranks?: ([\d,]{1,2000})$")
_LONGEST_LIST = 1000  # characters: RAS cuts the list at 1023, perhaps within a number

#   Initialization errors on 2 ranks      |   Missing communicator data from 1 rank
_HEADING = expression(
    r"  (?:(?:Initialization|Asynchronous) errors? on|Missing communicator data from) \d{1,7} ranks?$"
)

#   Encountered 2 communication timeouts while gathering communicator data
_TIMEOUTS = expression(r"  Encountered (\d{1,7}) communication timeout")


@dataclass
class _CommunicatorSoFar:
    """A communicator while its lines are read. `many`: ranks with a count, by kind of collective and count."""

    size: int | None
    ranks: dict[int, RasRank] = field(default_factory=dict)
    missing: dict[int, MissingRank] = field(default_factory=dict)
    many: dict[str, dict[int, int]] = field(default_factory=dict)


class _RasText:
    """Reads the text from its first line to its last."""

    def __init__(self, version: re.Match[str]) -> None:
        self.status = RasStatus(printable(version[2], 40), version[1], "text")
        self.groups: list[CommunicatorRow] = []
        self.found: dict[str, _CommunicatorSoFar] = {}
        self.current: _CommunicatorSoFar | None = None
        self.part = ""  # INCOMPLETE, DEAD, TIMEOUT or the kind of trouble of the current communicator
        self.kind = ""  # of collective
        self.value: int | str | None = None  # what the ranks that follow have in common
        self.processes: dict[str, list[RasProcess]] = {"INCOMPLETE": [], "DEAD": []}
        self.counts = {"INCOMPLETE": 0, "DEAD": 0, "TIMEOUT": 0}
        self.notices: list[str] = []
        self.warnings = False
        self.totals = False
        self.strange = False  # a line that no release prints, or numbers that do not add up

    def read(self, lines: Sequence[str]) -> RasStatus:
        troubles = False
        for line in lines:
            text = line.rstrip()
            self.warnings = self.warnings or text == "Warnings"
            troubles = troubles or text == "Errors"
            if troubles:
                self.trouble(text)
            elif text:
                self.row(text)
        communicators = tuple(self.communicator(key, one) for key, one in self.found.items())
        return replace(
            self.status,
            communicators=communicators,
            groups=tuple(self.groups),
            silent=tuple(dict.fromkeys(self.processes["INCOMPLETE"])),
            silent_count=self.counts["INCOMPLETE"],
            dead=tuple(dict.fromkeys(self.processes["DEAD"])),
            dead_count=self.counts["DEAD"],
            timeouts=self.counts["TIMEOUT"],
            notices=tuple(self.notices),
            whole=self.warnings and not self.strange,
        )

    def row(self, text: str) -> None:
        if self.totals and (totals := _TOTALS.match(text)):
            self.status = replace(self.status, processes=int(totals[1] or totals[2]))
        self.totals = text.startswith("(total)")
        if (row := _ROW.match(text)) and len(self.groups) < MOST:
            self.groups.append(CommunicatorRow(int(row[1]), int(row[2]), int(row[3]), row[4], row[5]))

    def trouble(self, text: str) -> None:
        if not text.strip("="):
            return
        if text in {"Errors", "Warnings"}:
            self.current, self.part = None, ""
            return
        if len(self.notices) < _MOST_NOTICES:
            self.notices.append(printable(text.strip(), 200))
        if head := _HEAD.match(text):
            group, key = int(head[1]), head[3]
            if key in self.found or len(self.found) < MOST:
                size = self.groups[group].ranks if group < len(self.groups) else None
                self.current = self.found.setdefault(key, _CommunicatorSoFar(size))
                self.part, self.kind, self.value = head[4], "", None
        elif text in self.counts:
            self.current, self.part = None, text
        elif self.current:
            self.of_communicator(self.current, text)
        else:
            self.of_job(text)

    def of_job(self, text: str) -> None:
        if (process := _PROCESS.match(text)) and self.part in self.processes:
            self.processes[self.part].append(RasProcess(printable(process[2], 64), int(process[1])))
        elif (number := _PROCESSES.match(text) or _TIMEOUTS.match(text)) and self.part in self.counts:
            self.counts[self.part] = int(number[1])
        elif not text.startswith("  [could not find information on "):
            self.strange = True

    def of_communicator(self, found: _CommunicatorSoFar, text: str) -> None:
        if different := _DIFFERENT.match(text):
            self.kind, self.value = printable(different[1] or different[2], 30), None
        elif many := _MANY.match(text):
            self.value = _common(many)
            if isinstance(self.value, int) and self.kind:
                found.many.setdefault(self.kind, {})[self.value] = int(many[1])
        elif one := _ONE.match(text):
            self.rank(found, one)
        elif listed := _LISTED.match(text):
            numbers = [int(word) for word in listed[1].split(",") if word]
            for number in numbers[:-1] if len(listed[1]) >= _LONGEST_LIST else numbers:
                if number < MOST:
                    found.missing.setdefault(number, MissingRank(number, answers=self.part == "MISMATCH"))
        elif not _HEADING.match(text):
            self.strange = True

    def rank(self, found: _CommunicatorSoFar, line: re.Match[str]) -> None:
        """Read a rank, whose own words or those of the line above the list say what is special about it."""
        number = int(line[1])
        if number >= MOST or (found.size is not None and number >= found.size):
            return
        process = RasProcess(printable(line[7], 64), int(line[6])) if line[6] else None
        own = _common(line)
        value = self.value if own is None else own
        if self.part == "INCOMPLETE" or value in {NO_MEMBER, "UNKNOWN"}:
            dead = process is not None and process in self.processes["DEAD"]
            found.missing.setdefault(number, MissingRank(number, process, dead, self.part == "MISMATCH"))
            return
        known = found.ranks.get(number, RasRank(number))
        known = replace(known, process=known.process or process)
        if isinstance(value, int):
            known = replace(known, counts={**known.counts, self.kind: value})
            found.many.setdefault(self.kind, {}).setdefault(value, 1)
        elif self.part == "ERROR" and value:
            known = replace(known, error=value)
        elif value:
            known = replace(known, state=value)
        found.ranks[number] = known

    def communicator(self, key: str, found: _CommunicatorSoFar) -> Communicator:
        for kind, counts in found.many.items():
            self.strange = self.strange or sum(counts.values()) + len(found.missing) != found.size
            _complete(found, kind, counts)
        ranks = tuple(found.ranks[number] for number in sorted(found.ranks))
        missing = tuple(found.missing[number] for number in sorted(found.missing))
        spread = {kind: _most_first(counts) for kind, counts in found.many.items() if kind != "status"}
        return Communicator(key, found.size, ranks, missing, spread)


def _common(line: re.Match[str]) -> int | str | None:
    """Return the count, status or error that a line tells of its ranks: groups 2 to 5 of both patterns."""
    if line[2] or line[3]:
        return int(line[2] or 0)
    words = line[4] or line[5]
    return printable(words.strip(), 60) if words else None


def _complete(found: _CommunicatorSoFar, kind: str, counts: Mapping[int, int]) -> None:
    """Give the ranks that are not listed their count, where exactly one count has as many ranks as are left."""
    if found.size is None or found.size > MOST:
        return
    listed: dict[int, int] = {}
    for one in found.ranks.values():
        if kind in one.counts:
            listed[one.counts[kind]] = listed.get(one.counts[kind], 0) + 1
    open_counts = [count for count in counts if not listed.get(count)]
    left = [
        number
        for number in range(found.size)
        if number not in found.missing and kind not in found.ranks.get(number, RasRank(number)).counts
    ]
    if len(open_counts) == 1 and counts[open_counts[0]] == len(left):
        for number in left:
            known = found.ranks.get(number, RasRank(number))
            found.ranks[number] = replace(known, counts={**known.counts, kind: open_counts[0]})
