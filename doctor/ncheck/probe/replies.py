"""A node's result of each step of the probe, and its meeting point for ranks.

What was asked (`Reply.asked`) and what is noted come from this machine. What came back is the node's: its types and
sizes are checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address

from ncheck.decode import device_name
from ncheck.expression import expression
from ncheck.facts.definition import trouble
from ncheck.facts.shapes import items, mapping, node, number, port, whole, words
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.probe.facts import (
    COMMANDS,
    MEETING,
    SWEEP,
    TASK,
    Carried,
    Failure,
    MeetingFacts,
    Method,
    NodeResult,
    ProbeFacts,
    Row,
    Skipped,
    Stage,
    Step,
    Timing,
)
from ncheck.probe.parse.nccl_tests import NcclTests, NotNcclTestsError, parse_nccl_tests
from ncheck.probe.parse.perftest import Perftest, parse_pingpong, parse_write_bw
from ncheck.text import printable

_MOST_ROWS, _MOST_DEVICES, _MOST_LINES, _MOST_IDS = 256, 1024, 300, 4096
_LONGEST_LINE, _LONGEST_WORDS, _LONGEST_PATH = 500, 1000, 4096  # an agent's log has lines of 400 characters
LONGEST_USED = 2048  # of a line that names the adapters
_LEAST_SECONDS, _MOST_SECONDS = 1e-9, 1e6
_MOST_BYTES = 2**64
_MOST_REPEATS = 2**20
_ROUNDED = 1.001  # by so much may equal times differ that were means or were rounded
_ID = 256  # hexadecimal digits of an ncclUniqueId


def probed(evidence: Evidence) -> Read[ProbeFacts]:
    """Return what a node reported in this part of its evidence. Only what this machine asked for counts."""
    replies = {turn: reply for turn, reply in evidence.turns(TASK).items() if isinstance(reply.asked, dict)}
    note, notes = evidence.notes.get(TASK.key), evidence.noted_turns(TASK)
    if not replies and not notes:
        return _why_none(evidence)
    swept = evidence.turns(SWEEP)
    results = {turn: _swept(_result(turn, reply), reply, swept.get(turn)) for turn, reply in replies.items()}
    steps = {turn: _step(mapping(note.asked), turn) for turn, note in notes.items()}
    for turn, step in steps.items():
        if notes[turn].failed:
            results[turn] = NodeResult(step, (), failure=Failure("meeting", _words(notes[turn].reason)))
    return ProbeFacts(
        tuple(results[turn] for turn in sorted(results)),
        tuple(Skipped(step, notes[turn].reason) for turn, step in steps.items() if not notes[turn].failed),
        note.reason if note and not note.failed else "",
    )


def meeting(evidence: Evidence) -> Read[MeetingFacts]:
    """Return the node's meeting point. Where it has none, the step in which it leads the ranks fails."""
    reply = evidence.reply(MEETING)
    why = trouble(MEETING, reply)
    if isinstance(why, Absent) and reply.status is Status.NOT_ASKED:
        return why
    if why:
        return MeetingFacts(why=_words(reply.reason) or why.reason, late=reply.status is Status.TIMEOUT)
    try:
        return _meeting(mapping(reply.value))
    except (ValueError, LookupError, TypeError) as error:
        return MeetingFacts(why=f"its answer cannot be read: {error}")


def _why_none(evidence: Evidence) -> Unread | Absent:
    """Return why the node took part in no step. Of a failure this machine says itself what helps."""
    reply, note = evidence.reply(TASK), evidence.notes.get(TASK.key)
    if reply.status is Status.UNANSWERED and evidence.recorded:
        return Absent("the recording holds no probe")
    if reply.status is Status.FAILED and reply.reason:
        return Unread(reply.reason, fix=_command(note.remedy if note else _remedy_of_format_1(reply.value)))
    return trouble(TASK, reply) or Unread("no step of the probe was asked of this node")


def _command(remedy: str) -> str:
    """Return the command that helps, "" for a remedy that no ncheck names: a recording may hold anything."""
    if remedy in COMMANDS:
        return COMMANDS[remedy]
    return f"ncheck explain {remedy}" if remedy.isascii() and remedy.isalnum() else ""


def _remedy_of_format_1(value: JsonValue) -> str:
    """Return the remedy of a recording in which the command itself was the value of a reply."""
    line = value if isinstance(value, str) else ""
    return next((name for name, command in COMMANDS.items() if command == line), line.removeprefix("ncheck explain "))


# What was asked


