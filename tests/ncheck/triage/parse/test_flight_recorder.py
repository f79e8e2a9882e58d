"""Dumps of the flight recorder: whole, cut, of every version, of somebody else, and hostile."""

from __future__ import annotations

import os
import pickle
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.fact import Unread
from ncheck.triage.parse.flight_recorder import ENDED, Call, Dump, DumpGroup, is_dump, read

from tests.ncheck.triage.dumps import SHOWN, as_json, call, dump, gloo, pickled, steps, transfer, value

ENTRIES = [call(1), call(2, "broadcast", count=6), call(3, "barrier", "started", input_sizes=[], output_sizes=[])]
READ = Dump(
    "2.10",
    (
        DumpGroup(
            "0", "default_pg", "[0, 1]", 1, ("all_reduce of 1024 Float", "broadcast of 6 Float", "barrier"), 3,
            Call(3, "barrier", "started", SHOWN), Call(3, "barrier", "started", SHOWN),
        ),
    ),
    3,
    limit=600.0,
)  # fmt: skip


def without_frames(whole: Dump) -> Dump:
    groups = [replace(one, waiting=bare(one.waiting), latest=bare(one.latest)) for one in whole.groups]
    return replace(whole, groups=tuple(groups))


def bare(one: Call | None) -> Call | None:
    return one and replace(one, frames=())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_of_every_protocol_is_read(protocol: int) -> None:
    assert read(pickled(value(ENTRIES, 2), protocol)) == READ


def test_json_says_the_same_without_frames() -> None:
    assert read(as_json(value(ENTRIES, 2))) == without_frames(READ)


def test_the_first_versions_have_one_number_for_all_and_no_names_of_groups() -> None:
    old: list[dict[str, Any]] = []
    for one in (*ENTRIES[:2], transfer(3, "recv 1<-0", "started")):
        number = one["p2p_seq_id"] or one["collective_seq_id"]
        left_out = ("collective_seq_id", "p2p_seq_id", "process_group", "is_p2p", "input_dtypes", "output_dtypes",
                    "timeout_ms")  # fmt: skip
        old.append({**{key: held for key, held in one.items() if key not in left_out}, "seq_id": number})
    assert read(pickled({"version": "1.2", "entries": old})) == Dump(
        "1.2",
        (
            DumpGroup(
                "0", "", "", 1, ("all_reduce of 1024", "broadcast of 6"), 2, None,
                Call(2, "broadcast of 6", "completed", SHOWN), (Call(3, "recv of 8", "started", SHOWN, peer=0),),
            ),
        ),
        3,
    )  # fmt: skip


def test_what_gloo_has_retired_is_completed_although_its_state_is_scheduled() -> None:
    (group,) = dump([gloo(1), gloo(2, done=False)]).groups
    assert group.waiting == Call(2, "all_reduce of 4 Float", "called", SHOWN)


def test_what_nccl_has_retired_without_completing_it_has_timed_out() -> None:
    (group,) = dump([call(1), call(2, state="started", retired=True)]).groups
    assert group.waiting == Call(2, "all_reduce of 1024 Float", "started", SHOWN)


def test_a_coalesced_group_has_the_state_of_its_last_entry() -> None:
    parts = [call(1, "_broadcast_oop", "scheduled", op_id=op, count=op) for op in (1, 2)]
    (group,) = dump([*parts, call(1, "coalesced", input_sizes=[], output_sizes=[])]).groups
    assert (group.waiting, group.calls) == (None, ("broadcast of 1 Float, broadcast of 2 Float",))
    (group,) = dump([*parts, call(1, "coalesced", "started", input_sizes=[], output_sizes=[])]).groups
    assert group.waiting == Call(1, "broadcast of 1 Float, broadcast of 2 Float", "started", SHOWN)


def test_transfers_that_wait_have_their_peer_and_direction() -> None:
    entries = [transfer(1, "send 0->1"), transfer(2, "send 0->1", "started"), transfer(2, "recv 0<-3", "scheduled"),
               transfer(2, "coalesced", "started")]  # fmt: skip
    (group,) = dump(entries).groups
    assert group.transfers == (
        Call(2, "send of 8 Float", "started", SHOWN, 1, sends=True),
        Call(2, "recv of 8 Float", "scheduled", SHOWN, 3),
    )


