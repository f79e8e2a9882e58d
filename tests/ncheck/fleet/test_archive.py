"""The archive of triage: what is kept, without secrets; and what strangers may send."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ncheck.errors import RecordingError, SettingsError
from ncheck.fleet.archive import is_archive, load_archive, save_archive
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.job import Target

from tests.ncheck.triage.live.jobs import job, rank

PROCESSES = {"answer:processes": Reply(Status.OK, value={"processes": [], "left_out": 0, "hidden": 0})}
NODES = (
    Evidence("gpu01", Login(reached=True, address="10.0.0.1", port=22), replies=PROCESSES),
    Evidence("gpu02", Login(reached=False, detail="no route to host")),
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "hang.zip"
    save_archive(str(path), NODES, job(rank(0, "gpu01", 20)))
    return path


def test_what_was_saved_comes_back(saved: Path) -> None:
    evidence, target = load_archive(str(saved))
    assert target == Target(20, "gpu01")
    assert [(one.node, one.login.detail, one.replies, one.recorded) for one in evidence] == [
        ("gpu01", "", PROCESSES, True), ("gpu02", "no route to host", {}, True),
    ]  # fmt: skip


def test_secrets_are_not_saved(tmp_path: Path) -> None:
    argv: list[JsonValue] = [
        "python3",
        "train.py",
        "--api-key=hunter2",
        "--api-key",
        "hunter4",
        "sshpass",
        "-p",
        "hunter5",
    ]
    reply = Reply(Status.OK, value={"argv": argv, "variables": {"WANDB_API_KEY": "hunter3"}})
    path = tmp_path / "hang.zip"
    save_archive(str(path), [Evidence("gpu01", Login(reached=True), replies={"answer:x": reply})], None)
    with zipfile.ZipFile(path) as archive:
        assert not any(b"hunter" in archive.read(name) for name in archive.namelist())


def test_only_a_zip_is_taken_for_an_archive(saved: Path, tmp_path: Path) -> None:
    listing = tmp_path / "nodes.txt"
    listing.write_text("PKnode01\n")
    assert [is_archive(str(path)) for path in (saved, listing, tmp_path, tmp_path / "none")] == [True] + [False] * 3


def test_a_folder_that_is_not_there_is_said_before_anything_is_lost(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--save"):
        save_archive(str(tmp_path / "none" / "hang.zip"), NODES, None)


HEADER = {"ncheck_triage": 1, "version": "0.1.0", "job": {}}


def archive(path: Path, members: dict[str, bytes], header: Any = HEADER) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
        if header is not None:
            made.writestr("triage.json", json.dumps(header))
    return str(path)


@pytest.fixture
def member(saved: Path) -> bytes:
    with zipfile.ZipFile(saved) as made:
        return made.read("00000.json").replace(b'"of": 2', b'"of": 1')


def test_a_member_is_never_unpacked_whatever_its_name(tmp_path: Path, member: bytes) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    before = sorted(tmp_path.rglob("*"))
    path = archive(folder / "a.zip", {"../../evil.json": member})
    evidence, _ = load_archive(path)
    assert [one.node for one in evidence] == ["gpu01"]
    assert sorted(tmp_path.rglob("*")) == sorted([*before, folder / "a.zip"])


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (None, "not an archive that ncheck triage --save wrote"),
        ([], "not an archive that ncheck triage --save wrote"),
        ({"job": {}}, "not an archive that ncheck triage --save wrote"),
        ({**HEADER, "ncheck_triage": 2}, "written by a newer ncheck"),
        ({**HEADER, "job": None}, "does not name its job as an archive of triage does"),
        ({**HEADER, "job": {"pid": "7", "node": "gpu01"}}, "does not name its job as an archive of triage does"),
        ({**HEADER, "job": {"pid": 7}}, "does not name its job as an archive of triage does"),
    ],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, member: bytes, header: Any, why: str) -> None:
    with pytest.raises(RecordingError, match=why):
        load_archive(archive(tmp_path / "a.zip", {"00000.json": member}, header))


@pytest.mark.slow
def test_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    path = archive(tmp_path / "bomb.zip", {"00000.json": b" " * (80 << 20)})
    assert Path(path).stat().st_size < 1 << 20
    with pytest.raises(RecordingError, match="larger than any archive of triage"):
        load_archive(path)


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_is_packed_otherwise_is_not_unpacked(tmp_path: Path, packed: int) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", packed) as made:
        made.writestr("00000.json", b"\0" * (1 << 20))
    with pytest.raises(RecordingError, match="damaged, or not an archive of ncheck triage"):
        load_archive(str(path))


def test_a_list_of_a_million_members_is_not_read(tmp_path: Path, member: bytes) -> None:
    path = Path(archive(tmp_path / "a.zip", {"00000.json": member}))
    data = bytearray(path.read_bytes())
    data[-10:-6] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(RecordingError, match="damaged, or not an archive of ncheck triage"):
        load_archive(str(path))


def test_of_a_pipe_nothing_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "nodes")
    assert not is_archive(str(tmp_path / "nodes"))


def test_only_its_owner_can_read_an_archive(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o600


def test_every_cut_and_every_changed_byte_is_refused_or_read_as_it_was(saved: Path, tmp_path: Path) -> None:
    whole, path = saved.read_bytes(), tmp_path / "cut.zip"
    good = load_archive(str(saved))
    for at in range(0, len(whole), 7):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            path.write_bytes(data)
            try:
                assert load_archive(str(path)) == good
            except RecordingError as error:
                assert str(error).startswith(str(path))  # noqa: PT017  either is right


def test_a_node_of_a_name_that_no_listing_has_is_refused(tmp_path: Path, member: bytes) -> None:
    wrong = member.replace(b'"gpu01"', b'"-oProxyCommand=x"')
    with pytest.raises(RecordingError, match="is in no listing"):
        load_archive(archive(tmp_path / "a.zip", {"00000.json": wrong}))
