"""--dry-run tells all that would be done, and does nothing of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doctor.agent.answers import MODULES
from doctor.collect import HOMES, reader_of
from doctor.dry_run import dry_run
from doctor.model.evidence import Command, File, Tree
from doctor.settings import JobEnvironment, Settings


def told(**settings: object) -> str:
    return dry_run(Settings(**{"hosts": "node1,node2,node3", **settings}), os.environ)  # type: ignore[arg-type]


def test_every_command_and_file_of_every_reader_is_there() -> None:
    text = told()
    for reader in map(reader_of, HOMES):
        for source in reader.sources:
            if isinstance(source, Command):
                assert source.argv[0] in text
            elif isinstance(source, File):
                assert source.path in text
            elif isinstance(source, Tree):
                assert all(pattern in text for pattern in source.patterns)


def test_every_answer_says_what_it_reads() -> None:
    text = told()
    for name in set(MODULES) - {"ssh-peers"}:
        assert f"  {name}: " in text


def test_each_node_has_its_own_line_and_each_its_peers() -> None:
    text = told(port=10001, user="me", identity="/keys/id")
    for name in ("node1", "node2", "node3"):
        assert f"  {name}: ssh -T -i /keys/id -p 10001 -l me -- {name} 'exec /bin/sh" in text
    assert text.count("-p 10001 -l me -- node2 true") == 2


def test_no_peer_and_no_python_appear_where_none_is_asked() -> None:
    text = told(mesh="none", select=("NC1",))
    assert "python3" not in text
    assert "true" not in text


def test_how_the_jobs_environment_is_entered_is_told() -> None:
    text = told(environment=JobEnvironment(setup="module load nccl", enter="docker exec -i train", python="/opt/py"))
    assert "bash -l -c 'module load nccl'" in text
    assert "docker exec -i train /bin/sh -c" in text
    assert "/opt/py" in text


def test_root_is_asked_for_only_with_sudo() -> None:
    assert "sudo" not in told()
    assert "sudo -n dmesg" in told(sudo=True)


def test_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    told()
    assert not (tmp_path / "ran").exists()
