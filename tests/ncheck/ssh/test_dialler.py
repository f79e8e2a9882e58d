"""Nodes that say nothing cost no worker: all are dialled at once, and who answers first is served first."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from ncheck.fleet.engines import engines
from ncheck.model.evidence import Cause
from ncheck.model.node import Node
from ncheck.ssh import dialler
from ncheck.ssh.dial import GreetedConnection, addresses_of
from ncheck.ssh.dialler import Dialler, Outcome
from ncheck.ssh.failures import FailureError
from ncheck.ssh.target import SshTarget
from typing_extensions import Self

from tests.ncheck.fleet.scripted import Told, asked, first

from .sites import BANNER, Known, Served, Site, Sshd

FAR = 600.0  # seconds, of which none is waited for


@contextmanager
def listening(queue: int, filled: int = 0) -> Iterator[int]:
    """Hold a port at all addresses of this machine. It accepts `queue` connections and says nothing; once these are
    there, what asks for another one is dropped.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("", 0))
        listener.listen(queue)
        for _ in range(filled):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)  # noqa: FBT003
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@contextmanager
def refusing() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@pytest.mark.parametrize("site", ["paramiko"], indirect=True)
def test_silent_nodes_ahead_in_the_list_hold_up_nobody(site: Site, sshd: Sshd, known: Known) -> None:
    """There are two workers. Ahead of three that answer, 200 drop what comes to them, and 50 accept without a word."""
    known(port := sshd())
    lines = [f"  {key} {value}" for key, value in site.lines.items() if key != "HostName"]
    (config := site.folder / "config").write_text("\n".join(["Host *", *lines, ""]))
    settings = replace(
        site.settings, transport="paramiko", ssh_config=str(config), width=2, deadline=2 * FAR, connect_timeout=FAR
    )
    threads = set(threading.enumerate())
    with listening(0, filled=3) as silent, listening(1000) as mute, refusing() as closed:
        nodes = [
            *(Node(f"127.1.0.{number}", port=silent) for number in range(1, 201)),
            *(Node(f"127.2.0.{number}", port=mute) for number in range(1, 51)),
            Node("127.3.0.1", port=closed), Node("127.3.0.2", port=closed), Node("127.0.0.1", port=port),
        ]  # fmt: skip
        names = [node.name for node in nodes]
        run = asked(nodes, [first(names, [])], settings, engines(settings, site.environ), Told())
        came = {one.node: one.login.cause for one in (next(run) for _ in range(3))}
        run.close()  # type: ignore[attr-defined]
    assert came == {"127.3.0.1": Cause.REFUSED, "127.3.0.2": Cause.REFUSED, "127.0.0.1": None}
    for thread in set(threading.enumerate()) - threads:  # nobody waits for those that are silent
        thread.join(60)
        assert not thread.is_alive()


class Dialled:
    """What came of hosts, in its order, of a dialler that is closed in the end."""

    def __init__(self, width: int = 64) -> None:
        self.dialler = Dialler(width)
        self.outcomes: dict[str, Outcome] = {}
        self.begun: list[str] = []
        self.came = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dialler.close()

    def add(self, name: str, target: SshTarget | None, timeout: float = FAR) -> None:
        self.dialler.add(lambda: target, timeout, lambda: self._begin(name, timeout), lambda got: self._take(name, got))

    def first(self, count: int) -> Sequence[Outcome]:
        with self.came:
            assert self.came.wait_for(lambda: len(self.outcomes) >= count, 60)
            return list(self.outcomes.values())

    def _begin(self, name: str, timeout: float) -> float:
        self.begun.append(name)
        return timeout

    def _take(self, name: str, outcome: Outcome) -> None:
        with self.came:
            self.outcomes[name] = outcome
            self.came.notify_all()


def test_a_server_gets_no_more_connections_at_once_than_the_width(served: Served) -> None:
    def speak(connection: socket.socket) -> None:
        connection.sendall(BANNER)
        connection.recv(100)

    with served(speak) as port, Dialled(width=2) as dialled:
        for number in range(5):
            dialled.add(f"n{number}", SshTarget(f"n{number}", "127.0.0.1", port))
        for count in (2, 3, 4, 5):
            outcomes = dialled.first(count)
            assert len(dialled.begun) == count
            done = outcomes[count - 2]
            assert isinstance(done, GreetedConnection)
            done.sock.close()
            dialled.dialler.logged_in(done)
        assert isinstance(outcomes[-1], GreetedConnection)
        outcomes[-1].sock.close()


def test_names_that_hang_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def asked_for(target: SshTarget) -> object:
        if target.host_name == "hangs":
            answered.wait()
        return addresses_of(target)

    monkeypatch.setattr(dialler, "addresses_of", asked_for)
    monkeypatch.setattr(dialler, "LONG", 0.05)
    with refusing() as closed, Dialled() as dialled:
        for number in range(3 * dialler.LOOK_UPS):
            dialled.add(f"h{number}", SshTarget("hangs", "hangs"))
        dialled.add("late", SshTarget("hangs", "hangs"), timeout=0.1)
        dialled.add("fine", SshTarget("fine", "127.0.0.1", closed))
        outcomes = dialled.first(2)
        answered.set()
    causes = {error.failure.cause.value for error in outcomes if isinstance(error, FailureError)}
    assert (set(dialled.outcomes), causes) == ({"late", "fine"}, {"name-unknown", "refused"})


def test_hosts_wait_where_descriptors_are_few() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with listening(0, filled=3) as silent, refusing() as closed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(128, limits[1]), limits[1]))
        try:
            with Dialled() as dialled:
                for number in range(1, 101):
                    dialled.add(f"s{number}", SshTarget("s", f"127.1.1.{number}", silent), timeout=0.15)
                    dialled.add(f"r{number}", SshTarget("r", f"127.1.2.{number}", closed))
                outcomes = dialled.first(200)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    causes = [error.failure.cause.value for error in outcomes if isinstance(error, FailureError)]
    assert {cause: causes.count(cause) for cause in causes} == {"refused": 100, "filtered": 100}


def test_a_host_that_is_not_to_be_dialled_is_handed_on() -> None:
    with Dialled() as dialled:
        dialled.add("jump", None)
        assert dialled.first(1) == [None]
