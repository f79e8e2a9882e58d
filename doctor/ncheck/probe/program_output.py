"""What nccl-tests, perftest and ibverbs-utils printed, as the answer to a step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ncheck.agent.answers.tools import PROGRAMS
from ncheck.decode import decoded
from ncheck.expression import expression
from ncheck.model.op import Op
from ncheck.probe.node_result import (
    Lines,
    Method,
    ProgramOutput,
    Row,
    Step,
    StepAnswer,
    StepFailure,
    Timing,
    UsedLines,
    credible,
)
from ncheck.probe.parse.nccl_tests import NcclTestsOutput, NotNcclTestsError, TableRow, parse_nccl_tests
from ncheck.probe.parse.perftest import Perftest, parse_pingpong, parse_write_bw, parse_write_lat

_MOST_LINES = 200
_NOT_EXECUTABLE, _NO_COMMAND = 126, 127

# So a program of nccl-tests ends that found wrong elements, or less than NCCL_TESTS_MIN_BW; its table is whole.
_DISCONTENT = 1

_TWO_BUFFERS = frozenset({Op.ALL_TO_ALL, Op.SEND_RECV})
_ALIGNED = 16  # bytes

# gpu-a:4711:4711 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.7<0>
_USED = expression(r"NCCL INFO (?:NET/\S+ ?: ?Using|Using network) .*")

# gpu-a:4711:4711 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.1.0.7<42113> failed
_WARNED = expression(r"NCCL WARN .*")


def with_output(answer: StepAnswer, output: ProgramOutput, step: Step, tool: str, *, serves: bool) -> StepAnswer:
    """Return the answer with the rows and the failure that a program's output shows.

    `tool`: the program's name; `serves`: it was the server of a pair.
    """
    if step.method is Method.LOOPBACK:
        return _with_latency(_rdma(answer, output, step, tool, serves=False), output)
    if step.method is Method.RDMA:
        return _rdma(answer, output, step, tool, serves=serves)
    return _nccl_tests(answer, output, step) if step.method is Method.NCCL_TESTS else answer


def _matches(texts: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    return [*dict.fromkeys(match[0] for text in texts for match in pattern.finditer(text))][:_MOST_LINES]


def _ended(output: ProgramOutput) -> tuple[str, bool]:
    """Return how the program failed, "" if it did not, and whether it ran out of time."""
    if output.status == "timeout":
        return f"it did not end within {output.seconds} s and was ended", True
    if output.status != "ok":
        return output.reason or output.status, False
    if output.exit_status == 0:
        return "", False
    code = output.exit_status
    return "it was ended" if code is None else f"it ended with exit status {code}", False


def _failure(step: str, words: str, output: ProgramOutput, *, late: bool = False) -> StepFailure:
    return decoded({"step": step, "words": words, "code": output.exit_status, "late": late}, StepFailure)  # type: ignore[no-any-return]


# nccl-tests


def _nccl_tests(answer: StepAnswer, output: ProgramOutput, step: Step) -> StepAnswer:
    texts = output.stderr, output.stdout
    try:
        found = parse_nccl_tests(output.stdout)
    except NotNcclTestsError as error:
        found, none = NcclTestsOutput(), str(error)
    else:
        none = ""
    failure = _why_no_test(step, found, output, none)
    last = [line for line in (output.stderr or output.stdout).splitlines() if line.strip()][-20:] if failure else []
    return replace(
        answer,
        rows=() if failure else tuple(map(credible, _test_rows(step, found))),
        version=found.nccl,
        used=decoded(_matches(texts, _USED), UsedLines),
        log=decoded([*_matches(texts, _WARNED), *found.errors, *last], Lines),
        failure=failure,
    )


def _why_no_test(step: Step, found: NcclTestsOutput, output: ProgramOutput, none: str) -> StepFailure | None:
    """Return why the table is not the one of this step; None if it is, and whole.

    A build without MPI, started by mpirun, tests each process alone and passes: that is no test of the network.
    """
    program = PROGRAMS[step.op.value]
    how, late = _ended(output)
    how = "" if found.whole and output.exit_status == _DISCONTENT else how
    if found.tables > 1 or (found.ranks and found.world != step.world and not how):
        alone = f"{found.tables} tables of {found.world} rank each" if found.tables > 1 else f"{found.world} ranks"
        words = f"{program} ran {alone} instead of {step.world} ranks together: it was built without MPI"
        return _failure("start", words, output)
    if how or not found.whole:
        words = next(iter(found.errors), "") or how or none or "its table is not whole: it was cut off, or not readable"
        return _failure(program, words, output, late=late)
    if not found.ranks:
        return _failure(program, "its table does not contain the number of ranks", output)
    return None


def _test_rows(step: Step, found: NcclTestsOutput) -> list[Row]:
    """Return the rows of the sizes that were asked for; each is the mean of the tool's iterations.

    If its sum of wrong elements is more than that of its rows, the largest size has the rest. What some programs print
    as in place is no operation that is defined, and not verified.
    """
    rows = [row for row in _asked(step, found.rows) if not (row.in_place and step.op in _TWO_BUFFERS)]
    counted = sum(row.wrong or 0 for row in found.rows)
    rest = max(0, (found.out_of_bounds or 0) - counted)
    largest = max((row.size for row in rows), default=0)
    timing = Timing(*found.iters) if found.iters else None
    return [
        Row(
            row.size, row.in_place, row.seconds, row.seconds, row.seconds,
            _wrong(row.wrong, rest if row.size == largest else 0), timing,
        )
        for row in rows
    ]  # fmt: skip


def _asked(step: Step, rows: Sequence[TableRow]) -> Iterator[TableRow]:
    """Yield the rows of the sizes that were asked for, under these sizes.

    Where each rank has a part of a size, the programs make it a little less: a multiple of 16 bytes for each.
    """
    if not step.sizes:
        yield from rows
    least = {size: size - _ALIGNED * step.world for size in step.sizes}
    for size in step.sizes:
        for in_place in (False, True):
            near = [row for row in rows if row.in_place is in_place and max(0, least[size]) < row.size <= size]
            if near:
                yield replace(max(near, key=lambda row: row.size), size=size)


def _wrong(counted: int | None, rest: int) -> int | None:
    return counted if not rest else (counted or 0) + rest


# perftest and ibverbs-utils


def _rdma(answer: StepAnswer, output: ProgramOutput, step: Step, tool: str, *, serves: bool) -> StepAnswer:
    """Return the one size of a pair. A server that succeeded need not print it: its client does."""
    found = (parse_pingpong if tool.startswith("ibv_") else parse_write_bw)(f"{output.stdout}\n{output.stderr}")
    how, late = _ended(output)
    failure = None
    if how or (not found.rows and not serves):
        words = "; ".join(found.errors) or how or f"{tool} ended without a bandwidth"
        failure = _failure("connect" if _unmet(found, output) else "write", words, output, late=late)
    rows = (credible(_written(step, found)),) if found.rows and not failure else ()
    return replace(answer, rows=rows, version=tool, failure=failure, log=decoded([*found.errors], Lines))


def _with_latency(answer: StepAnswer, output: ProgramOutput) -> StepAnswer:
    """Return the answer with one row more: the median of small messages; `slowest` is that of 99 %."""
    found = parse_write_lat(output.stdout)
    if not found or not answer.rows:
        return answer
    least, median, most = (time * 1e-6 for time in (found.least, found.median, found.most))
    row = Row(found.size, in_place=False, seconds=median, fastest=least, slowest=most)
    return replace(answer, rows=(credible(row), *answer.rows))


def _unmet(found: Perftest, output: ProgramOutput) -> bool:
    """Return whether the two never connected by TCP: then nothing is known of the HCAs."""
    if output.status not in {"ok", "timeout"} or output.exit_status in {_NOT_EXECUTABLE, _NO_COMMAND}:
        return True
    met = "remote address" in output.stdout
    return not met and (output.status == "timeout" or any(_TCP.search(error) for error in found.errors))


# Couldn't connect to 10.1.0.7:18515     |      Unable to init the socket connection
_TCP = expression(r"ouldn't connect|Could not connect|socket|[Cc]onnection (?:refused|reset)|[Tt]imed out")


def _written(step: Step, found: Perftest) -> Row:
    row = found.rows[-1]
    seconds = row.size * 8 / (row.average * 1e9)
    size = row.size if row.size in step.sizes else (step.sizes or (row.size,))[-1]
    scaled = seconds * size / row.size
    return Row(size, in_place=False, seconds=scaled, fastest=scaled, slowest=scaled)
