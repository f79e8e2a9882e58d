"""`ncheck bundle`: what is packed gives the same verdict elsewhere, without secrets, and small."""

from __future__ import annotations

import json
import zipfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.demo import recorded_cluster
from ncheck.demo.server import lay_out
from ncheck.fleet.anonymous import restored
from ncheck.fleet.archive import save_archive
from ncheck.fleet.bundle import ALL_TEXTS, LARGEST_TEXT
from ncheck.fleet.recording import load, save
from ncheck.history.entry import Entry, Figure, Kept, Seen
from ncheck.history.store import History
from ncheck.model.evidence import Reply, Status

from tests.recorded.replayed import FIXTURES

HEALTHY = FIXTURES / "healthy-4x8-h100"
PLANTED = "hf_abcdefghijklmnopqrstuvwxyz", "hunter2hunter2", "MIIEowIBAAKCAQEA"
TIMED = '  "seconds"', '  "command"', '  "time"'  # differ by the clock and by the name of what is replayed
SECRETS = (
    f"export HF_TOKEN={PLANTED[0]}\nfetch https://me:{PLANTED[1]}@host/x\ntrain.py --password {PLANTED[1]}\n"
    f"-----BEGIN RSA PRIVATE KEY-----\n{PLANTED[2]}\n-----END RSA PRIVATE KEY-----\n"
)


