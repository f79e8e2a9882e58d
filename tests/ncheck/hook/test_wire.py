"""The bytes between two ranks."""

from __future__ import annotations

import pytest
from ncheck.hook.meeting.wire import MOST_VALUES, End, ForeignError, MisuseError, decoded, job_token
from ncheck.rank_variables import Rank


def carry(source: End, target: End, *, step: int = 1 << 20) -> list[object]:
    """Bring what one end has to say to the other, in pieces that it wants."""
    data, messages = b"".join(source.outgoing), list[object]()
    source.outgoing.clear()
    while data:
        size = min(target.wanted, step)
        messages += target.feed(data[:size])
        data = data[size:]
    return messages


def pair(token: bytes = b"token", other: bytes = b"token", *, step: int = 1 << 20) -> tuple[End, End]:
    hub, rank = End(token, hub=True), End(other, hub=False)
    for source, target in ((hub, rank), (rank, hub), (hub, rank)):
        carry(source, target, step=step)
    return hub, rank


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_two_ends_with_one_token_prove_it_and_talk(step: int) -> None:
    hub, rank = pair(step=step)
    assert hub.proved
    assert rank.proved
    rank.say(b'{"a": 1}')
    rank.say(b"[2]")
    assert carry(rank, hub, step=step) == [{"a": 1}, [2]]
    hub.say(b'"three"')
    assert carry(hub, rank, step=step) == ["three"]


def test_another_token_is_found_out_by_both_sides() -> None:
    with pytest.raises(ForeignError):
        pair(b"token", b"another")
    hub, rank = End(b"another", hub=True), End(b"token", hub=False)
    carry(hub, rank)
    rank.outgoing.clear()
    with pytest.raises(ForeignError):
        rank.feed(bytes(32))


def test_a_proof_sent_back_to_its_sender_is_no_proof() -> None:
    """Two ranks, or two hubs, that are made to talk to each other."""
    hub, rank = End(b"token", hub=True), End(b"token", hub=False)
    carry(hub, rank)
    proof = b"".join(rank.outgoing)[32:]
    with pytest.raises(ForeignError):
        rank.feed(proof)


def test_a_frame_of_the_other_direction_is_refused() -> None:
    hub, _ = pair()
    hub.say(b"{}")
    with pytest.raises(MisuseError):
        carry(hub, hub)


@pytest.mark.parametrize("frame", [bytes(36), b"\xff" * 36, b"\0\0\0\2" + bytes(32) + b"{}"])
def test_a_frame_without_its_code_is_refused(frame: bytes) -> None:
    hub, rank = pair()
    rank.outgoing.append(frame)
    with pytest.raises(MisuseError):
        carry(rank, hub, step=1)


def test_a_frame_that_was_changed_or_is_sent_again_is_refused() -> None:
    hub, rank = pair()
    rank.say(b"{}")
    frame = b"".join(rank.outgoing)
    assert carry(rank, hub) == [{}]
    for again in (frame, frame[:-1] + b"]"):
        rank.outgoing.append(again)
        with pytest.raises(MisuseError):
            carry(rank, hub)
        hub, rank = pair()


def test_a_proof_cannot_be_used_again() -> None:
    hub, rank = End(b"token", hub=True), End(b"token", hub=False)
    carry(hub, rank)
    proof = list(rank.outgoing)
    carry(rank, hub)
    assert hub.proved
    rank.outgoing += proof
    with pytest.raises(ForeignError):
        carry(rank, End(b"token", hub=True))


def test_a_token_differs_by_job_attempt_port_and_secret() -> None:
    tokens = {
        job_token(Rank(0, 2, job="1", master_port=1), "", "ann"),
        job_token(Rank(0, 2, job="2", master_port=1), "", "ann"),
        job_token(Rank(0, 2, job="1", master_port=2), "", "ann"),
        job_token(Rank(0, 2, job="1", master_port=1, attempt=1), "", "ann"),
        job_token(Rank(0, 2, job="1", master_port=1), "secret", "ann"),
    }
    assert len(tokens) == 5
    assert {len(token) for token in tokens} == {32}


def test_a_token_differs_by_user_where_the_job_has_no_id() -> None:
    assert job_token(Rank(0, 2, master_port=1), "", "ann") != job_token(Rank(0, 2, master_port=1), "", "bob")


def test_a_token_is_the_same_on_all_ranks_whoever_runs_them() -> None:
    first = Rank(0, 2, job="1", master="gpu01", master_port=1, node_name="gpu01", local_rank=0)
    second = Rank(1, 2, job="1", master="10.0.0.1", master_port=1, node_name="gpu02", local_rank=0)
    assert job_token(first, "", "ann") == job_token(second, "", "root")
    assert job_token(first, "secret", "ann") == job_token(second, "secret", "root")


def test_what_takes_far_more_memory_than_bytes_is_refused() -> None:
    assert decoded(b'{"a": [1, "b"]}') == {"a": [1, "b"]}
    for text in (b"[" + b"[]," * MOST_VALUES + b"[]]", b'{"a":' * 5000 + b"1" + b"}" * 5000, b"{"):
        with pytest.raises(ValueError, match=r"too many values|too deep|Expecting"):
            decoded(text)