def test_a_buffer_that_was_overwritten_begins_later() -> None:
    (group,) = dump(steps(5000, "started", first=3001)).groups
    assert (group.last, group.first, len(group.calls)) == (5000, 4744, 257)


@pytest.mark.slow
def test_a_dump_that_is_cut_keeps_what_came_before_and_never_fails() -> None:
    for whole in (pickled(value(steps(30), 2)), as_json(value(steps(30), 2))):
        entries = []
        for end in range(1, len(whole) - 1, 23):
            cut = read(whole[:end])
            if isinstance(cut, Dump):
                assert cut.cut == ENDED
                entries.append(cut.entries)
        assert entries == sorted(entries)
        assert entries[-1] >= 29


def test_what_the_node_left_out_is_said() -> None:
    whole = pickled(value(steps(30), 2))
    made = read(whole[: len(whole) // 2], "only 1,000 of its 2,000 bytes were read")
    assert isinstance(made, Dump)
    assert made.cut == "only 1,000 of its 2,000 bytes were read"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the dump is empty: the rank ended, or the disk was full, when it was to be written"),
        (b"\0" * 4096, "the dump has only zeros: the node or its file system failed while it was written"),
        (b"\x7fELF\x02\x01\x01", "no dump of the flight recorder: neither pickle nor JSON"),
        (b"step 1 loss 2.0\n", "no dump of the flight recorder: neither pickle nor JSON"),
        (b"{broken", "no dump of the flight recorder: it is no valid JSON"),
        (b'{"a": 1}', "no dump of the flight recorder: it has no entries"),
        (pickled([1, 2]), "no dump of the flight recorder: it has no entries"),
        (pickled({"entries": 3}), "no dump of the flight recorder: its entries are no list"),
    ],
)
def test_another_file_is_none_and_says_why(data: bytes, why: str) -> None:
    assert read(data) == Unread(why)


def test_a_dump_is_recognised_by_its_beginning() -> None:
    assert is_dump(pickled(value(ENTRIES))[:4096])
    assert is_dump(as_json(value(ENTRIES))[:4096])
    assert not is_dump(b"\x80\x04\x95 a model")
    assert not is_dump(b'{"loss": 1}')
    assert not is_dump(b"[rank0]: Traceback")


# Hostile


