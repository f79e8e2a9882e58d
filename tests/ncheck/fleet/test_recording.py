"""Recordings: what is saved comes back word for word, and what is no recording is refused in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from ncheck.errors import RecordingError
from ncheck.fleet import recording
from ncheck.fleet.recording import MAX_FILE, MAX_VALUES, Recorder, Recording, decode, encode, load, save
from ncheck.model.evidence import Cause, Evidence, Greeting, Login, Note, Reply, Status

if TYPE_CHECKING:
    from pathlib import Path

    from ncheck.model.evidence import JsonValue

REACHED = Evidence(
    node="gpu01",
    login=Login(reached=True, transport="paramiko", address="10.0.0.1", port=22, offered_keys=("ED25519 SHA256:x",)),
    greeting=Greeting("gpu01", "boot", "net:[1]", 0, "/usr/bin/python3", "hello\x1b[31m"),
    replies={
        "command:ibstat": Reply(Status.OK, exit_status=0, stdout="tab\t\udcff\n", stderr="é", seconds=0.25),
        "file:/x": Reply(Status.OK, value={}),
        "answer:a": Reply(Status.TIMEOUT, reason="5 s", value=[1, 2.5, None, {"deep": [True]}], truncated=True),
    },
    notes={
        "answer:b": Note("it has nothing of the kind"),
        "answer:c#3": Note("no time", failed=True, remedy="probe", asked={"nodes": ["gpu01"]}),
    },
    clock_offset=-0.5,
    clock_uncertainty=0.001,
    places=("nodes.txt:1", "nodes.txt:9"),
    slots=8,
)
LOST = Evidence(node="gpu02", login=Login(reached=False, cause=Cause.FILTERED, detail="no answer"))


def test_what_was_saved_comes_back_whole_in_the_order_of_the_listing_and_says_that_it_is_recorded(
    tmp_path: Path,
) -> None:
    nodes = (replace(REACHED, node="z"), LOST, replace(REACHED, node="a"))
    save(tmp_path / "new" / "deep", nodes)
    assert load(tmp_path / "new" / "deep") == tuple(replace(node, recorded=True) for node in nodes)


def test_only_the_owner_may_read_a_recording(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir(mode=0o755)
    save(tmp_path / "r", (REACHED, LOST))
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "r").iterdir()} == {
        "gpu01.json": 0o600,
        "gpu02.json": 0o600,
    }


def test_nodes_are_there_as_they_come_and_the_order_is_still_the_listings(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, ("gpu01", "gpu02"))
    assert recorder.save(LOST) == tmp_path / "gpu02.json"
    with pytest.raises(RecordingError, match="1 nodes are there of a recording of 2"):
        load(tmp_path)
    recorder.save(REACHED)
    assert [node.node for node in load(tmp_path)] == ["gpu01", "gpu02"]


ODD = (
    "../../etc/passwd", "/abs", "a/b", "..", ".hidden", "a b", "x\ny", "\x1b[31m", "-rf", "fe80::1%eth0", "[::1]:22",
    "ü.example", "n" * 300, "n" * 299 + "m", "A", "a", "$(reboot)", "",
)  # fmt: skip


def test_odd_host_names_make_plain_file_names_and_come_back_as_they_were(tmp_path: Path) -> None:
    nodes = tuple(replace(LOST, node=name) for name in ODD)
    save(tmp_path / "r", nodes)
    assert [node.node for node in load(tmp_path / "r")] == list(ODD)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    names = sorted(path.name for path in (tmp_path / "r").iterdir())
    assert len(names) == len(ODD)
    assert all(name.isascii() and name.isprintable() and " " not in name and len(name) < 140 for name in names)


def test_a_host_listed_twice_is_saved_twice(tmp_path: Path) -> None:
    save(tmp_path, (REACHED, LOST, replace(REACHED, slots=4)))
    assert [(node.node, node.slots) for node in load(tmp_path)] == [("gpu01", 8), ("gpu02", None), ("gpu01", 4)]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(RecordingError, match="not empty; name a new folder"):
        Recorder(tmp_path, ("gpu01",))
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_file_in_the_way_is_a_line_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecordingError, match="File exists"):
        Recorder(tmp_path / "file", ("gpu01",))
    with pytest.raises(RecordingError, match="Not a directory"):
        Recorder(tmp_path / "file" / "below", ("gpu01",))


def test_no_secret_of_any_field_reaches_the_disk(tmp_path: Path) -> None:
    secret = "hunter2"  # noqa: S105  the word that must not be found
    save(
        tmp_path / "r",
        [
            replace(
                REACHED,
                login=Login(reached=True, detail=f"password={secret}", fix=f"curl https://u:{secret}@h"),
                greeting=Greeting(noise=f"export API_TOKEN={secret}"),
                replies={
                    "command:env": Reply(Status.OK, stdout=f"A=1\nMY_SECRET={secret} and more {secret}\nB=2"),
                    "command:x": Reply(
                        Status.FAILED, reason=f"Authorization: Bearer {secret}", stderr=f"--token {secret}"
                    ),
                    "answer:v": Reply(
                        Status.OK, value={"variables": {"PGPASSWORD": secret}, "argv": [f"TOKEN={secret}"]}
                    ),
                    f"command:x --password {secret}": Reply(Status.OK),
                },
            )
        ],
    )
    text = (tmp_path / "r" / "gpu01.json").read_text()
    assert secret not in text
    assert load(tmp_path / "r")[0].replies["command:env"].stdout == "A=1\nMY_SECRET=<redacted>\nB=2"


def document(**evidence: object) -> dict[str, Any]:
    """Return a file's content, to be spoiled by a test."""
    made: dict[str, Any] = json.loads(encode(REACHED, 0, 1))
    made["evidence"].update(evidence)
    return made


