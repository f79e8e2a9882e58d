"""A command in place of ssh, and a shell on this machine."""

from __future__ import annotations

import os
import select
import shlex
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from ncheck.fleet.engine import Engine, NotConnectedError, Stream
from ncheck.fleet.engines.command import LocalEngine, RshEngine
from ncheck.model.evidence import Cause
from ncheck.model.node import Node

TRIES = 40  # each is a race between two threads, and one in three met it in the middle


def spoken_on(stream: Stream, begun: threading.Event) -> OSError:
    """Speak until the stream is gone, and return what that was; whatever else is raised is a failure of the test."""
    try:
        while True:
            stream.send(b"x", 60)
            begun.set()
    except OSError as error:
        return error


def listened_to(stream: Stream, begun: threading.Event) -> OSError:
    try:
        while stream.receive(60):
            begun.set()
    except OSError as error:
        return error
    return OSError("it ended")


@pytest.mark.slow
@pytest.mark.parametrize(("line", "speak"), [("exec cat >/dev/null", spoken_on), ("exec cat /dev/zero", listened_to)])
@pytest.mark.parametrize("engine", [LocalEngine(), RshEngine(lambda _node: "env")], ids=lambda engine: engine.name)
def test_a_stream_that_another_thread_closes_is_a_connection_that_is_gone(
    engine: Engine, line: str, speak: Callable[[Stream, threading.Event], OSError]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        for _ in range(TRIES):
            stream, begun = engine.connect(Node("here"), 60), threading.Event()
            stream.send(line.encode() + b"\n", 60)
            met = pool.submit(speak, stream, begun)
            assert begun.wait(60)
            stream.close()
            assert isinstance(met.result(60), OSError)


def test_a_command_in_place_of_ssh_runs_the_same_shell() -> None:
    engine = RshEngine(lambda _node: "env NODE={node}", {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    stream = engine.connect(Node("pod-7"), 60)
    stream.send(b'echo "$NODE"; echo err >&2; exit 4\n', 60)
    assert stream.receive(60) == b"pod-7\n"
    assert stream.receive(60) == b""
    assert (stream.exit_status(60), stream.stderr(), stream.login.transport) == (4, b"err\n", "rsh")
    assert stream.login.fix == "env NODE=pod-7 true"  # what to type for whatever goes wrong behind it
    stream.close()


def test_a_name_in_that_command_stays_one_word_and_no_command(tmp_path: Path) -> None:
    engine = RshEngine(lambda _node: "kubectl exec -i {node} --", {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    node = Node(f"pod; touch {tmp_path}/never $(id)")
    shell = shlex.split("/bin/sh -c 'IFS= read -r line && eval \"$line\"' ncheck-command")
    assert engine.argv(node) == ["kubectl", "exec", "-i", node.name, "--", *shell]


def test_a_command_that_is_not_there_is_our_trouble() -> None:
    engine = RshEngine(lambda _node: "no-such-program {node}", {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    with pytest.raises(NotConnectedError) as raised:
        engine.connect(Node("pod-7"), 60)
    assert raised.value.login.cause is Cause.TRANSPORT


STUBBORN = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 600' & wait"


def test_closing_the_shell_of_this_machine_ends_what_left_its_session_and_heeds_no_signal() -> None:
    stream = LocalEngine().connect(Node("here"), 60)
    stream.send(f"{STUBBORN}\n".encode(), 60)
    process = os.pidfd_open(int(stream.receive(60)))
    stream.close()
    assert select.select([process], [], [], 60)[0], "it goes on"
    os.close(process)


def test_the_user_of_this_machine_is_who_runs_here_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOGNAME", "nobody-else")
    stream = LocalEngine().connect(Node("here"), 60)
    stream.close()
    assert stream.login.user == psutil.Process().username()