def ncheck(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    code = main([str(word) for word in words])
    return code, *capfd.readouterr()


def test_a_bundle_is_judged_as_its_recording_and_has_no_planted_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = {"secrets": Reply(Status.OK, stdout=SECRETS, exit_status=0)}
    nodes = [replace(one, replies={**one.replies, **said}) for one in load(HEALTHY)]
    save(tmp_path / "run", nodes)
    save_archive(str(tmp_path / "job.zip"), nodes, None)
    (tmp_path / "logs").mkdir()
    line = "step 1 loss 2.0\n"
    (tmp_path / "logs" / "rank0.log").write_text(SECRETS + line * LARGEST_TEXT + SECRETS)
    (tmp_path / "logs" / "link.log").symlink_to("/etc/passwd")
    (tmp_path / "topo.xml").write_text("<system/>\n" + SECRETS)
    packed = tmp_path / "bundle.zip"
    words = ("--job", tmp_path / "job.zip", "--logs", tmp_path / "logs", "--topology", tmp_path / "topo.xml")
    code, _, err = ncheck(capfd, "bundle", tmp_path / "run", *words, "-o", packed)
    inside = "recording (4 files), job (5 files), logs (1 files), topology (1 files)"
    assert (code, err.partition(" MB: ")[2]) == (
        0, f"{inside}; host names and addresses are in it: look at it before you send it\n"
    )  # fmt: skip
    with zipfile.ZipFile(packed) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert [name for name, content in held.items() for one in PLANTED if one.encode() in content] == []
    log = held["logs/00000-rank0.log"]
    assert (log.count(b" bytes cut here]\n"), len(log) <= LARGEST_TEXT + 100) == (1, True)
    assert ncheck(capfd, "bundle", tmp_path / "run", "-o", packed)[0] == 2  # nothing is overwritten

    def judged(path: Path) -> tuple[object, list[str]]:
        code, out, _ = ncheck(capfd, "replay", path, "-o", "json")
        return code, [line for line in out.splitlines() if not line.startswith(TIMED)]

    assert judged(packed) == judged(tmp_path / "run")
    assert ncheck(capfd, "triage", packed)[:2] == ncheck(capfd, "triage", tmp_path / "job.zip")[:2]


def test_an_archive_that_is_no_bundle_or_has_no_job_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_archive(str(tmp_path / "job.zip"), load(HEALTHY), None)
    assert ncheck(capfd, "bundle", HEALTHY, "-o", tmp_path / "run.zip")[0] == 0
    code, _, err = ncheck(capfd, "replay", tmp_path / "job.zip")
    assert (code, "not a bundle" in err) == (2, True)
    code, _, err = ncheck(capfd, "triage", tmp_path / "run.zip")
    assert (code, "no job is in this bundle" in err) == (2, True)


def test_nodes_are_examined_and_their_answers_packed_with_the_exit_code_of_the_check(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        nodes, config = lay_out(recorded_cluster("all-refused"), tmp_path, stack)
        words = ("bundle", nodes, "-F", config, "--transport", "paramiko", "-o", tmp_path / "b.zip")
        code, out, err = ncheck(capfd, *words)
    headline = out.splitlines()[0]
    assert (code, err.splitlines()[-1].partition("kB: ")[2]) == (
        1, "recording (4 files); host names and addresses are in it: look at it before you send it"
    )  # fmt: skip
    code, again, _ = ncheck(capfd, "replay", tmp_path / "b.zip")
    assert (code, again.splitlines()[0]) == (1, headline)


def test_the_logs_of_512_ranks_are_cut_to_what_an_archive_may_have(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    for rank in range(512):
        (tmp_path / "logs" / f"rank{rank}.log").write_text(("x" * 1000 + "\n") * 40)
    code, _, err = ncheck(capfd, "bundle", "--logs", tmp_path / "logs", "-o", tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        sizes = [one.file_size for one in archive.infolist()[1:]]
        notes = json.loads(archive.read("MANIFEST.json"))["notes"]
    assert (code, len(sizes), len(notes)) == (0, 512, 512)
    assert err.splitlines()[7:9] == [
        f"ncheck: {notes[7]}", "ncheck: 504 more notes as these are in MANIFEST.json of the archive"
    ]  # fmt: skip
    assert 0.9 * ALL_TEXTS < sum(sizes) < ALL_TEXTS


def run_of(time: float, bad: str, summary: str, *nodes: str) -> Entry:
    found = Seen("NC506", "gpu-xid-reported", "error", (bad,), summary, hardware=True)
    changed = Kept(bad, "gpu", "0000:18:00.0", f"GPU-c2e1b369-0f0e-5ee5-be27-39430b26c3f{time:.0f}", "1652221034567")
    figures = tuple(Figure(of, "", "all-reduce", 361.5, "GB/s") for of in (nodes, (*nodes, "gpu09")))
    states = {"good": nodes, "bad": (bad,)}
    return Entry(time, "check", "head01", "0.2.0", 1, states, ("NC506",), (found,), (changed,), figures)


def test_of_a_history_only_what_is_about_these_nodes_is_packed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    history = History(str(tmp_path / "cluster.db"))
    for entry in (
        run_of(1, "gpu02", f"Xid 79, HF_TOKEN={PLANTED[0]}", "gpu01"),
        run_of(2, "gpu09", "Xid 79", "gpu08"),
        run_of(3, "gpu01", "as on gpu09", "gpu02"),
    ):
        history.add(entry, 9_999_999)

    def packed(name: str, *words: str) -> str:
        kept = ("--history", history.path, "-o", tmp_path / name)
        assert ncheck(capfd, "bundle", HEALTHY, *kept, *words)[0] == 0
        with zipfile.ZipFile(tmp_path / name) as archive:
            return archive.read("history/history.json").decode()

    plain, other = packed("a.zip"), packed("b.zip", "--anonymous")
    document = json.loads(plain)
    assert [(run["time"], [one["nodes"] for one in run["figures"]]) for run in document["runs"]] == [
        (1.0, [["gpu01"]]), (3.0, [["gpu02"]])
    ]  # fmt: skip
    assert {node["node"]: [one["seen"]["summary"] for one in node["incidents"]] for node in document["nodes"]} == {
        "gpu01": ["gpu-xid-reported"], "gpu02": ["Xid 79, HF_TOKEN=<redacted>"]
    }  # fmt: skip
    assert [word for word in ("gpu08", "gpu09", *PLANTED) if word in plain] == []
    assert [word for word in ("gpu0", "head01", "GPU-c2e1b369", "16522") if word in other] == []
    assert restored(other, (tmp_path / "b.names.json").read_text()) == plain
    code, _, err = ncheck(capfd, "bundle", "--logs", tmp_path, "--history", history.path, "-o", tmp_path / "c.zip")
    assert (code, "--history: name a recording, nodes or --job too" in err) == (2, True)


@pytest.mark.parametrize(("words", "reason"), [
    ((HEALTHY, "-l", "root"), "--user is for nodes that are examined, and none are named"),
    (("--job", "hang.zip", "--width", "4"), "--width is for nodes that are examined, and none are named"),
    ((HEALTHY, HEALTHY), "only one recording or nodes file is allowed: unexpected argument "),
    (("a.txt", "--restore", "n.json"), "--restore prints one text, and packs nothing: leave out all else"),
    ((), "name what to pack: a recording, nodes, --job FILE, --logs DIR or --topology FILE"),
    (("none.txt",), "no such file or command: 'none.txt'"),
])  # fmt: skip
def test_words_that_make_no_bundle_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[object, ...], reason: str
) -> None:
    code, out, err = ncheck(capfd, "bundle", *words, "-o", tmp_path / "b.zip")
    assert (code, out, err.startswith(f"ncheck: {reason}"), [*tmp_path.iterdir()]) == (2, "", True, [])


def test_an_answer_is_printed_under_the_real_names_and_without_control_characters(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text("gpu01.acmecorp.com\n")
    code, _, _ = ncheck(capfd, "bundle", "--logs", tmp_path / "a.log", "--anonymous", "-o", tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        other = archive.read(next(name for name in archive.namelist() if name.startswith("logs/"))).decode()
    (tmp_path / "answer.txt").write_text(f"\tlook at {other}\x1b[31mred\x07\n")
    result = ncheck(capfd, "bundle", tmp_path / "answer.txt", "--restore", tmp_path / "b.names.json")
    assert (code, result) == (0, (0, "\tlook at gpu01.acmecorp.com\n?[31mred?\n", ""))
