"""How long `ncheck triage` takes for the flight recorder dumps of 1,024 ranks, and how much memory.

Each dump has 2,000 collectives of 15 frames; rank 0 has not called the last one. The dumps are made one at a time, as a
node's answer arrives, and are read in this process. The bench ends with an error where rank 0 is not the one that is
named, or a limit is exceeded.
"""

from __future__ import annotations

import argparse
import base64
import pickle
import resource
import sys
import time
import zlib

from ncheck.cli.process import collect_garbage_rarely
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.triage.facts.flight_recorder import FLIGHT_RECORDER, DumpFile, FlightRecorderFacts, flight_recorder
from ncheck.triage.flight_recorder import analyse
from ncheck.triage.parse.flight_recorder import Dump

MOST_SECONDS, MOST_MIB = 10.0, 200.0  # for 1,024 dumps


def entries(count: int) -> list[dict[str, object]]:
    """Return so many collectives as torch records them; the last has not ended."""
    frames = [{"name": f"call_{at}", "filename": "/home/ada/train.py", "line": at} for at in range(15)]
    return [
        {
            "frames": list(frames), "record_id": at, "pg_id": 0, "process_group": ("0", "default_pg"),
            "thread_name": "pt_main_thread", "thread_id": "139909897390976", "collective_seq_id": at, "p2p_seq_id": 0,
            "op_id": at, "profiling_name": "nccl:all_reduce", "time_created_ns": 1795375986962941400 + at,
            "input_sizes": [[1024 + at % 40]], "input_dtypes": ["Float"], "output_sizes": [[1024 + at % 40]],
            "output_dtypes": ["Float"], "state": "completed" if at < count else "started",
            "time_discovered_started_ns": 1795375986962941500 + at,
            "time_discovered_completed_ns": 1795375986962941600 + at if at < count else None,
            "retired": at < count, "timeout_ms": 600000, "is_p2p": False,
        }
        for at in range(1, count + 1)
    ]  # fmt: skip


def answer(rank: int, held: list[dict[str, object]], size: int) -> Evidence:
    """Return what a node answers of one rank."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(size)))}}
    data = pickle.dumps({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": held}, 2)
    file: JsonValue = {
        "path": f"/home/ada/nccl_trace_rank_{rank}", "size": len(data), "mtime": 2.0, "owner": 0, "read": len(data),
        "error": "", "data": base64.b64encode(zlib.compress(data, 1)).decode(),
    }  # fmt: skip
    one: JsonValue = {"pid": rank, "error": "", "asked": "", "tried": [], "began": 1.0, "dump": file}
    reply = Reply(Status.OK, value={"ranks": [one]})
    return Evidence(f"node{rank}", Login(reached=True), replies={FLIGHT_RECORDER.key: reply})


def main() -> None:
    """Read the dumps and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--entries", type=int, default=2000)
    asked = parser.parse_args()
    collect_garbage_rarely()  # as the command does
    held = entries(asked.entries)
    two = [answer(rank, held if rank else held[:-1], asked.ranks) for rank in (0, 1)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began, wall = time.process_time(), time.perf_counter()
    dumps: dict[int, Dump] = {}
    for rank in range(asked.ranks):
        facts = flight_recorder(two[min(rank, 1)])
        file = facts.of(min(rank, 1)) if isinstance(facts, FlightRecorderFacts) else facts
        if not isinstance(file, DumpFile):
            sys.exit(f"a dump was not read: {file}")
        dumps[rank] = file.dump
    (clue,) = analyse(dumps, asked.ranks)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{asked.ranks} dumps of {asked.entries} collectives: {seconds:.1f} s of CPU, {wall:.1f} s, {peak:.0f} MiB "
          f"({before:.0f} MiB before)")  # fmt: skip
    if clue.ranks != (0,) or seconds > MOST_SECONDS or peak > MOST_MIB:
        sys.exit(f"too slow, too large, or the wrong rank: {clue}")


if __name__ == "__main__":
    main()
