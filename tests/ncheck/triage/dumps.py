"""Flight recorder dumps made by hand: what torch writes for NCCL, and for gloo."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

from ncheck.triage.parse.flight_recorder import Dump, read

Entry = dict[str, Any]
WORLD = ("0", "default_pg")
FRAMES = (
    {"name": "all_reduce", "filename": "/opt/site-packages/torch/distributed/distributed_c10d.py", "line": 3245},
    {"name": "step", "filename": "/home/ada/train.py", "line": 41},
    {"name": "<module>", "filename": "/home/ada/train.py", "line": 90},
)  # fmt: skip
SHOWN = ("train.py:41 in step", "train.py:90 in <module>")


def call(number: int, name: str = "all_reduce", state: str = "completed", count: int = 1024, **words: Any) -> Entry:
    """Return one collective as NCCL's recorder has it in version 2.10."""
    done = state == "completed"
    entry = {
        "frames": list(FRAMES), "record_id": number, "pg_id": 0, "process_group": WORLD, "thread_name": "pt_main",
        "thread_id": "139909897390976", "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number,
        "profiling_name": f"nccl:{name}", "time_created_ns": 1795375986962941400 + number, "input_sizes": [[count]],
        "input_dtypes": ["Float"], "output_sizes": [[count]], "output_dtypes": ["Float"], "state": state,
        "time_discovered_started_ns": 1 if state != "scheduled" else None,
        "time_discovered_completed_ns": 2 if done else None, "retired": done, "timeout_ms": 600000, "is_p2p": False,
    }  # fmt: skip
    return {**entry, **words}


def transfer(number: int, name: str, state: str = "completed", count: int = 8, **words: Any) -> Entry:
    """Return a send or receive: `name` is "send 0->1" or "recv 1<-0"."""
    return call(0, name, state, count, **{"p2p_seq_id": number, "is_p2p": True, **words})


def gloo(number: int, name: str = "all_reduce", *, done: bool = True, count: int = 4, **words: Any) -> Entry:
    """Return one collective as gloo has it: its state is never more than scheduled."""
    return call(number, name, "scheduled", count, **{"profiling_name": f"gloo:{name}", "retired": done, **words})


def steps(last: int, waiting: str = "", *, first: int = 1, **words: Any) -> list[Entry]:
    """Return all-reduces, numbered from `first`, of which the last has the state `waiting` if that is given."""
    made = [call(number, **words) for number in range(first, last + 1)]
    if waiting:
        made[-1] = call(last, state=waiting, **words)
    return made


def value(entries: Sequence[Entry], size: int = 0, **words: Any) -> dict[str, Any]:
    """Return what a dump holds; with `size`, the default group has so many ranks."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(size)))}} if size else {}
    status = {"0": {"last_enqueued_collective": 4, "last_started_collective": 4, "last_completed_collective": 3}}
    made = {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27.3", "pg_status": status}
    return {**made, "entries": list(entries), **words}


def pickled(held: object, protocol: int = 2) -> bytes:
    return pickle.dumps(held, protocol)


def as_json(held: dict[str, Any]) -> bytes:
    """Return a dump as torch writes JSON: without frames, and 0 for a time that is not known."""
    entries = [{**one, "process_group": list(one["process_group"])} for one in held["entries"]]
    for one in entries:
        del one["frames"]
        one["time_discovered_started_ns"] = one["time_discovered_started_ns"] or 0
    return json.dumps({**held, "entries": entries}, separators=(",", ":")).encode()


def dump(entries: Sequence[Entry], size: int = 0, **words: Any) -> Dump:
    """Return a dump as it is read."""
    made = read(pickled(value(entries, size, **words)))
    assert isinstance(made, Dump), made
    return made
