"""`make gpu` on a machine without a GPU: with stand-ins it measures, and what is missing is named and skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ncheck
import ncheck_checks
import pytest

from tests.skips import cannot

TREE = Path(__file__).parents[1]
SMI = TREE / "tests" / "lab" / "standins" / "nvidia-smi"
# The steps of the page, each of which one of two tests takes: what one call asks of a machine, and what is left.
OF_NODE, WITH_JOBS = ["machine", "facts", "load", "alone"], ["bandwidth", "ranks", "job", "hook", "hang"]


@pytest.mark.slow
@pytest.mark.usefixtures("alone_in_shm")
def test_every_step_has_its_section_and_what_is_missing_is_skipped(
    tmp_path: Path, standins: Callable[..., Path]
) -> None:
    environ = gpu_node(tmp_path, standins())
    ours = os.pathsep.join(str(Path(package.__path__[0]).parent) for package in (ncheck, ncheck_checks))
    argv = [sys.executable, str(TREE / "bench" / "gpu.py"), "--ncheck", ours, "--sizes", "1", "--rounds", "1"]
    argv += ["--out", str(tmp_path / "gpu.md"), "--only", ",".join(WITH_JOBS)]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    sections, page = written(tmp_path / "gpu.md")
    assert list(sections) == WITH_JOBS
    assert re.search(r"^\| 1 MiB \| [\d.]+ \([\d.]+ to [\d.]+\) \|$", sections["bandwidth"], re.MULTILINE)
    assert re.search(r"n1.*n2", sections["ranks"])
    for step in ("hang", "job", "hook"):
        assert re.search(r"^Skipped: .*no torch here", sections[step], re.MULTILINE), sections[step]
    assert "| ncheck probe " in page.rpartition("## What ncheck took")[2]


def written(page: Path) -> tuple[dict[str, str], str]:
    """Return the sections of a page by their steps, and all of it."""
    text = page.read_text()
    return dict(re.findall(r"^## ([\w-]+): [^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)), text


def gpu_node(folder: Path, standins: Path) -> dict[str, str]:
    """Make a folder with stand-ins of nvidia-smi and the drivers; return the environment of a machine without torch."""
    shutil.copy(SMI, folder / "nvidia-smi")
    (folder / "nvidia-smi").chmod(0o755)
    (folder / "torch.py").write_text("raise ImportError('no torch here')")
    packages = dict.fromkeys(str(Path(package.__path__[0]).parent) for package in (ncheck, ncheck_checks))
    return {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "LD_LIBRARY_PATH": str(standins),
            "PYTHONPATH": os.pathsep.join((str(folder), *packages)), "PYTHON": sys.executable}  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("alone_in_shm")
def test_one_call_leaves_everything_that_a_machine_with_a_gpu_tells_in_a_folder(
    tmp_path: Path, standins: Callable[..., Path]
) -> None:
    node, out = tmp_path / "node", tmp_path / "out"
    node.mkdir()
    environ = {**gpu_node(node, standins()), "OUT": str(out), "SIZES": "8"}
    alone = ("unshare", "-rn", "sh", "-ec", 'ip link set lo up; exec sh "$0" "$@"')  # the script makes its own eth0
    if subprocess.run(["unshare", "-rn", "ip", "link", "add", "eth0", "type", "veth"], check=False).returncode:
        cannot("no namespace with a pair of interfaces can be made here: unshare -rn")
    argv = [*alone, str(TREE / "bench" / "gpu_once.sh"), str(Path(ncheck.__path__[0]).parent)]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == [
        "env.txt", "gpu.log", "gpu.md", "ncheck.txt", "rec.tgz", "smi.xml", "torch.txt",
    ]  # fmt: skip
    text = (out / "ncheck.txt").read_text()
    assert re.findall(r"^== ncheck (\w+)|^rc=(\d+) after", text, re.MULTILINE)[::2] == [
        ("local", ""), ("probe", ""), ("probe", ""),
    ]  # fmt: skip
    assert not set(re.findall(r"^rc=(\d+)", text, re.MULTILINE)) - {"0", "1"}, text
    assert "all-reduce on 2 nodes, 4 ranks" in text.rpartition("== ncheck")[2]
    sections, page = written(out / "gpu.md")
    assert list(sections) == OF_NODE
    assert "| gpus[1].uuid | GPU-0" in sections["facts"]
    assert re.search(r"^25 facts, 11 compared, 0 differ\.$", sections["facts"], re.MULTILINE)
    assert re.search(r"^\| gpus\[0\]\.memory_used \| \d+ \| 441 MiB \| same \|$", sections["facts"], re.MULTILINE)
    assert "| 0000:10:00.0 | memory | 1800 | GB/s | 1800" in sections["alone"]
    for step in ("load", "alone"):
        assert re.search(r"^Skipped: .*(no torch here|torch can use no GPU here)", sections[step], re.MULTILINE), (
            sections[step]
        )
    assert "| ncheck local -v " in page.rpartition("## What ncheck took")[2]
    assert re.search("no torch here|torch sees no GPU", (out / "torch.txt").read_text())


def test_a_page_has_every_step_unless_some_are_named(tmp_path: Path) -> None:
    argv = [sys.executable, str(TREE / "bench" / "gpu.py"), "--help"]
    told = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert ", ".join((*OF_NODE, *WITH_JOBS)) in " ".join(told.split())


@pytest.mark.parametrize(("argv", "said"), [
    (["sh", "bench/gpu_once.sh"], "dist/ncheck.pyz is not here; type: make pyz\n"),
    (["make", "gpu"], "dist/ncheck.pyz is not here; type: make pyz\n"),
])  # fmt: skip
def test_without_the_single_file_the_line_to_type_is_said_and_nothing_is_built(
    tmp_path: Path, argv: list[str], said: str
) -> None:
    (tmp_path / "bench").mkdir()
    for name in ("Makefile", "bench/gpu.py", "bench/gpu_once.sh"):
        shutil.copy(TREE / name, tmp_path / name)
    done = subprocess.run(
        argv, cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Makefile", "bench"]
