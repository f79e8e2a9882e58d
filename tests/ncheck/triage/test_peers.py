"""Whom a send or a receive is for, by its line of code: what cannot be computed is not known."""

from __future__ import annotations

import pytest
from ncheck.triage.peers import Message, message_of


@pytest.mark.parametrize(
    ("line", "function", "message"),
    [
        ("WORLD.Send(BORDER, dest=1, tag=7)", "Send", Message(1, 7)),
        ("distributed.recv(torch.empty(8), src=1 - RANK)", "recv", Message(-2)),
        ("received = comm.recv(source=(rank + 1) % size)", "recv", Message(0)),
        ("dist.send(x, self.rank ^ 1)", "send", Message(2)),
        ("if comm.recv(source=0) is None:", "recv", Message()),  # half a statement
        ("dist.recv(activations, src=previous_stage(rank))", "recv", Message()),
        ("dist.recv(activations, src=rank % 0)", "recv", Message()),
        ("dist.recv(activations,", "recv", Message()),
        ("comm.Barrier()", "recv", Message()),
        (r'dist.recv(find("\d"), src=2)', "recv", Message(2)),  # a warning of Python's
        ("(" * 299, "recv", Message()),
    ],
)
def test_the_peer_and_the_tag_of_a_call_are_computed(line: str, function: str, message: Message) -> None:
    assert message_of(line, function, 3, 4) == message
