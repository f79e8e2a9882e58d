"""One input for many agents: each takes its own records, and keeps what the head will name by a number."""

from __future__ import annotations

import base64

from ncheck.agent.broadcast import AGAIN, HEADER, KEPT, LINE, MOST_KEPT, OWN, Broadcast, Keeping, forget_step

OTHER = b"otheragt"


class Input:
    """What the head sent, in pieces of any size."""

    def __init__(self, data: bytes = b"", step: int = 7) -> None:
        self.data, self.step = data, step

    def __call__(self) -> bytes:
        piece, self.data = self.data[: self.step], self.data[self.step :]
        return piece


def broadcast(*, written: list[bytes] | None = None) -> tuple[Broadcast, Input]:
    source, said = Input(), [] if written is None else written

    def write(data: bytes) -> int:
        said.append(data[:1000])
        return min(len(data), 1000)

    return Broadcast("ncheck-0f3a", source, write), source


def record(address: bytes, kind: bytes, data: bytes) -> bytes:
    return HEADER.pack(address, kind, len(data)) + data


def test_an_agent_reads_its_own_records_and_skips_the_others() -> None:
    agent, source = broadcast()
    mine = agent.address
    source.data = (
        record(OTHER, OWN, b"not mine") + record(mine, OWN, b"one ") + record(OTHER, KEPT, b"shared ")
        + HEADER.pack(mine, AGAIN, 0) + record(mine, KEPT, b"three") + HEADER.pack(OTHER, AGAIN, 1)
        + record(mine, OWN, b"") + record(mine, OWN, b"after the end")
    )  # fmt: skip
    assert agent.read_exactly(8) == b"one shar"
    assert agent.read_exactly(100) == b"ed three"
    assert agent.read_exactly(1) == b""


def test_the_end_of_input_in_the_middle_of_a_record_is_the_end() -> None:
    agent, source = broadcast()
    source.data = record(agent.address, OWN, b"whole") + record(agent.address, OWN, b"cut off")[:-3]
    assert agent.read_exactly(100) == b"whole"


def test_lines_are_short_enough_for_slurm_and_hold_all_bytes() -> None:
    written: list[bytes] = []
    agent, _ = broadcast(written=written)
    data = bytes(range(256)) * 20
    agent.write_all(data)
    first, *lines = b"".join(written).splitlines()
    assert first == b"ncheck-0f3a shared " + base64.b16encode(agent.address)
    assert b"".join(map(base64.b64decode, lines)) == data
    assert max(map(len, lines)) == len(base64.b64encode(bytes(LINE))) < 1024


def test_both_sides_forget_the_oldest() -> None:
    kept = Keeping()
    third = bytes(MOST_KEPT // 3)
    assert [kept.keep(third) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert list(kept.items) == [2, 3, 4]


def test_what_slurm_says_of_the_task_is_not_passed_on() -> None:
    environ = {"SLURM_PROCID": "3", "PMI_RANK": "3", "SLURM_JOB_ID": "7", "NCCL_DEBUG": "INFO"}
    forget_step(environ)
    assert environ == {"NCCL_DEBUG": "INFO"}
