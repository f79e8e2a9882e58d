"""The agent on the oldest interpreter from 3.6 on that this machine has, and on the newest: nodes hold other images."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.decode import decoded
from ncheck.facts.learning import sources_for
from ncheck.model.evidence import Answer, Command, Evidence, File, JsonValue, Source, Status, Tree

from tests.every_fact import every_fact

pytestmark = pytest.mark.slow

Ask = Callable[..., Evidence]


def _started() -> int:
    return int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


SOURCES: tuple[Source, ...] = (
    Command(("uname", "-n")),
    Command(("no-such-program",)),
    Command(("sleep", "60"), timeout=0.2),
    File("/proc/version"),
    Tree(("/sys/class/net/lo", "/sys/class/net/lo/mtu")),
    Answer("clock"),
    Answer("interfaces"),
    Answer("interpreter"),
    Answer("nccl"),
    Answer("nccl-pick"),
    Answer("environment"),
    Answer("limits"),
    Answer("host-name"),
    Answer("names", arguments={"names": ["127.0.0.1"]}),
    Answer("routes", arguments={"addresses": ["127.0.0.1", "::1"]}),
    Answer("arrivals", arguments={"arrivals": [{"interface": "lo", "address": "127.0.0.1", "source": "127.0.0.1"}]}),
    Answer("listen", arguments={"node": "here", "token": "0f", "addresses": ["127.0.0.1"], "ports": []}),
    Answer("connect", arguments={"token": "0f", "timeout": 60.0, "sources": {}, "targets": []}),
    Answer("gpus"),
    Answer("stacks", arguments={"ranks": [{"pid": os.getpid(), "started": _started(), "children": []}]}),
    Answer("sockets", arguments={"ranks": [], "launchers": [], "names": ["127.0.0.1"], "ports": [1]}),
    Answer("counters", arguments={"ranks": []}),
)
NO_PEERS: JsonValue = {"peers": [], "timeout": 5.0}
MAY_BE_MISSING = (Answer("gpus"), Answer("nccl-pick"))
EXPECTED = {
    "command:no-such-program": Status.MISSING,
    "command:sleep 60": Status.TIMEOUT,
}


def test_every_source_is_answered(ask: Ask, monkeypatch: pytest.MonkeyPatch, python3: str) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", (python3,))
    evidence = ask(*SOURCES)
    assert evidence.login.cause is None, evidence.login.detail
    statuses = {source.key: evidence.reply(source).status for source in SOURCES if source not in MAY_BE_MISSING}
    assert statuses == {key: EXPECTED.get(key, Status.OK) for key in statuses}, evidence.replies
    assert {evidence.reply(source).status for source in MAY_BE_MISSING} <= {Status.OK, Status.MISSING}


def test_what_the_agent_answers_is_of_the_type_that_its_source_declares(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, python3: str
) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", (python3,))
    declared = {one.key: one.shape for one in sources_for(every_fact()) if isinstance(one, Answer)}
    replies = ask(*SOURCES, Answer("mpi-daemon"), Answer("tools"), Answer("ssh-peers", arguments=NO_PEERS)).replies
    values = {key: reply.value for key, reply in replies.items() if declared.get(key) and reply.succeeded}
    for key, value in values.items():
        assert decoded(value, declared[key]), key
    assert len(values) >= 11


def test_nothing_is_written_where_it_runs(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, python3: str, tmp_path: Path
) -> None:
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", (python3,))
    ask(*SOURCES)
    assert list(tmp_path.rglob("*")) == []
