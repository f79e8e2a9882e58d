"""A node to talk to: this machine under /bin/sh, by the real transport, session and agent; and evidence by hand."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.session import Known, Request, Session, SessionEndedError, SessionTerms
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Source
from ncheck.model.node import Node

Ask = Callable[..., Evidence]
Heard = Callable[[Session], object]
Answered = Callable[[Mapping[Source, Reply]], Evidence]
MINORS = range(6, 15)


@cache  # first asked as tests are collected, in the home of who runs them
def pythons() -> dict[str, str]:
    """Map versions to interpreters: those on PATH, in the folders of NCHECK_PYTHONS, and where pyenv keeps them."""
    kept = [str(folder) for folder in Path.home().glob(".pyenv/versions/*/bin")]
    path = os.pathsep.join([os.environ.get("NCHECK_PYTHONS", ""), *kept, os.environ["PATH"]])
    found = {f"3.{minor}": shutil.which(f"python3.{minor}", path=path) for minor in MINORS}
    found["2.7"] = shutil.which("python2.7", path=path)
    found[f"{sys.version_info.major}.{sys.version_info.minor}"] = sys.executable
    return {version: path for version, path in found.items() if path}


@pytest.fixture
def python2() -> str:
    """Return a Python 2.7, or skip the test."""
    return pythons().get("2.7") or pytest.skip("no Python 2.7 here")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `python3` on the oldest interpreter from 3.6 on that is here, and on the newest."""
    if "python3" in metafunc.fixturenames:
        found = sorted(((v, p) for v, p in pythons().items() if v != "2.7"), key=lambda item: int(item[0][2:]))
        ends = dict([found[0], found[-1]])
        metafunc.parametrize("python3", [pytest.param(path, id=version) for version, path in ends.items()])


@pytest.fixture
def ask() -> Ask:
    """Return a function that asks this machine for sources, and returns all that came of it.

    Its times are ends for what hangs, far beyond what a busy machine needs. `heard` is called with each reply.
    """

    def asked(
        *sources: Source,
        enter: str | None = None,
        environment: dict[str, JsonValue] | None = None,
        connect_timeout: float = 60.0,
        heard: Heard = id,
    ) -> Evidence:
        wanted = SessionTerms(
            os.urandom(8).hex(), time.monotonic() + 120.0, bool(sources),
            connect_timeout=connect_timeout, command_timeout=60.0, enter=enter, environment=environment or {},
        )  # fmt: skip
        return talk(sources, wanted, heard)

    return asked


class Replies(dict[str, Reply]):
    """Replies that are told of as they come."""

    def __init__(self, told: Callable[[], object]) -> None:
        super().__init__()
        self.told = told

    def __setitem__(self, key: str, reply: Reply) -> None:
        super().__setitem__(key, reply)
        self.told()


def talk(sources: Sequence[Source], wanted: SessionTerms, heard: Heard) -> Evidence:
    """Go through one session from beginning to end."""
    known = Known(Node("here"))
    session = Session(LocalEngine().connect(known.node, 60.0), known, wanted, module_text)
    known.replies = Replies(lambda: heard(session))
    try:
        session.greet(time.monotonic())
        if wanted.agent:
            session.start()
            session.collect(Request(sources))
    except SessionEndedError as error:
        known.fail(error.cause, error.detail)
    finally:
        session.bye()
    return known.evidence()


@pytest.fixture
def answered() -> Answered:
    """Return a function that makes a reached node's evidence of what each source answered; others were never asked."""

    def made(replies: Mapping[Source, Reply]) -> Evidence:
        return Evidence("node01", Login(reached=True), replies={source.key: reply for source, reply in replies.items()})

    return made
