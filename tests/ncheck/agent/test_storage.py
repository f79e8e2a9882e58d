"""The job's file systems as the agent finds them: real folders, and tables of mounts as kernels print them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import storage
from ncheck.agent.mount_table import mount_of, read_mounts
from ncheck.agent.sources import Sources

TABLE = r"""
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,errors=remount-ro
30 27 0:40 / /home rw,relatime shared:1 - nfs4 fs01:/export/home rw,vers=4.2,hard,clientaddr=10.0.0.3
31 27 0:41 / /my\040data ro,relatime - nfs fs01:/export/my\040data ro,vers=3,soft
32 27 259:1 / /scratch rw,relatime - ext4 /dev/nvme1n1 ro,errors=remount-ro
33 27 7:1 / /snap/core/1 ro,nodev - squashfs /dev/loop1 ro
34 27 11:0 / /media/cdrom rw,relatime - iso9660 /dev/sr0 ro
35 27 0:45 / /mnt rw,relatime - autofs auto.mnt rw,fd=7
36 27 0:46 / /home rw,relatime - lustre 10.0.0.9@o2ib:/scratch rw,flock
37 27 259:2 / /boot ro,relatime - ext4 /dev/nvme0n1p1 ro
"""


def test_a_path_is_on_the_mount_that_covers_it_last() -> None:
    table = read_mounts(TABLE)
    assert [one["point"] for one in table] == [
        "/", "/home", "/my data", "/scratch", "/snap/core/1", "/media/cdrom", "/mnt", "/home", "/boot",
    ]  # fmt: skip
    on = {path: mount_of(path, table) for path in ("/home/me", "/homes", "/my data", "/scratch/a/b")}
    assert {path: one and one["type"] for path, one in on.items()} == {
        "/home/me": "lustre", "/homes": "ext4", "/my data": "nfs", "/scratch/a/b": "ext4",
    }  # fmt: skip
    assert mount_of("/", []) is None


def test_a_disk_that_the_kernel_made_read_only_is_told_from_one_that_was_mounted_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verity = "38 27 252:0 / /host/usr rw,relatime - ext4 /dev/mapper/usr ro\n"  # a container of an immutable host
    bound = "39 27 259:1 /log /var/log rw,relatime - ext4 /dev/nvme1n1 ro,errors=remount-ro\n"
    for device, protected in (("252:0", "1"), ("259:1", "0")):
        (tmp_path / device).write_text(protected)
    monkeypatch.setattr(storage, "WRITE_PROTECTED", f"{tmp_path}/{{}}")
    assert [one["point"] for one in storage._forced(read_mounts(TABLE + verity + bound))] == ["/scratch"]
    many = (f"{n} 1 259:{n} / /m{n} rw - xfs /dev/n{n} ro,emergency_ro" for n in range(2, 5000))
    assert len(storage._forced(read_mounts("\n".join(many)))) == 16


def test_each_server_has_its_first_mount_looked_at_first() -> None:
    lines = (f"{n} 1 0:{n} / /m{n} rw - nfs4 fs0{n % 2}:/x{n} rw" for n in range(4))
    assert [one["point"] for one in storage._by_server(read_mounts("\n".join(lines)))] == ["/m0", "/m1", "/m2", "/m3"]
    lines = (f"{n} 1 0:{n} / /m{n} rw - nfs4 fs0{n // 2}:/x{n} rw" for n in range(4))
    assert [one["point"] for one in storage._by_server(read_mounts("\n".join(lines)))] == ["/m0", "/m2", "/m1", "/m3"]


def asked(tmp_path: Path, *folders: list[str], **variables: str) -> dict[str, Any]:
    environment = {"HOME": str(tmp_path), **variables}
    value: dict[str, Any] = storage.answer(Sources(environment), {"folders": [*folders]}, 10.0)
    return value


def test_the_folders_of_the_job_are_named_once_with_what_names_them(tmp_path: Path) -> None:
    value = asked(tmp_path, ["--data", "/etc/"], HF_HOME="~/hf", TORCH_HOME="relative", XDG_CACHE_HOME=str(tmp_path))
    assert [(one["path"], one["named_by"]) for one in value["folders"]] == [
        ("/etc", "--data"), (str(tmp_path), "home"), (f"{tmp_path}/hf", "HF_HOME"),
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_described_as_it_is_and_by_the_one_above_where_it_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    there, gone = asked(tmp_path, ["--data", f"{tmp_path}/link"], ["--data", f"{tmp_path}/no/where"])["folders"][:2]
    room = os.statvfs(tmp_path)
    assert {**there["state"], "size": 0, "free": 0, "files_free": 0} == {
        "error": "", "real": f"{tmp_path}/data", "exists": True, "readable": True, "writable": True,
        "size": 0, "free": 0, "files_free": 0, "inode": (tmp_path / "data").stat().st_ino,
        "changed": int((tmp_path / "data").stat().st_mtime),
    }  # fmt: skip
    assert there["state"]["free"] == pytest.approx(room.f_bavail * room.f_frsize, rel=0.1)
    assert (gone["state"]["exists"], gone["state"]["real"]) == (False, str(tmp_path))
    assert gone["on"]["point"] == there["on"]["point"]


def test_a_folder_that_the_automounter_mounts_for_the_look_is_on_that_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, data, real = tmp_path / "mountinfo", tmp_path / "data", os.statvfs
    data.mkdir()
    before = f"30 1 0:45 / {data} rw,relatime - autofs auto.direct rw,fd=7\n"
    table.write_text(before)

    def mounts(path: str) -> os.statvfs_result:
        if path == str(data):
            table.write_text(before + f"31 30 0:40 / {data} rw,relatime - nfs4 fs01:/data rw,vers=4.2\n")
        return real(path)

    monkeypatch.setattr("ncheck.agent.mount_table.OWN", str(table))
    monkeypatch.setattr(os, "statvfs", mounts)
    assert asked(tmp_path, ["--data", str(data)])["folders"][0]["on"]["source"] == "fs01:/data"


def test_what_is_no_path_of_this_system_fails_in_words(tmp_path: Path) -> None:
    (long,) = [one for one in asked(tmp_path, ["--data", "/" + "x" * 300])["folders"] if one["named_by"] == "--data"]
    assert long["state"] == {"error": "File name too long", "code": "ENAMETOOLONG"}


@pytest.mark.slow
def test_a_file_system_that_hangs_is_one_without_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A real one that hangs takes a kernel to make: the lab has it.
    real = os.statvfs

    def hangs(path: str) -> object:
        while path == f"{tmp_path}/hung":
            os.read(os.pipe()[0], 1)
        return real(path)

    (tmp_path / "hung").mkdir()
    monkeypatch.setattr(os, "statvfs", hangs)
    monkeypatch.setattr(storage, "_PATIENCE", 2.0)
    hung, *others = asked(tmp_path, ["--data", f"{tmp_path}/hung"], ["--data", "/etc"])["folders"]
    assert (hung["path"], hung["state"]) == (f"{tmp_path}/hung", None)
    assert [one["state"]["error"] for one in others] == ["", ""]
