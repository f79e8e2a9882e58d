"""What tests compile is compiled once, and anew where the line is another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import compiled


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_the_same_line_is_compiled_once_and_another_one_makes_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "CACHE", tmp_path)
    line = ["cc", "-shared", "-x", "c", "/dev/null"]
    first = compiled.compiled(line)
    made = first.stat().st_mtime_ns
    assert (compiled.compiled(line), first.stat().st_mtime_ns) == (first, made)
    assert compiled.compiled([*line, "-O1"]) != first
    assert len(list((tmp_path / "compiled").iterdir())) == 2