def _step(asked: Mapping[str, JsonValue], turn: int) -> Step:
    expect, repeats = asked.get("expect"), asked.get("repeats")
    group = tuple(map(node, items(asked["group"])))
    ranks = tuple(whole(count, 2**20, least=1) for count in items(asked["ranks"]))
    if not group or len(set(group)) < len(group) or len(ranks) != len(group):
        raise ValueError("its nodes and their ranks do not fit together")
    return Step(
        turn, Stage(asked["stage"]), Method(asked["means"]), group, ranks,
        tuple(whole(size, _MOST_BYTES) for size in items(asked["sizes"])),
        _words(asked.get("launcher")), _words(asked.get("net")),
        None if expect is None else number(expect, 1e9),
        None if repeats is None else whole(repeats, _MOST_REPEATS, least=1),
    )  # fmt: skip


# What came back


def _result(turn: int, reply: Reply) -> NodeResult:
    timeout = mapping(reply.asked).get("timeout")
    return replace(_answered(turn, reply), seconds=None if timeout is None else number(timeout, _MOST_SECONDS))


def _swept(result: NodeResult, reply: Reply, swept: Reply | None) -> NodeResult:
    """Add what a launcher's ranks left in shared memory: what was removed, or that it may still exist."""
    segments = reply.value.get("held") if isinstance(reply.value, dict) else None
    if not isinstance(segments, dict) or not segments:
        return result
    left = _sweepings(swept) if swept and swept.status is Status.OK else None
    if left is None:
        left = _lines([f"{path} may still exist: the node could not be checked" for path in segments])
    return replace(result, left=result.left + left)


def _sweepings(swept: Reply) -> tuple[str, ...] | None:
    """Return what a sweep removed and what had to stay; None where its answer cannot be read."""
    try:
        return _lines(mapping(swept.value)["left"])
    except (ValueError, LookupError, TypeError):
        return None


def _answered(turn: int, reply: Reply) -> NodeResult:
    asked = mapping(reply.asked)
    step = _step(asked, turn)
    planned = tuple(_text(device, 64) for device in items(asked.get("planned", [])))
    if reply.status is not Status.OK or reply.truncated:
        return NodeResult(step, (), planned, failure=_unanswered(reply))
    try:
        return _read(step, planned, shaped(step, asked, mapping(reply.value)))
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        return NodeResult(step, (), planned, failure=Failure("", f"its result cannot be read: {printable(str(error))}"))


def _unanswered(reply: Reply) -> Failure:
    late = reply.status is Status.TIMEOUT
    cut = "its answer was cut off" if reply.truncated else ""
    words = cut or _words(reply.reason) or f"the agent's task ended: {reply.status.value}"
    return Failure("", words, late=late)


def _read(step: Step, planned: tuple[str, ...], value: Mapping[str, JsonValue]) -> NodeResult:
    rows = tuple(_rows(step, items(value["rows"], _MOST_ROWS)))
    failure = _failure(value.get("failure"))
    if not rows and failure is None and step.method not in (Method.DIAGNOSTICS, Method.RDMA):
        failure = Failure("", "it ended without a result")
    start = value.get("start")
    return NodeResult(
        step, rows, planned, dict(_carried(mapping(value.get("carried", {})))),
        _text(value.get("version"), 100), _text(value.get("library"), _LONGEST_PATH),
        _lines(value.get("used"), LONGEST_USED), _lines(value.get("log")), failure,
        None if start is None else number(start, _MOST_SECONDS), _lines(value.get("left")),
    )  # fmt: skip


def _rows(step: Step, rows: list[JsonValue]) -> Iterator[Row]:
    seen: set[tuple[int, bool]] = set()
    for row in map(mapping, rows):
        size, in_place = whole(row["size"], _MOST_BYTES), row["in_place"]
        if not isinstance(in_place, bool) or (size, in_place) in seen or (step.sizes and size not in step.sizes):
            raise ValueError("it contains a size that was not asked for, or one twice")
        seen.add((size, in_place))
        median, fastest, slowest = (
            number(row[name], _MOST_SECONDS, _LEAST_SECONDS) for name in ("seconds", "fastest", "slowest")
        )
        if not fastest <= median * _ROUNDED or not median <= slowest * _ROUNDED:
            raise ValueError("its times contradict each other")
        wrong = row.get("wrong")
        counted = None if wrong is None else whole(wrong, _MOST_BYTES)
        yield Row(size, in_place, median, fastest, slowest, counted, _timing(row.get("timing")))


def _timing(value: JsonValue) -> Timing | None:
    if value is None:
        return None
    timing = mapping(value)
    repeats, iterations = (whole(timing[name], _MOST_REPEATS, least=1) for name in ("repeats", "iterations"))
    return Timing(whole(timing["warm_ups"], _MOST_REPEATS), repeats, iterations)


