"""What other people's measuring programs printed on a node, in the shape in which ncheck's own ranks tell.

A turn of nccl-tests or RDMA has "output" in its value; its rows are made here. Raises what a parser may raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from doctor.collect.shapes import mapping
from doctor.model.evidence import JsonValue
from doctor.model.facts import Means, Step
from doctor.parse.nccl_tests import NcclTests, NotNcclTestsError, parse_nccl_tests
from doctor.parse.perftest import Perftest, parse_pingpong, parse_write_bw

Told = Mapping[str, JsonValue]

_MOST_LINES = 200
_NOT_EXECUTABLE, _NO_COMMAND = 126, 127
# So all_reduce_perf ends that found wrong elements, or less than NCCL_TESTS_MIN_BW; its table is whole.
_DISCONTENT = 1

# gpu-a:4711:4711 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.7<0>
_USED = re.compile(r"NCCL INFO (?:NET/\S+ ?: ?Using|Using network) .*")
# gpu-a:4711:4711 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.1.0.7<42113> failed
_WARNED = re.compile(r"NCCL WARN .*")


def shaped(step: Step, asked: Told, value: Told) -> Told:
    """Return a turn's value with the rows and the failure that its program's output tells; any other as it is."""
    if step.means not in (Means.NCCL_TESTS, Means.RDMA) or value.get("failure"):
        return value
    output = mapping(value["output"])
    return {**value, **(_rdma(step, asked, output) if step.means is Means.RDMA else _nccl_tests(step, output))}


def _text(output: Told, stream: str) -> str:
    said = output.get(stream)
    return said if isinstance(said, str) else ""


def _lines(texts: Iterable[str], pattern: re.Pattern[str]) -> list[JsonValue]:
    found: list[JsonValue] = [*dict.fromkeys(hit[0] for text in texts for hit in pattern.finditer(text))]
    return found[:_MOST_LINES]


def _ended(output: Told) -> tuple[str, bool]:
    """Say how the program ended, where that was not well; and whether its time was over."""
    if output.get("status") == "timeout":
        return f"it did not end within {output.get('seconds')} s and was ended", True
    if output.get("status") != "ok":
        return str(output.get("reason") or output.get("status")), False
    code = output.get("exit_status")
    if code == 0:
        return "", False
    return "it was ended" if code is None else f"it ended with exit status {code}", False


def _failure(step: str, words: str, output: Told, *, late: bool = False) -> JsonValue:
    return {"step": step, "words": words, "rank": None, "code": output.get("exit_status"), "late": late}


# nccl-tests


def _nccl_tests(step: Step, output: Told) -> Told:
    said, errors = _text(output, "stdout"), _text(output, "stderr")
    try:
        found = parse_nccl_tests(said)
    except NotNcclTestsError as error:
        found, none = NcclTests(), str(error)
    else:
        none = ""
    failed = _why_no_test(step, found, output, none)
    last = [line for line in (errors or said).splitlines() if line.strip()][-20:] if failed else []
    return {
        "rows": [] if failed else _test_rows(step, found),
        "version": found.nccl,
        "used": _lines((errors, said), _USED),
        "log": [*_lines((errors, said), _WARNED), *found.errors, *last],
        "failure": failed,
    }


def _why_no_test(step: Step, found: NcclTests, output: Told, none: str) -> JsonValue:
    """Say why the table is none of this step; None where it is all of it.

    A build without MPI, started by mpirun, tests each process alone and passes: that is no test of the network.
    """
    how, late = _ended(output)
    how = "" if found.whole and output.get("exit_status") == _DISCONTENT else how
    if found.tables > 1 or (found.ranks and found.world != step.world and not how):
        alone = f"{found.tables} tables of {found.world} rank each" if found.tables > 1 else f"{found.world} ranks"
        words = f"all_reduce_perf ran {alone}, and {step.world} ranks together were asked for: built without MPI"
        return _failure("start", words, output)
    if how or not found.whole:
        words = next(iter(found.errors), "") or how or none or "its table is not whole: it was cut off, or not readable"
        return _failure("all_reduce_perf", words, output, late=late)
    if not found.ranks:
        return _failure("all_reduce_perf", "its table does not tell how many ranks took part", output)
    return None


def _test_rows(step: Step, found: NcclTests) -> list[JsonValue]:
    """Return the rows of the sizes that were asked for; each is the mean of the tool's iterations.

    Where its sum of wrong elements is more than its rows tell, the largest size has the rest.
    """
    rows = [row for row in found.rows if not step.sizes or row.size in step.sizes]
    told = sum(row.wrong or 0 for row in found.rows)
    rest = max(0, (found.out_of_bounds or 0) - told)
    largest = max((row.size for row in rows), default=0)
    return [
        {
            "size": row.size, "in_place": row.in_place, "seconds": row.seconds, "fastest": row.seconds,
            "slowest": row.seconds, "wrong": _wrong(row.wrong, rest if row.size == largest else 0),
        }
        for row in rows
    ]  # fmt: skip


def _wrong(counted: int | None, rest: int) -> int | None:
    return counted if not rest else (counted or 0) + rest


# perftest and ibverbs-utils


def _rdma(step: Step, asked: Told, output: Told) -> Told:
    """Return the one size of a pair. A server that ended well need not tell it: its client does."""
    tool = str(asked.get("tool", ""))
    said = "\n".join(_text(output, stream) for stream in ("stdout", "stderr"))
    found = (parse_pingpong if tool.startswith("ibv_") else parse_write_bw)(said)
    how, late = _ended(output)
    failed = None
    if how or (not found.rows and not asked.get("serves")):
        words = "; ".join(found.errors) or how or f"{tool} ended and told no bandwidth"
        failed = _failure("connect" if _unmet(found, output) else "write", words, output, late=late)
    rows: list[JsonValue] = [_written(step, found)] if found.rows and not failed else []
    log: list[JsonValue] = [*found.errors]
    return {"rows": rows, "version": tool, "failure": failed, "log": log}


def _unmet(found: Perftest, output: Told) -> bool:
    """Tell whether the two never met by TCP: then nothing is known of the HCAs."""
    if output.get("status") not in ("ok", "timeout") or output.get("exit_status") in (_NOT_EXECUTABLE, _NO_COMMAND):
        return True
    met = "remote address" in _text(output, "stdout")
    return not met and (output.get("status") == "timeout" or any(_TCP.search(error) for error in found.errors))


# Couldn't connect to 10.1.0.7:18515     |      Unable to init the socket connection
_TCP = re.compile(r"ouldn't connect|Could not connect|socket|[Cc]onnection (?:refused|reset)|[Tt]imed out")


def _written(step: Step, found: Perftest) -> JsonValue:
    row = found.rows[-1]
    seconds = row.size * 8 / (row.average * 1e9)
    size = row.size if row.size in step.sizes else (step.sizes or (row.size,))[-1]
    scaled = seconds * size / row.size
    return {
        "size": size, "in_place": False, "seconds": scaled, "fastest": scaled, "slowest": scaled, "wrong": None,
    }  # fmt: skip