class Evil:
    """A pickle of this runs a command."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch /tmp/ncheck-was-here",)


def test_a_pickle_that_names_anything_is_refused_and_nothing_runs() -> None:
    for protocol in range(2, 6):
        made = read(pickled({"entries": [Evil()], "version": "2.10"}, protocol))
        assert isinstance(made, Unread)
        assert "more than plain data" in made.reason
    assert not os.path.exists("/tmp/ncheck-was-here")  # noqa: PTH110, S108
    for opcodes in (
        b"cos\nsystem\n",
        b"ios\nsystem\n",
        b"\x82\x01",
        b"Pabc\n",
        b"Q",
        b"R",
        b"b",
        b"\x81",
        b"\x92",
        b"o",
    ):
        assert isinstance(read(b"\x80\x02" + opcodes + b"."), Unread)


def _keys(count: int, step: int, size: int) -> bytes:
    """Return a dictionary of whole numbers, so many, each a multiple of `step` and written in `size` bytes."""
    keys = (b"\x8a" + bytes([size]) + (one * step).to_bytes(size, "little") + b"N" for one in range(1, count))
    return b"\x80\x02}(" + b"".join(keys) + b"u."


def hostile() -> dict[str, bytes]:
    """Return pickles that take much time or memory: more than our reader takes of operations and containers."""
    size = 2_000_000
    doubled = b"".join(b"]q" + bytes([one]) + b"h" + bytes([one - 1]) + b"a" for one in range(1, 200))
    tower = b"]q\x00" + b"".join(b"](h" + bytes([one - 1]) + b"h" + bytes([one - 1]) + b"eq" + bytes([one])
                                  for one in range(1, 60))  # fmt: skip
    named = b"".join(
        b"X" + struct.pack("<I", len(key)) + key + b"h\x3b"
        for key in (b"process_group", b"profiling_name", b"input_sizes", b"collective_seq_id", b"frames", b"state")
    )
    return {
        "memo index": b"\x80\x02}r\xff\xff\xff\x7f.",
        "memo index, next": b"\x80\x02}r\xff\xff\xff\x0f.",
        "deep lists": b"\x80\x02" + b"]" * size + b"a" * (size - 1) + b".",
        "deep marks": b"\x80\x02" + b"(" * size + b".",
        "deep tuples": b"\x80\x02)" + b"\x85" * size + b".",
        "flood of dictionaries": b"\x80\x02](" + b"}" * size + b"e.",
        "flood of numbers": b"\x80\x02](" + b"K\x01" * size + b"e.",
        "flood of texts": b"\x80\x02](" + b"\x8c\x00" * size + b"e.",
        "long text": b"\x80\x02X\xff\xff\xff\xffabc.",
        "long bytes": b"\x80\x02\x8e" + b"\xff" * 7 + b"\x7fabc.",
        "long frame": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f}.",
        "huge number": b"\x80\x02\x8b\xff\xff\xff\x7f" + b"\x01" * size + b".",
        "decimal number": b"\x80\x02I" + b"9" * size + b"\n.",
        "equal hashes": _keys(300_000, 2**61 - 1, 12),
        "equal ends of hashes": _keys(59_000, 2**40, 8),
        "chain": b"\x80\x02]q\x00" + doubled + b".",
        "tower of lists": b"\x80\x02}(K\x01" + tower + b"X\x07\x00\x00\x00entries](}(" + named + b"ueu.",
        "list of itself": b"\x80\x02}(X\x07\x00\x00\x00entries]q\x00h\x00au.",
        "deep JSON": b'{"entries":' + b"[" * size,
        "deep JSON objects": b'{"entries":' + b'{"a":' * (size // 5),
        "long JSON number": b'{"entries":' + b"9" * size + b"}",
        "wide JSON": b'{"entries":[' + b"{}," * size + b"{}]}",
    }


_PROGRAM = """
import resource, sys, time
from ncheck.triage.parse.flight_recorder import read
from tests.ncheck.triage.parse.test_flight_recorder import hostile
made = hostile()
assert len(made) == 22
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
for name, data in made.items():
    began = time.process_time()
    found = type(read(data)).__name__
    print(f"{name}|{found}|{time.process_time() - began:.1f}")
print(f"memory||{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f}")
"""


@pytest.mark.slow
def test_hostile_pickles_take_little_time_and_memory() -> None:
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env={**os.environ, **paths}, check=False,
        timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = [line.split("|") for line in ran.stdout.splitlines()]
    assert len(rows) == 22 + 1
    slow = [row for row in rows[:-1] if float(row[2]) > 5]
    assert not slow
    assert (rows[-1][0], float(rows[-1][2]) < 250) == ("memory", True)


def test_a_dump_with_any_bytes_changed_is_read_or_says_why() -> None:
    chance = random.Random(11)  # noqa: S311
    for whole in (pickled(value(steps(8), 2)), as_json(value(steps(8), 2)), pickled(value(steps(8), 2), 4)):
        for _ in range(500):
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            assert isinstance(read(bytes(data)), Dump | Unread)


def test_values_of_any_kind_in_any_place_are_no_trouble() -> None:
    loop: list[object] = []
    loop.append(loop)
    strange: list[object] = [
        None,
        -1,
        2**70,
        1.5,
        "\x1b[31m",
        b"x"[0],
        [],
        {},
        (1, 2),
        loop,
        [["a"]],
        [[2**62] * 30],
        True,
    ]
    for key in call(1):
        for one in strange:
            assert isinstance(read(pickle.dumps(value([call(1), {**call(2), key: one}], 2), 2)), Dump | Unread)
    for key in value([]):
        for one in strange:
            assert isinstance(read(pickle.dumps({**value(steps(3), 2), key: one}, 2)), Dump | Unread)


@pytest.mark.slow
def test_a_large_dump_is_read_in_a_few_hundredths_of_a_second() -> None:
    data = pickled(value(steps(2000), 1024))
    began = time.process_time()
    assert isinstance(read(data), Dump)
    assert time.process_time() - began < 0.5
