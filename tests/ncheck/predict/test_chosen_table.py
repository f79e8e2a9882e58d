"""What NCCL chose elsewhere (chosen.toml) is whole: known words, and the table that it printed gives what it chose."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "chosen.toml").read_text())["row"]
ALGORITHMS = {"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"}
PROTOCOLS = {"ll", "ll128", "simple"}
OPS = {"broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce"}


def sizes(chosen: Mapping[str, Any]) -> Iterator[int]:
    """Yield the sizes of a choice: one, or the powers of two of a range."""
    first, last = chosen["bytes"] if isinstance(chosen["bytes"], list) else (chosen["bytes"], chosen["bytes"])
    while first <= last:
        yield first
        first *= 2


def test_the_truth_has_fifteen_threads_and_known_words_alone() -> None:
    chosen = [one for row in ROWS for one in row.get("chosen", ())]
    named = {(op, algo, proto) for row in ROWS for op, algos in row.get("table", {}).items()
             for algo, protos in algos.items() for proto in protos}  # fmt: skip
    assert len({row["source"] for row in ROWS}) >= 15
    assert {one["op"] for one in chosen} | {op for op, _, _ in named} <= OPS
    assert {one["algo"] for one in chosen} | {algo for _, algo, _ in named} <= ALGORITHMS
    assert {one.get("proto", "ll") for one in chosen} | {proto for _, _, proto in named} <= PROTOCOLS
    assert sum(len(list(sizes(one))) for one in chosen) >= 150


def test_the_table_that_nccl_printed_gives_what_it_chose_for_large_messages() -> None:
    checked = 0
    for row in ROWS:
        for one in row.get("chosen", ()):
            table = row.get("table", {}).get(one["op"], {})
            for size in (size for size in sizes(one) if size >= 2**20 and table):
                times = {(algo, proto): latency + size / bandwidth / 1e3 for algo, protos in table.items()
                         for proto, (latency, bandwidth) in protos.items()}  # fmt: skip
                assert min(times, key=times.__getitem__) == (one["algo"], one["proto"]), (row["source"], size)
                checked += 1
    assert checked == 40