def _carried(devices: Mapping[str, JsonValue]) -> Iterator[tuple[str, Carried]]:
    if len(devices) > _MOST_DEVICES:
        raise ValueError("more devices than a node has")
    for name, moved in devices.items():
        counts = mapping(moved)
        yield device_name(name), Carried(whole(counts["sent"], _MOST_BYTES), whole(counts["received"], _MOST_BYTES))


def _failure(value: JsonValue) -> Failure | None:
    if value is None:
        return None
    failure = mapping(value)
    rank, code = failure.get("rank"), failure.get("code")
    return Failure(
        _words(failure.get("step")), _words(failure.get("words")),
        None if rank is None else whole(rank, 2**20),
        None if code is None else whole(code, 2**31, least=-(2**31)),
        late=failure.get("late") is True,
    )  # fmt: skip


def _meeting(value: Mapping[str, JsonValue]) -> MeetingFacts:
    if value.get("importing") is not None:
        return MeetingFacts(
            why=f"torch takes more than {number(value['importing'], _MOST_SECONDS):.0f} s to import", late=True
        )
    ids = tuple(_id(identifier) for identifier in items(value.get("ids") or [], _MOST_IDS))
    address, at = "", 0
    if value.get("address") is not None:
        address, at = str(ip_address(_text(value["address"], 64))), port(value.get("port"))
    version, library = _text(value.get("version"), 100), _text(value.get("path"), _LONGEST_PATH)
    return MeetingFacts(ids, address, at, version, library)


def _id(value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) != _ID or not set(value) <= set("0123456789abcdef"):
        raise ValueError("it contains an id that is not an NCCL identifier")
    return value


def _lines(value: JsonValue, longest: int = _LONGEST_LINE) -> tuple[str, ...]:
    """Return the lines as text that can be shown; of too many the last."""
    return tuple(_text(line, longest) for line in items([] if value is None else value, math.inf)[-_MOST_LINES:])


def _words(value: JsonValue) -> str:
    return _text(value, _LONGEST_WORDS)


def _text(value: JsonValue, longest: int) -> str:
    return "" if value is None else printable(words(value), longest)


Output = Mapping[str, JsonValue]
_TOOL_OUTPUT_MOST_LINES = 200
_NOT_EXECUTABLE, _NO_COMMAND = 126, 127

# So all_reduce_perf ends that found wrong elements, or less than NCCL_TESTS_MIN_BW; its table is whole.
_DISCONTENT = 1

# gpu-a:4711:4711 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.7<0>
_USED = expression(r"NCCL INFO (?:NET/\S+ ?: ?Using|Using network) .*")

# gpu-a:4711:4711 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.1.0.7<42113> failed
_WARNED = expression(r"NCCL WARN .*")


def shaped(step: Step, asked: Output, value: Output) -> Output:
    """Return a reply's value with the rows and the failure that a program's output shows; any other as it is."""
    if step.method not in (Method.NCCL_TESTS, Method.RDMA) or value.get("failure"):
        return value
    output = mapping(value["output"])
    return {**value, **(_rdma(step, asked, output) if step.method is Method.RDMA else _nccl_tests(step, output))}


def _tool_output_text(output: Output, stream: str) -> str:
    text = output.get(stream)
    return text if isinstance(text, str) else ""


def _tool_output_lines(texts: Iterable[str], pattern: re.Pattern[str]) -> list[JsonValue]:
    found: list[JsonValue] = [*dict.fromkeys(hit[0] for text in texts for hit in pattern.finditer(text))]
    return found[:_TOOL_OUTPUT_MOST_LINES]


def _ended(output: Output) -> tuple[str, bool]:
    """Return how the program failed, "" if it did not, and whether it ran out of time."""
    if output.get("status") == "timeout":
        return f"it did not end within {output.get('seconds')} s and was ended", True
    if output.get("status") != "ok":
        return str(output.get("reason") or output.get("status")), False
    code = output.get("exit_status")
    if code == 0:
        return "", False
    return "it was ended" if code is None else f"it ended with exit status {code}", False


def _tool_output_failure(step: str, words: str, output: Output, *, late: bool = False) -> JsonValue:
    return {"step": step, "words": words, "rank": None, "code": output.get("exit_status"), "late": late}


# nccl-tests