def refused(content: object) -> str:
    """Return the words with which a file is refused."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(RecordingError) as caught:
        decode(raw, "gpu01.json")
    words = str(caught.value)
    assert words.startswith("gpu01.json: ")
    assert "\n" not in words
    return words.removeprefix("gpu01.json: ")


WRONG = {
    "node": 5, "login": {"reached": 1}, "greeting": {"user_id": "0"}, "slots": "8", "clock_offset": "1",
    "places": "nodes.txt", "replies": [], "clock_uncertainty": True,
}  # fmt: skip


@pytest.mark.parametrize("field", WRONG)
def test_a_value_of_another_type_is_refused_and_named(field: str) -> None:
    assert field in refused(document(**{field: WRONG[field]}))


@pytest.mark.parametrize(
    "reply",
    [
        {}, {"status": "fine"}, {"status": "ok", "stdout": 5}, {"status": "ok", "exit_status": 1.5}, "ok", None,
        {"status": "ok", "surprise": 1}, {"status": "ok", "truncated": 0}, {"status": "ok", "seconds": "1"},
    ],
)  # fmt: skip
def test_a_reply_that_is_none_is_refused(reply: object) -> None:
    assert refused(document(replies={"x": reply}))


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400, "NaN"])
def test_a_number_that_no_clock_can_show_is_refused(number: str) -> None:
    text = encode(REACHED, 0, 1).replace('"clock_offset": -0.5', f'"clock_offset": {number}')
    assert number in text
    with pytest.raises(RecordingError, match="gpu01"):
        decode(text.encode(), "gpu01.json")


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}")])
def test_a_value_nested_deeper_than_any_is_refused(opening: str, closing: str) -> None:
    text = encode(REACHED, 0, 1).replace("null", opening * 600 + "1" + closing * 600, 1)
    with pytest.raises(RecordingError, match="nested deeper"):
        decode(text.encode(), "gpu01.json")


def test_fields_of_no_known_name_are_refused_wherever_they_stand() -> None:
    assert refused({**document(), "extra": 1}) == "unknown field 'extra'"
    assert refused(document(extra=1)) == "unknown field 'extra'"
    assert refused(document(recorded=False)) == "unknown field 'recorded'"
    assert refused(document(login={"reached": True, "extra": 1})) == "login: unknown field 'extra'"
    assert refused(document(login={"reached": True, "offered_keys": "abc"})) == "login.offered_keys: not a list"


def test_a_truncated_a_foreign_and_a_newer_file_are_told_apart() -> None:
    whole = encode(REACHED, 0, 1).encode()
    for end in (0, 1, 100, len(whole) // 2, len(whole) - 3):
        assert refused(whole[:end]).startswith("truncated or not a recording")
    assert refused(b"\xff\xfe\x00").startswith("truncated or not a recording")
    assert refused(b"[" * 100_000) == "nested deeper than any recording"
    assert refused(whole.replace(b"-0.5", b"NaN")).startswith("truncated or not a recording (NaN")
    foreigners: tuple[object, ...] = ([], {}, {"a": 1}, None, 5, {"ncheck_recording": "1"}, {"ncheck_recording": True})
    for foreign in foreigners:
        assert refused(foreign) == "not a recording of ncheck"
    way_out = "install the ncheck that wrote it, or record it again"
    for number, why in ((1, "which this ncheck no longer reads"), (4, "newer than this ncheck reads")):
        assert refused({**document(), "ncheck_recording": number}) == f"format {number}, {why}; {way_out}"


STEP: dict[str, JsonValue] = {"round": 7, "stage": "all", "method": "nccl", "group": ["gpu01"]}
PROBED = replace(
    REACHED,
    replies={"answer:step#7": Reply(Status.OK, value={"means": 1}, asked=STEP, seconds=0.5)},
    notes={
        "answer:step": Note("one node alone"), "answer:step#8": Note("no time", asked={**STEP, "round": 8}),
        "answer:meeting": Note("no time", asked={"method": "gloo"}), "answer:other": Note("no", asked={"means": "x"}),
    },
)  # fmt: skip


def _anew(text: str, **form: Any) -> str:
    return json.dumps(json.loads(text), **form)


@pytest.mark.parametrize("written", [
    lambda text: text, _anew, partial(_anew, separators=(",", ":")), partial(_anew, sort_keys=True, indent=1),
    lambda text: text.replace('recording": 2', 'recording":  2', 1),
])  # fmt: skip
def test_a_recording_of_format_2_calls_a_step_a_turn_and_a_method_means(written: Callable[[str], str]) -> None:
    text = encode(PROBED, 0, 1).replace(f'"ncheck_recording": {recording.FORMAT}', '"ncheck_recording": 2')
    text = text.replace("answer:step", "answer:turn").replace('"method": ', '"means": ')
    assert decode(written(text).encode(), "file") == (0, 1, replace(PROBED, recorded=True))


@pytest.mark.parametrize(("position", "count"), [(1, 1), (-1, 1), ("0", 1), (0, None), (0, 10**9), (True, 2)])
def test_a_place_that_cannot_be_is_refused(position: object, count: object) -> None:
    assert refused({**document(), "position": position, "of": count}).startswith("its position")


def test_a_folder_that_is_no_recording_is_a_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("gpu01\n")
    for name, words in {
        "empty": "no recording is in it",
        "file": "not a folder; a recording is a folder with one file per node",
        "none": "No such file",
    }.items():
        with pytest.raises(RecordingError, match=f"{name}: .*{words}"):
            load(tmp_path / name)


def test_a_folder_of_recordings_is_answered_with_one_to_name(tmp_path: Path) -> None:
    save(tmp_path / "monday", (REACHED,))
    with pytest.raises(RecordingError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{tmp_path}: no recording is in it; name a folder beneath it, as {tmp_path / 'monday'}"


def test_a_missing_node_is_never_a_smaller_healthier_cluster(tmp_path: Path) -> None:
    save(tmp_path, (LOST, REACHED))
    (tmp_path / "gpu02.json").unlink()
    with pytest.raises(RecordingError, match="1 nodes are there of a recording of 2"):
        load(tmp_path)


def test_two_recordings_in_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(encode(REACHED, 0, 1))
    (tmp_path / "b.json").write_text(encode(LOST, 0, 1))
    with pytest.raises(RecordingError, match=r"b\.json: is node 1 of its recording, and so is gpu01"):
        load(tmp_path)


def test_a_file_larger_than_any_recording_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(RecordingError, match="larger than any node's recording"):
        load(tmp_path)


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/mem", "nowhere", "x.json", "."])
def test_a_link_that_leads_to_no_file_is_a_line(target: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").symlink_to(target)
    with pytest.raises(RecordingError, match=r"x\.json: "):
        load(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(RecordingError, match=r"x\.json: not a file"):
        load(tmp_path)


def test_many_small_values_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(RecordingError, match="more values than any node's recording"):
        decode(b"[" + b"[]," * (MAX_VALUES // 2) + b"0]", "gpu01.json")


@pytest.mark.parametrize(("limit", "most"), [("MAX_FOLDER", 100), ("MAX_VALUES_OF_ALL", 20)])
def test_a_folder_larger_than_any_recording_is_not_read_to_its_end(
    limit: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, (REACHED, LOST))
    second = tmp_path / "gpu02.json"
    second.write_text(second.read_text().partition("\n")[0] + "\nnot read")
    monkeypatch.setattr(recording, limit, most)
    with pytest.raises(RecordingError, match=r"gpu01\.json: with the files before it, larger than any recording"):
        load(tmp_path)


def test_heads_are_bounded_too_and_hold_no_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, (replace(REACHED, notes={"answer:x": Note("not needed")}), LOST))
    assert [head.notes for head in Recording(tmp_path).heads] == [{}, {}]
    monkeypatch.setattr(recording, "MAX_FOLDER", 100)
    with pytest.raises(RecordingError, match=r"gpu01\.json: with the files before it, larger than any recording"):
        Recording(tmp_path)


def test_a_folder_of_more_files_than_any_recording_is_not_listed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    monkeypatch.setattr(recording, "_MOST_ENTRIES", 3)
    with pytest.raises(RecordingError, match="more than 3 files; name the folder of a recording"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (replace(LOST, slots=0), "has 0 slots"),
        (replace(LOST, slots=10**6), "has 1000000 slots"),
        (replace(LOST, login=replace(LOST.login, port=65536)), "has the port 65536"),
        (replace(LOST, login=replace(LOST.login, port=-1)), "has the port -1"),
        (replace(LOST, login=replace(LOST.login, user="-oProxyCommand=id")), "has the user '-oProxyCommand=id'"),
        (replace(LOST, login=replace(LOST.login, user="a\x1b")), "has the user 'a?'"),
        (replace(LOST, login=replace(LOST.login, address="-x")), "has the address '-x'"),
        (replace(LOST, login=replace(LOST.login, address="$(id)")), "has the address '$(id)'"),
    ],
)
def test_what_no_listing_and_no_login_can_have_is_refused(evidence: Evidence, words: str, tmp_path: Path) -> None:
    save(tmp_path, (evidence,))
    with pytest.raises(RecordingError) as caught:
        list(Recording(tmp_path).evidence())
    assert str(caught.value) == f"{tmp_path}: gpu02 {words}"


def test_a_file_that_another_program_wrote_anew_is_read_as_before(tmp_path: Path) -> None:
    save(tmp_path, (LOST, replace(LOST, node="gpu03")))
    before = load(tmp_path)
    for path in tmp_path.iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    assert load(tmp_path) == before


def test_a_file_that_changes_between_its_head_and_its_answers_is_refused(tmp_path: Path) -> None:
    save(tmp_path, (LOST, replace(LOST, node="gpu03")))
    recording = Recording(tmp_path)
    (tmp_path / "gpu02.json").write_bytes((tmp_path / "gpu03.json").read_bytes())
    with pytest.raises(RecordingError) as caught:
        list(recording.evidence())
    assert str(caught.value) == f"{tmp_path / 'gpu02.json'}: it changed while it was read; try again"


def test_a_whole_number_has_64_bits() -> None:
    assert "slots" in refused(document(slots=2**64))
    assert "port" in refused(document(login={"reached": True, "port": -(2**64)}))


def test_a_folder_named_like_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    with pytest.raises(RecordingError, match=r"x\.json: not a file"):
        load(tmp_path)


def test_an_unfinished_file_of_a_run_that_was_killed_is_not_read(tmp_path: Path) -> None:
    save(tmp_path, (REACHED,))
    (tmp_path / ".0123.part").write_text("{")
    assert load(tmp_path) == (replace(REACHED, recorded=True),)
