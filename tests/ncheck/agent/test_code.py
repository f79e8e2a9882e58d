"""The job's code, as real git leaves it: commit, branch, what was changed, and the contents of source files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import code as answer_code
from ncheck.agent.answers.code import answer
from ncheck.agent.sources import Sources

ENVIRON = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git")


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.email=ann@example.org", "-c", "user.name=ann", "-c", "init.defaultBranch=main")
    ran = subprocess.run(
        ["git", "-C", str(folder), *own, *words], check=True, capture_output=True, text=True, env=ENVIRON
    )
    return ran.stdout.strip()


def asked(folder: Path, **variables: str) -> dict[str, Any]:
    sources = Sources({**os.environ, **variables})
    said: dict[str, Any] = answer(sources, {"folder": str(folder)}, 30.0)
    return said


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with one commit."""
    folder = written(tmp_path / "code", train_py="print(1)\n", lib__model_py="x = 1\n")
    git(tmp_path, "init", "-q", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def head_of(folder: Path) -> tuple[str, str]:
    said = asked(folder)["git"]
    return said["commit"], said["branch"]


def test_a_clean_repository_has_its_commit_and_nothing_is_changed(repository: Path) -> None:
    said = asked(repository)["git"]
    commit = git(repository, "rev-parse", "HEAD")
    assert said == {"top": str(repository), "commit": commit, "branch": "main", "changed": {}, "error": ""}


def test_the_commit_is_found_wherever_git_keeps_it(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "pack-refs", "--all")
    assert head_of(repository) == (commit, "main")
    git(repository, "worktree", "add", "-q", "-b", "try/this", str(tmp_path / "tree"))
    assert head_of(tmp_path / "tree") == (commit, "try/this")
    git(repository, "checkout", "-q", "--detach")
    assert head_of(repository) == (commit, "")
    assert head_of(repository / "lib") == (commit, "")


def test_a_repository_without_a_commit_and_a_broken_one_have_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", str(tmp_path / "new"))
    assert head_of(tmp_path / "new") == ("", "main")
    (tmp_path / "new" / ".git" / "HEAD").write_text("ref: refs/heads/../../../../etc/passwd\n")
    assert head_of(tmp_path / "new") == ("", "")


def test_what_was_changed_is_named_with_its_content_and_nothing_is_written(repository: Path) -> None:
    written(repository, train_py="print(2)\n", lib__new_py="y = 1\n", notes="of an untracked file\n")
    (repository / "lib" / "model.py").unlink()
    (repository / "index").write_text("")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    changed = asked(repository)["git"]["changed"]
    assert {name: len(digest) for name, digest in changed.items()} == {
        "train.py": 12,
        "lib/model.py": 0,
        "lib/new.py": 12,
    }
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


def test_no_hook_no_monitor_and_no_filter_of_the_repository_is_run(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hook = repository / ".git" / "hooks" / "fsmonitor"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    git(repository, "config", "filter.lfs.clean", f"touch {mark}; cat")
    (repository / ".git" / "info" / "attributes").write_text("*.py filter=lfs\n")
    written(repository, train_py="print(3)\n")
    assert asked(repository)["git"]["changed"].keys() == {"train.py"}
    assert not mark.exists()


def test_git_is_not_started_in_another_users_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    said = asked(repository)["git"]
    assert (said["commit"], said["error"]) == (
        git(repository, "rev-parse", "HEAD"), "the repository belongs to another user, so git was not started in it",
    )  # fmt: skip


def test_two_copies_have_one_digest_whatever_programs_wrote_beside_the_code(repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository, tmp_path / "copy", ignore=shutil.ignore_patterns(".git"))
    written(tmp_path / "copy", outputs__config_py="", lib__logs__x_py="", train_log="loss 3", checkpoints__a_py="")
    (tmp_path / "copy" / "train.py").touch()
    first, copy = asked(repository)["tree"], asked(tmp_path / "copy")
    assert (copy["git"], copy["tree"]) == (None, first)
    assert first["listed"].keys() == {"train.py", "lib/model.py"}


def test_another_content_has_another_digest_and_a_package_is_code_whatever_its_name(tmp_path: Path) -> None:
    one = written(tmp_path / "one", train_py="", data__loader_py="a")
    other = written(tmp_path / "other", train_py="", data__loader_py="b")
    assert asked(one)["tree"] == asked(other)["tree"]
    for folder in (one, other):
        (folder / "data" / "__init__.py").touch()
    assert asked(one)["tree"]["digest"] != asked(other)["tree"]["digest"]


def test_the_settings_of_deepspeed_are_code_and_what_a_training_wrote_is_none(tmp_path: Path) -> None:
    for name in ("ds_config.json", "zero3.json", "trainer_state.json", "config.json", "vocab.json"):
        (tmp_path / name).write_text("{}")
    assert asked(tmp_path)["tree"]["listed"].keys() == {"ds_config.json", "zero3.json"}


def test_pipes_loops_and_dead_links_hold_up_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "own.py").symlink_to("own.py")
    (tmp_path / "dead.py").symlink_to(tmp_path / "nowhere")
    assert asked(tmp_path)["tree"]["listed"] == {}


def test_too_many_files_are_not_called_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_code, "MOST_FILES", 1)
    written(tmp_path, a_py="", b_py="")
    assert asked(tmp_path)["tree"]["cut"] == "the folder has more than 1 source files, or is too slow to read"


