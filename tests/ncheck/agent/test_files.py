"""Files and trees: text, links, folders, and why not."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from ncheck.agent.files import LARGEST_FILE, matching, open_regular, read_file, read_tree
from ncheck.agent.sources import Sources
from ncheck.facts.learning import sources_for
from ncheck.model.evidence import Tree

from tests.every_fact import every_fact


def test_a_tree_tells_text_links_folders_and_failures_apart(tmp_path: Path) -> None:
    (tmp_path / "port").mkdir()
    (tmp_path / "port" / "state").write_text("4: ACTIVE\n")
    (tmp_path / "device").symlink_to(tmp_path / "port")
    assert read_tree([f"{tmp_path}/*", f"{tmp_path}/port/*", "/proc/self/mem"])["value"] == {
        f"{tmp_path}/device": f"{tmp_path}/port",
        f"{tmp_path}/port": None,
        f"{tmp_path}/port/state": "4: ACTIVE\n",
        "/proc/self/mem": {"error": "Input/output error"},
    }


def test_a_pattern_matches_what_it_does_in_the_standard_library(tmp_path: Path) -> None:
    for name in ("eth0", "eth10", "ib0", ".hidden", "e", "a*b", "port1", "port12", "x[1]"):
        (tmp_path / name / "device").mkdir(parents=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    parts = ("*", "eth*", "*0", "e*h*0", "e*e", "port[0-9]", "[ei]*", "[!e]*[0-9]", "a*b", "dangling", "none", "file")
    patterns = [f"{tmp_path}/{part}{rest}" for part in parts for rest in ("", "/device", "/dev*", "/*/x")]
    patterns += [
        pattern for source in sources_for(every_fact()) if isinstance(source, Tree) for pattern in source.patterns
    ]
    assert {one: matching(one) for one in patterns} == {one: sorted(glob.glob(one)) for one in patterns}  # noqa: PTH207
    assert matching("/*", f"{tmp_path}/a*b") == [f"{tmp_path}/a*b/device"]


def test_no_match_is_an_empty_tree() -> None:
    assert read_tree(["/no/such/*"]) == {"status": "ok", "value": {}, "truncated": False}


def test_a_file_that_is_too_long_says_so() -> None:
    reply = read_file("/dev/zero")
    assert (reply["truncated"], len(reply["value"])) == (True, LARGEST_FILE)


@pytest.mark.parametrize(
    ("path", "status"), [("/no/such/file", "missing"), ("/proc/self/mem", "failed"), ("/proc", "failed")]
)
def test_a_file_that_cannot_be_read_says_why(path: str, status: str) -> None:
    reply = Sources({}).respond({"kind": "file", "path": path})
    assert reply["status"] == status
    assert reply["reason"]


@pytest.mark.parametrize(
    "source",
    [{}, {"kind": "no-such"}, {"kind": "command"}, {"kind": "answer", "name": "no-such"}, {"kind": "tree"}],
)
def test_a_question_that_makes_no_sense_is_a_failed_reply(source: dict[str, str]) -> None:
    assert Sources({}).respond(source)["status"] == "failed"


def test_only_a_regular_file_is_opened_and_a_link_only_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    with os.fdopen(open_regular(str(tmp_path / "link"))) as file:
        assert file.read() == "text"
    folder = os.open(tmp_path, os.O_RDONLY)
    with os.fdopen(open_regular("file", dir_fd=folder, follow=False)) as file:
        assert file.read() == "text"
    os.close(folder)
    for name in ("fifo", "link"):
        with pytest.raises(OSError, match="no regular file"):
            open_regular(str(tmp_path / name), follow=False)