def _nccl_tests(step: Step, output: Output) -> Output:
    printed, errors = _tool_output_text(output, "stdout"), _tool_output_text(output, "stderr")
    try:
        found = parse_nccl_tests(printed)
    except NotNcclTestsError as error:
        found, none = NcclTests(), str(error)
    else:
        none = ""
    failed = _why_no_test(step, found, output, none)
    last = [line for line in (errors or printed).splitlines() if line.strip()][-20:] if failed else []
    return {
        "rows": [] if failed else _test_rows(step, found),
        "version": found.nccl,
        "used": _tool_output_lines((errors, printed), _USED),
        "log": [*_tool_output_lines((errors, printed), _WARNED), *found.errors, *last],
        "failure": failed,
    }


def _why_no_test(step: Step, found: NcclTests, output: Output, none: str) -> JsonValue:
    """Return why the table is not the one of this step; None if it is, and whole.

    A build without MPI, started by mpirun, tests each process alone and passes: that is no test of the network.
    """
    how, late = _ended(output)
    how = "" if found.whole and output.get("exit_status") == _DISCONTENT else how
    if found.tables > 1 or (found.ranks and found.world != step.world and not how):
        alone = f"{found.tables} tables of {found.world} rank each" if found.tables > 1 else f"{found.world} ranks"
        words = f"all_reduce_perf ran {alone} instead of {step.world} ranks together: it was built without MPI"
        return _tool_output_failure("start", words, output)
    if how or not found.whole:
        words = next(iter(found.errors), "") or how or none or "its table is not whole: it was cut off, or not readable"
        return _tool_output_failure("all_reduce_perf", words, output, late=late)
    if not found.ranks:
        return _tool_output_failure("all_reduce_perf", "its table does not contain the number of ranks", output)
    return None


def _test_rows(step: Step, found: NcclTests) -> list[JsonValue]:
    """Return the rows of the sizes that were asked for; each is the mean of the tool's iterations.

    If its sum of wrong elements is more than that of its rows, the largest size has the rest.
    """
    rows = [row for row in found.rows if not step.sizes or row.size in step.sizes]
    counted = sum(row.wrong or 0 for row in found.rows)
    rest = max(0, (found.out_of_bounds or 0) - counted)
    largest = max((row.size for row in rows), default=0)
    timing: JsonValue = found.iters and {"warm_ups": found.iters[0], "repeats": found.iters[1], "iterations": 1}
    return [
        {
            "size": row.size, "in_place": row.in_place, "seconds": row.seconds, "fastest": row.seconds,
            "slowest": row.seconds, "wrong": _wrong(row.wrong, rest if row.size == largest else 0), "timing": timing,
        }
        for row in rows
    ]  # fmt: skip


def _wrong(counted: int | None, rest: int) -> int | None:
    return counted if not rest else (counted or 0) + rest


# perftest and ibverbs-utils


def _rdma(step: Step, asked: Output, output: Output) -> Output:
    """Return the one size of a pair. A server that succeeded need not print it: its client does."""
    tool = str(asked.get("tool", ""))
    text = "\n".join(_tool_output_text(output, stream) for stream in ("stdout", "stderr"))
    found = (parse_pingpong if tool.startswith("ibv_") else parse_write_bw)(text)
    how, late = _ended(output)
    failed = None
    if how or (not found.rows and not asked.get("serves")):
        words = "; ".join(found.errors) or how or f"{tool} ended without a bandwidth"
        failed = _tool_output_failure("connect" if _unmet(found, output) else "write", words, output, late=late)
    rows: list[JsonValue] = [_written(step, found)] if found.rows and not failed else []
    log: list[JsonValue] = [*found.errors]
    return {"rows": rows, "version": tool, "failure": failed, "log": log}


def _unmet(found: Perftest, output: Output) -> bool:
    """Return whether the two never connected by TCP: then nothing is known of the HCAs."""
    if output.get("status") not in ("ok", "timeout") or output.get("exit_status") in (_NOT_EXECUTABLE, _NO_COMMAND):
        return True
    met = "remote address" in _tool_output_text(output, "stdout")
    return not met and (output.get("status") == "timeout" or any(_TCP.search(error) for error in found.errors))


# Couldn't connect to 10.1.0.7:18515     |      Unable to init the socket connection
_TCP = expression(r"ouldn't connect|Could not connect|socket|[Cc]onnection (?:refused|reset)|[Tt]imed out")


def _written(step: Step, found: Perftest) -> JsonValue:
    row = found.rows[-1]
    seconds = row.size * 8 / (row.average * 1e9)
    size = row.size if row.size in step.sizes else (step.sizes or (row.size,))[-1]
    scaled = seconds * size / row.size
    return {
        "size": size, "in_place": False, "seconds": scaled, "fastest": scaled, "slowest": scaled, "wrong": None,
    }  # fmt: skip
