from __future__ import annotations

import os
import socket
from contextlib import ExitStack, closing

import pytest
from ncheck.probe.agent.unanswered import unanswered


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.31"), (socket.AF_INET6, "::1")])
def test_a_connection_that_nobody_answers_is_told_and_no_other(family: socket.AddressFamily, address: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(closing(socket.create_server((address, 0), family=family, backlog=1)))
        port = server.getsockname()[1]
        waiting: list[str] = []
        for _ in range(9):  # until its queue is full: the kernel answers no more then
            if waiting:
                break
            sock = stack.enter_context(closing(socket.socket(family)))
            sock.settimeout(0.5)
            try:
                sock.connect((address, port))
            except TimeoutError:
                waiting = unanswered(os.getpid())
        assert waiting == [f"{address} port {port} from {'::1' if ':' in address else '127.0.0.1'}"]
    assert unanswered(os.getpid()) == []


def test_of_a_process_that_is_not_there_nothing_is_told() -> None:
    assert unanswered(2**30) == []
