"""A node to talk to: this machine under /bin/sh, by the real transport, session and agent."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from doctor.model.evidence import Evidence, JsonValue, Source
from doctor.model.node import Node
from doctor.transport.local import LocalTransport
from doctor.transport.modules import module_text
from doctor.transport.session import Known, Session, SessionEndedError, Wanted

Ask = Callable[..., Evidence]
MINORS = range(6, 15)


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
    """Run a test that takes `python3` on every interpreter from 3.6 on that is here, `end_of_python3` on the ends."""
    found = sorted(((v, p) for v, p in pythons().items() if v != "2.7"), key=lambda item: int(item[0][2:]))
    if "python3" in metafunc.fixturenames:
        metafunc.parametrize("python3", [pytest.param(p, id=v) for v, p in found])
    if "end_of_python3" in metafunc.fixturenames:
        ends = dict([found[0], found[-1]])
        metafunc.parametrize("end_of_python3", [pytest.param(p, id=v) for v, p in ends.items()])


@pytest.fixture
def ask() -> Ask:
    """Return a function that asks this machine for sources, and returns all that came of it."""

    def asked(
        *sources: Source,
        seconds: float = 20.0,
        enter: str | None = None,
        environment: dict[str, JsonValue] | None = None,
    ) -> Evidence:
        return talk(sources, Wanted(
            os.urandom(8).hex(), time.monotonic() + seconds, bool(sources),
            connect_timeout=min(10.0, seconds), enter=enter, environment=environment or {},
        ))  # fmt: skip

    return asked


def talk(sources: Sequence[Source], wanted: Wanted) -> Evidence:
    """Go through one session from beginning to end."""
    known = Known(Node("here"))
    session = Session(LocalTransport().connect(known.node, 5.0), known, wanted, module_text)
    try:
        session.greet(time.monotonic())
        if wanted.agent:
            session.start()
            session.collect(sources)
    except SessionEndedError as error:
        known.fail(error.cause, error.detail)
    finally:
        session.bye()
    return known.evidence()
