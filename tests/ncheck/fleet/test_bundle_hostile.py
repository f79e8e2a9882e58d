"""`ncheck bundle` and `ncheck replay` of a bundle where somebody else made the files: nothing is followed, unpacked or
filled with what is too large, and no secret of any file is in the archive.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.fleet.bundle import LARGEST_TEXT

from tests.recorded.replayed import FIXTURES

RUN = FIXTURES / "efa-without-plug-in"
SECRET = "Zx81Qq77hunter2Zx81Qq77"  # noqa: S105  a word, to be looked for
NODES = {f"recording/{at:05d}.json": path.read_text() for at, path in enumerate(sorted(RUN.iterdir()))}
MANIFEST = {"MANIFEST.json": "{}"}


def ncheck(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[object, str]:
    code = main([str(word) for word in words])
    return code, capfd.readouterr().err


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def folder_of_links(path: Path) -> None:
    path.mkdir()
    (path / "a.log").write_text("all is well\n")
    link(path / "b.log")
    (path / "c").symlink_to(path)
    os.mkfifo(path / "d.log")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def recording_with(name: str, make: Callable[[Path], None]) -> Callable[[Path], None]:
    def made(path: Path) -> None:
        shutil.copytree(RUN, path)
        (path / name).unlink()
        make(path / name)

    return made


# What is packed: the option, what makes it, and what is said; with the exit code.
INPUTS: dict[str, tuple[str, Callable[[Path], None], int, str]] = {
    "logs with links and a pipe": ("--logs", folder_of_links, 0, "logs: 3 left out: links, pipes, devices"),
    "a pipe for logs": ("--logs", os.mkfifo, 2, "no such file or folder"),
    "a log of a terabyte": ("--logs", huge, 0, "bytes cut from its middle"),
    "a link for a job": ("--job", link, 2, "damaged, or not an archive of ncheck triage"),
    "a pipe for a job": ("--job", os.mkfifo, 2, "not a file"),
    "a pipe for a history": ("--history", os.mkfifo, 2, "name a recording, nodes or --job too"),
    "a pipe for a recording": ("", os.mkfifo, 2, "is a pipe that no process writes to"),
    "a recording with a pipe": ("", recording_with("gpu01.json", os.mkfifo), 2, "not a file"),
    "a recording with a terabyte": ("", recording_with("gpu01.json", huge), 2, "larger than any node's recording"),
    "a recording with a link to no recording": ("", recording_with("gpu01.json", link), 2, "not a recording"),
}  # fmt: skip


@pytest.mark.parametrize("case", INPUTS)
def test_what_somebody_else_put_there_is_left_out_or_refused_at_once(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    option, make, expected, reason = INPUTS[case]
    make(tmp_path / "x")
    words = (option, tmp_path / "x") if option else (tmp_path / "x",)
    code, err = ncheck(capfd, "bundle", *words, "--anonymous", "-o", tmp_path / "b.zip")
    assert (code, reason in err, (tmp_path / "b.zip").exists()) == (expected, True, expected == 0), err
    if expected == 0:
        with zipfile.ZipFile(tmp_path / "b.zip") as archive:
            held = b"".join(map(archive.read, archive.namelist()))
        assert (b"root:x:0" in held, len(held) < 2 * LARGEST_TEXT) == (False, True)


def packed(path: Path, members: Mapping[str, str | bytes], *, kind: int = 0, flags: int = 0) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (kind | 0o777) << 16
            archive.writestr(info, content)
    if flags:  # of each member, in the list at the end: bit 0 is "encrypted"
        data = path.read_bytes().replace(b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0")
        path.write_bytes(data)


FIRST = next(iter(NODES.values()))
# What is replayed: the members of an archive, how they are made, and what is said.
ARCHIVES: dict[str, tuple[Mapping[str, str | bytes], Mapping[str, int], str]] = {
    "a bomb": ({**MANIFEST, "recording/00000.json": b" " * (65 << 20)}, {}, "larger than any archive"),
    "a node twice": ({**MANIFEST, **NODES, "recording/9.json": FIRST}, {}, "is node 1 of its recording, and so"),
    "a node too few": ({**MANIFEST, "recording/00000.json": FIRST}, {}, "is missing"),
    "no recording": ({**MANIFEST, "logs/00000-a": "x"}, {}, "no recording is in this bundle"),
    "no manifest": (NODES, {}, "not a bundle"),
    "a link": ({**MANIFEST, "recording/00000.json": "/etc/passwd"}, {"kind": stat.S_IFLNK}, "not a recording"),
    "an encrypted one": ({**MANIFEST, **NODES}, {"flags": 1}, "encrypted"),
    "brackets": ({**MANIFEST, "recording/00000.json": "[" * 100_000}, {}, "nested deeper"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARCHIVES)
def test_an_archive_that_somebody_else_made_is_refused_and_nothing_of_it_unpacked(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    members, how, reason = ARCHIVES[case]
    packed(tmp_path / "b.zip", members, **how)
    code, err = ncheck(capfd, "replay", tmp_path / "b.zip")
    assert (code, reason in err, [*tmp_path.iterdir()]) == (2, True, [tmp_path / "b.zip"]), err


def test_names_of_members_lead_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in" / "in"
    folder.mkdir(parents=True)
    first, second = NODES.values()
    packed(folder / "b.zip", {**MANIFEST, "recording/../../../evil.json": first, "recording//etc/evil": second})
    code, _ = ncheck(capfd, "replay", folder / "b.zip")
    assert (code, [one for one in tmp_path.rglob("*") if one.is_file()]) == (0, [folder / "b.zip"])


# Where a secret may be, in the file of this name.
PLANTED = {
    "env.log": f"HF_TOKEN={SECRET}\0WANDB_API_KEY={SECRET}\n",
    "declare.log": f"declare -x DB_PASSWORD='{SECRET}'\nexport AWS_SECRET_ACCESS_KEY={SECRET}\n",
    "command.log": f"mpirun -x HF_TOKEN={SECRET} python train.py --api-key {SECRET} --password={SECRET}\n",
    "argv.json": json.dumps({"argv": ["train.py", "--token", SECRET, f"--wandb-key={SECRET}"]}),
    "git.log": f"origin\thttps://oauth2:{SECRET}@git.example.org/x.git (fetch)\nfatal: https://{SECRET}@host/x\n",
    "ncheck.toml": f'[job]\nsetup = "export HF_TOKEN={SECRET}"\nnotify = "https://hooks.slack.com/services/{SECRET}"\n',
    "header.log": f"curl -H 'Authorization: Bearer {SECRET}' -u me:{SECRET} https://host\n",
    "netrc": f"machine api.wandb.ai login user password {SECRET}\n",
    "pod.yaml": f"- name: HF_TOKEN\n  value: {SECRET}\n",
    "trace.json": '{"env": {"HF_TOKEN": "' + SECRET + '"}, "cut',
}  # fmt: skip


@pytest.mark.parametrize("anonymous", [(), ("--anonymous",)])
def test_no_secret_of_any_file_is_packed(
    anonymous: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    for name, text in PLANTED.items():
        (tmp_path / "logs" / name).write_text(text)
    (tmp_path / "logs" / f"run_HF_TOKEN={SECRET}.log").write_text("all is well\n")
    shutil.copytree(RUN, tmp_path / "run")
    path = tmp_path / "run" / "gpu01.json"
    line = json.dumps({"answer:planted": {"status": "ok", "value": {**PLANTED, "argv": ["--token", SECRET]}}})[1:-1]
    path.write_text(path.read_text().replace('"replies": {\n', '"replies": {\n' + line + ",\n"))
    words = (tmp_path / "run", "--logs", tmp_path / "logs", *anonymous, "-o", tmp_path / "b.zip")
    assert ncheck(capfd, "bundle", *words)[0] == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    assert [name for name, text in held.items() if SECRET in name + text] == []
    assert sum(name.startswith("logs/") for name in held) == len(PLANTED) + (1 if not anonymous else 0)
    if anonymous:
        assert SECRET not in (tmp_path / "b.names.json").read_text()