def test_a_folder_with_too_many_entries_is_left_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million images beside the code must not cost a million looks."""
    monkeypatch.setattr(answer_code, "MOST_ENTRIES", 4)
    written(tmp_path, a_py="", **{f"images__{number}": "" for number in range(9)})
    assert asked(tmp_path)["tree"]["cut"] == "the folder has more than 5000 source files, or is too slow to read"


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert asked(gone) == {"folder": str(gone), "exists": False, "git": None, "tree": None}


def test_the_users_settings_of_git_do_not_change_what_is_found(repository: Path) -> None:
    """A copy by rsync may lose the x of files, and one node's ~/.gitconfig may show every untracked file."""
    written(repository, fresh__new_py="z = 1\n")
    usual = asked(repository)["git"]["changed"]
    (repository / "train.py").chmod(0o755)
    git(repository, "config", "status.showUntrackedFiles", "all")
    assert asked(repository)["git"]["changed"] == usual == {}


def test_a_large_file_of_lfs_is_not_called_changed(repository: Path) -> None:
    """git-lfs would read it all, and write into .git: it is not started, and without it git knows nothing of them."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:97ff6cfd\nsize 8\n"
    written(repository, vocab=pointer, words=pointer)
    (repository / ".gitattributes").write_text("vocab filter=lfs diff=lfs merge=lfs -text\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "vocabulary")
    written(repository, vocab="contents", words="contents")
    assert asked(repository)["git"]["changed"].keys() == {"words"}


def test_a_submodule_at_another_commit_is_named_with_it(repository: Path) -> None:
    other = str(repository.parent / "other")
    git(repository.parent, "clone", "-q", str(repository), other)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "sub")
    git(repository, "commit", "-q", "-m", "with a submodule")
    assert asked(repository)["git"]["changed"] == {}
    written(repository / "sub", train_py="print(4)\n")
    assert asked(repository)["git"]["changed"] == {}  # its files are compared by their contents
    git(repository / "sub", "commit", "-q", "-a", "-m", "newer")
    commit = git(repository / "sub", "rev-parse", "HEAD")
    assert asked(repository)["git"]["changed"] == {"sub": commit[:12]}


def test_nothing_is_fetched_for_a_partial_clone(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repository}", "part")
    part, mark = tmp_path / "part", tmp_path / "fetched"
    git(part, "config", "remote.origin.uploadpack", f"touch {mark}; git-upload-pack")
    git(part, "config", "status.renames", "true")
    git(part, "read-tree", "--empty")
    written(part, renamed_py="print(1)\n# almost the same\n")
    git(part, "add", "renamed.py")
    assert "renamed.py" in asked(part)["git"]["changed"]
    assert not mark.exists()


def test_git_is_not_started_where_git_itself_belongs_to_another_user(repository: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root")
    os.chown(repository / ".git", 12345, 12345)
    assert asked(repository)["git"]["error"].startswith("the repository belongs to another user")


def test_a_commit_that_cannot_be_read_is_said_to_be_unknown(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")  # as git keeps it in its reftable format
    said = asked(repository)["git"]
    assert (said["commit"], said["error"]) == ("", "no commit can be read from .git")


def test_a_head_that_is_a_link_is_followed(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    (repository / ".git" / "HEAD").rename(repository / ".git" / "own")
    (repository / ".git" / "HEAD").symlink_to("own")
    assert head_of(repository) == (commit, "main")


def test_a_virtual_environment_beside_the_code_is_no_code(tmp_path: Path) -> None:
    written(tmp_path, train_py="", mine__lib__tool_py="", conda__lib__os_py="")
    (tmp_path / "mine" / "pyvenv.cfg").touch()
    (tmp_path / "conda" / "conda-meta").mkdir()
    assert asked(tmp_path)["tree"]["listed"].keys() == {"train.py"}


def test_a_folder_that_cannot_be_looked_at_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="/loop: Too many levels of symbolic links"):
        asked(tmp_path / "loop")


def test_files_that_differ_behind_what_is_read_of_them_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_code, "LARGEST", 4)
    one, other = written(tmp_path / "one", a_py="abcd"), written(tmp_path / "other", a_py="abcdef")
    assert asked(one)["tree"]["digest"] != asked(other)["tree"]["digest"]
