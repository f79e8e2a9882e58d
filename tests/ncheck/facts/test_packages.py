"""The packages of the job's interpreter: from real metadata to the fact."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import packages as agent_packages
from ncheck.agent.answers.packages import answer
from ncheck.agent.job import JobSetup
from ncheck.agent.sources import Sources
from ncheck.facts.packages import PACKAGES, Package, PackagesFacts, packages
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent

Answered = Callable[[Mapping[Source, Reply]], Evidence]


def test_metadata_is_read_as_pip_wrote_it_and_nothing_is_imported(tmp_path: Path, answered: Answered) -> None:
    urls: dict[str, dict[str, Any]] = {
        "Zq_vcs-1.0": {"url": "https://token@github.com/a/b", "vcs_info": {"commit_id": "97ff6cfd9c86c5c09d"}},
        "zq.edit-2.0": {"url": "file:///home/ann/secret", "dir_info": {"editable": True}},
        "zqplain-3.0+cu121": {},
        "~qbroken-1.0": {},
    }  # fmt: skip
    for name, url in urls.items():
        (tmp_path / f"{name}.dist-info").mkdir()
        if url:
            (tmp_path / f"{name}.dist-info" / "direct_url.json").write_text(json.dumps(url))
    (tmp_path / "zqold.egg-info").mkdir()
    (tmp_path / "zqold.egg-info" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: zqold\nVersion: 0.1\n")
    (tmp_path / "zqplain.py").write_text("raise SystemExit")
    said = answer(interpreter(str(tmp_path)), None, 60.0)
    assert "token" not in json.dumps(said)
    fact = packages(answered({PACKAGES: Reply(Status.OK, value=said)}))
    assert isinstance(fact, PackagesFacts)
    assert {name: package for name, package in fact.packages.items() if name.startswith(("zq", "~", "qb"))} == {
        "zq-vcs": Package("1.0", "commit 97ff6cfd9c86"), "zq-edit": Package("2.0", "editable"),
        "zqplain": Package("3.0+cu121"), "zqold": Package("0.1"),
    }  # fmt: skip
    assert fact.markers["python_version"] == f"{sys.version_info[0]}.{sys.version_info[1]}"


def interpreter(path: str) -> Sources:
    """Return the sources of a node whose Python looks for packages there, too."""
    sources = Sources()
    sources.job = JobSetup({"python": sys.executable}, {**os.environ, "PYTHONPATH": path})
    sources.job.enter(60.0)
    return sources


def test_a_folder_of_packages_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match=r"did not list its packages: .*Too many levels of symbolic links"):
        answer(interpreter(f"{tmp_path}/gone:{tmp_path}/loop"), None, 60.0)


def test_more_packages_than_one_answer_holds_are_no_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
    monkeypatch.setattr(agent_packages, "MOST", 2)
    with pytest.raises(OSError, match="did not list its packages: more than 2 packages"):
        answer(interpreter(str(tmp_path)), None, 60.0)


def test_a_name_or_version_that_no_pip_has_is_left_out(answered: Answered) -> None:
    said: Any = {"a": ["1", ""], "b;reboot": ["1", ""], "c": ["$(id)", ""], "d": ["1", "commit ;"]}
    fact = packages(answered({PACKAGES: Reply(Status.OK, value={"packages": said, "markers": {}})}))
    assert fact == PackagesFacts({"a": Package("1")}, {})


@pytest.mark.parametrize("row", [[], ["1"], ["1", "", ""]])
def test_a_row_of_another_length_is_no_package(answered: Answered, row: list[str]) -> None:
    said: Any = {"packages": {"a": row}, "markers": {}}
    with pytest.raises(ValueError, match="not 2 values"):
        packages(answered({PACKAGES: Reply(Status.OK, value=said)}))


def test_a_recording_without_packages_has_none(answered: Answered) -> None:
    assert packages(answered({PACKAGES: Reply(Status.MISSING, "no python3")})) == Absent(
        "the agent's packages not found"
    )
