"""Logs from files, folders, pipes and standard input, packed or not; what cannot be read is named with its reason."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.errors import NcheckError
from ncheck.triage import sources as module
from ncheck.triage.logs import LogReport, examine_logs
from ncheck.triage.sources import Unreadable

LOG = b"MemoryError\n"


def examine(*paths: Path | str, stdin: bytes = b"") -> LogReport:
    return examine_logs([str(path) for path in paths], io.BytesIO(stdin))


def kinds(report: LogReport) -> list[str]:
    return [found.kind for found in report.diagnoses]


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout


needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd program is not installed")


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, bz2.compress, pytest.param(zstd, marks=needs_zstd)],
    ids=["gzip", "xz", "bzip2", "zstd"],
)  # fmt: skip
def test_a_packed_log_is_unpacked_whatever_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(pack(b"a line\n" * 100_000 + LOG))
    report = examine(path)
    assert (kinds(report), report.lines, report.unread) == (["memory"], 100_001, ())


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress], ids=["gzip", "xz", "bzip2"])
def test_packed_parts_in_one_file_are_read_to_the_last(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(pack(b"a line\n") + pack(LOG))
    assert kinds(examine(path)) == ["memory"]


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, pytest.param(zstd, marks=needs_zstd)], ids=["gzip", "xz", "zstd"]
)
def test_what_comes_before_the_damage_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "job.log"
    whole = pack(LOG + os.urandom(300_000).hex().encode())
    path.write_bytes(whole[:-16] + bytes(byte ^ 0x55 for byte in whole[-16:]))
    report = examine(path)
    assert kinds(report) == ["memory"]
    assert [missing.name for missing in report.unread] == [str(path)]
    assert re.search("damaged|the end is missing", report.unread[0].reason)


@pytest.mark.parametrize("pack", [gzip.compress, pytest.param(zstd, marks=needs_zstd)], ids=["gzip", "zstd"])
def test_the_file_that_was_opened_is_read_whatever_its_name_leads_to_by_now(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path, secret = tmp_path / "job.log", tmp_path / "secret"
    path.write_bytes(pack(LOG))
    secret.write_bytes(pack(b"Bus error\n" * 3))

    def allowed_and_then_replaced(_real: str) -> str:
        path.unlink()
        path.symlink_to(secret)
        return ""

    report = examine_logs([str(path)], io.BytesIO(), allowed_and_then_replaced)
    assert (kinds(report), report.lines, report.unread) == (["memory"], 1, ())


def test_zstd_needs_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "job.log.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 99)
    monkeypatch.setenv("PATH", "")
    reason = "is packed with zstd, which Python cannot unpack here: install the zstd program"
    assert examine(path).unread == (Unreadable(str(path), reason),)


def test_a_bomb_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(LOG + b"a line\n" * 10**6))
    monkeypatch.setattr(module, "MOST_UNPACKED", 2**20)
    report = examine(path)
    assert kinds(report) == ["memory"]
    assert report.unread == (Unreadable(str(path), "gzip: only the first 1 MiB of its content were read"),)


def test_a_folder_is_read_with_its_folders_and_without_what_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "attempt_0" / "3").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("attempt_0/3/stderr.log", "train.py", ".git/x.log", "model.safetensors"):
        (tmp_path / name).write_bytes(LOG)
    (tmp_path / "core").write_bytes(bytes(range(256)) * 99)
    (tmp_path / "loop").symlink_to(tmp_path)
    report = examine(tmp_path)
    assert [(item.file, item.line) for item in report.diagnoses[0].evidence] == [
        (str(tmp_path / "attempt_0/3/stderr.log"), 1)
    ]
    assert (report.diagnoses[0].ranks, report.unread) == ((3,), ())


def test_folders_with_too_many_files_are_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"{number}.log").write_bytes(b"a line\n")
    monkeypatch.setattr(module, "MOST_FILES", 3)
    report = examine(tmp_path)
    assert report.files == 3
    assert report.unread == (Unreadable(str(tmp_path), "more than 3 files: the others were not read"),)


def test_standard_input_is_read_packed_or_not() -> None:
    for data in (LOG, gzip.compress(LOG)):
        (found,) = examine("-", stdin=data).diagnoses
        assert (found.kind, found.evidence[0].file) == ("memory", "-")
    assert examine("-", stdin=zstd(LOG) if shutil.which("zstd") else b"\x28\xb5\x2f\xfdxx").unread == (
        Unreadable("-", "is packed with zstd, which Python cannot unpack here: pipe it through zstdcat"),
    )


def test_what_is_no_log_is_named_if_the_user_named_it(tmp_path: Path) -> None:
    binary = tmp_path / "model.bin"
    binary.write_bytes(bytes(range(256)) * 99)
    report = examine(binary, "/dev/null")
    assert report.unread == (
        Unreadable(str(binary), "is not text"), Unreadable("/dev/null", "is a device, not a log"),
    )  # fmt: skip
    assert (report.diagnoses, report.healthy, report.summary) == ((), False, "no log was read")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        (missing,) = examine(tmp_path / "socket").unread
        assert missing.name == str(tmp_path / "socket")


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NcheckError, match="no such file or folder"):
        examine(tmp_path / "none")


def test_a_pipe_is_read_to_its_end_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert examine(pipe).unread == (Unreadable(str(pipe), "is a pipe that no process writes to"),)
    both_ends = os.open(pipe, os.O_RDWR)
    os.write(both_ends, LOG * 600)
    (source,) = module.sources([str(pipe)], io.BytesIO())
    assert isinstance(source, module.LogSource)
    with source.open() as chunks:
        first = next(chunks)
        os.close(both_ends)
        assert first + b"".join(chunks) == LOG * 600


NOBODY = 65534


def test_a_log_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(LOG)
    assert examine(path).unread == ()
    path.chmod(0)
    user = os.geteuid()
    os.seteuid(user or NOBODY)  # root may read everything
    try:
        unread = examine(path).unread
    finally:
        os.seteuid(user)
    assert unread == (Unreadable(str(path), "Permission denied"),)


def test_a_file_that_grows_is_read_as_far_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(b"a line\n" * 1000)
    (source,) = module.sources([str(path)], io.BytesIO())
    assert isinstance(source, module.LogSource)
    with source.open() as chunks:
        first = next(chunks)
        with path.open("ab") as grown:
            grown.write(LOG)
        assert len(first) + sum(map(len, chunks)) == 7000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gbk", "gb18030"])
@pytest.mark.parametrize(
    ("line", "kind"), [("bash: ./train.sh: 权限不够", "permission"), ("段错误 (核心已转储)", "segfault")]
)
def test_a_log_is_read_in_the_encodings_of_shells(tmp_path: Path, encoding: str, line: str, kind: str) -> None:
    path = tmp_path / "job.log"
    path.write_bytes("\r\n".join((*["step 1 starts at 10:00"] * 9, line, "done", "")).encode(encoding))
    report = examine(path)
    assert (kinds(report), report.diagnoses[0].evidence[0].text, report.lines) == ([kind], line, 11)


def test_a_line_in_another_encoding_does_not_change_the_others(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(
        "进度 ████ 3/4\n".encode() + "已杀死\n".encode("gbk") + b"caf\xe9\xff \x81\n" + "步骤 4\n".encode()
    )
    report = examine(path)
    assert (kinds(report), report.diagnoses[0].evidence[0].line, report.lines) == (["killed"], 2, 4)
