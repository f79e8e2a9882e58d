"""Looking names up with the real resolver of this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from ncheck.agent.answers import host_name, names


def test_an_address_is_its_own_answer_and_nonsense_is_an_error() -> None:
    said = names.answer(None, {"names": ["127.0.0.1", "no-such-host.invalid", "a..b", "x" * 300]}, 10.0)["names"]
    assert said["127.0.0.1"] == {"addresses": ["127.0.0.1"]}
    assert all(said[name].get("error") for name in ("a..b", "x" * 300))
    assert said["no-such-host.invalid"].get("error") or said["no-such-host.invalid"] == {"late": True, "seconds": 10.0}


def test_a_host_name_is_what_the_kernel_says() -> None:
    said = host_name.answer(None, None, 10.0)
    assert said["name"] == socket.gethostname()
    assert len(said["leads_to"]) == 1


@pytest.fixture
def silent_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a resolver that answers for localhost alone, and for all else only when the test is over."""
    over, real = threading.Event(), socket.getaddrinfo

    def wait(name: str, *arguments: int) -> object:
        if name != "127.0.0.1":
            over.wait(600)
        return real("127.0.0.1", *arguments)

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    yield
    over.set()


@pytest.mark.slow
@pytest.mark.usefixtures("silent_resolver")
def test_a_resolver_that_does_not_answer_costs_its_time_and_no_other_name() -> None:
    began = time.monotonic()
    said = names.answer(None, {"names": ["gpu01", "127.0.0.1"]}, 3.0)["names"]
    assert said == {"gpu01": {"late": True, "seconds": 3.0}, "127.0.0.1": {"addresses": ["127.0.0.1"]}}
    assert time.monotonic() - began < 60
