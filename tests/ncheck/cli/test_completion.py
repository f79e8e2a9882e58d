"""Completion: the words that a shell is offered, and that asking for them examines nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ncheck
import pytest
from ncheck.cli.main import main

HOME = str(Path(ncheck.__file__).parents[1])


def offered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str, last: str = ""
) -> list[str]:
    """Return what bash is offered for the last word after these: words, and FILE for a path."""
    monkeypatch.setenv("_NCHECK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("ncheck", *words, last)))
    monkeypatch.setenv("COMP_CWORD", str(len(words) + 1))
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = [row.split(",", 1) for row in out.splitlines()]
    return ["FILE" if kind == "file" else word for kind, word in rows]


@pytest.mark.parametrize(("words", "last", "wanted"), [
    ((), "pl", ["FILE", "plan"]),
    ((), "nod", ["FILE"]),
    ((), "--po", ["--port"]),
    ((), "--vers", ["--version"]),
    (("nodes",), "--good", ["--good-nodes"]),
    (("nodes", "--good-nodes"), "g", ["FILE"]),
    (("nodes", "-o"), "j", ["json", "junit"]),
    (("check", "--select"), "NC201", ["NC201"]),
    (("check", "--select"), "NC301,NC201", ["NC301,NC201"]),
    (("explain",), "nccl-ve", ["nccl-version-differs"]),
    (("plan", "nodes", "--for"), "to", ["torchrun"]),
    (("replay",), "rec", ["FILE"]),
    (("help",), "re", ["read", "replay"]),
    (("completion",), "", ["bash", "zsh", "fish"]),
    (("plan", "nodes", "--"), "tr", ["FILE"]),
])  # fmt: skip
def test_a_word_is_completed_by_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], last: str,
    wanted: list[str],
) -> None:  # fmt: skip
    assert offered(capsys, monkeypatch, *words, last=last) == wanted


@pytest.mark.parametrize("request_", ["bash_complete", "bash_source", "nonsense", "1"])
def test_the_variable_never_starts_a_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    monkeypatch.setenv("_NCHECK_COMPLETE", request_)
    monkeypatch.delenv("COMP_WORDS", raising=False)
    main(["local"])
    assert "verdict" not in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_variable(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    assert f"_NCHECK_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    program = tmp_path / "ncheck"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={HOME} exec {sys.executable} -m ncheck "$@"\n')
    program.chmod(0o755)
    script = """eval "$(ncheck completion bash)"; COMP_WORDS=(ncheck repl); COMP_CWORD=1
                _ncheck_completion ncheck repl ncheck 2>/dev/null; echo "${COMPREPLY[@]}" """
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("replay\n", "")
