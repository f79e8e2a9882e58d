"""ncheck.pyz: one pure Python file, which runs with no package installed and no folder to unpack into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import ncheck
import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "release" / "pyz.py"


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack what is installed here."""
    try:
        distribution("cluster-ncheck")
    except PackageNotFoundError:
        pytest.skip("only an installed ncheck can be packed: make test")
    made = tmp_path_factory.mktemp("pyz") / "ncheck.pyz"
    subprocess.run([sys.executable, str(SCRIPT), str(made)], check=True)
    return made


def run(pyz: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it without any site-packages, in a folder that holds nothing else."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(pyz.parent)}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-B", str(pyz), *words], cwd=pyz.parent, env=environ, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_it_prints_its_version_with_nothing_installed(pyz: Path) -> None:
    done = run(pyz, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ncheck {ncheck.__version__}\n", "")


def test_it_holds_no_compiled_part_and_no_paramiko(pyz: Path) -> None:
    names = zipfile.ZipFile(pyz).namelist()
    assert [name for name in names if name.endswith((".so", ".pyd", ".pyc"))] == []
    tops = {name.split("/")[0] for name in names}
    assert tops.isdisjoint({"paramiko", "cryptography", "netifaces", "psutil", "yaml"})
    assert {"ncheck", "ncheck_checks", "click", "rich", "mashumaro", "ClusterShell"} <= tops
    assert tops.isdisjoint({"doctor", "checks", "tests", "reports"})


def test_it_finds_its_checks_and_their_pages(pyz: Path) -> None:
    done = run(pyz, "explain", "NC201")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The NCCL version differs between nodes" in done.stdout
    assert "各节点 NCCL 版本不一致" in run(pyz, "explain", "NC201", "--lang", "zh").stdout


def test_it_examines_this_machine_with_the_agent_from_inside_the_file(pyz: Path) -> None:
    done = run(pyz, "local", "-o", "json")
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"]
    assert [(node["reached"], node["transport"]) for node in report["nodes"]] == [(True, "local")]
    assert [verdict for verdict in report["verdicts"] if verdict["outcome"] == "crashed"] == []


def test_it_writes_its_report_as_a_page_with_templates_from_inside_the_file(pyz: Path) -> None:
    done = run(pyz, "local", "--select", "NC1", "--probe", "none", "-o", "html")
    assert done.stderr.count("\n") == done.stderr.count("ncheck: ")
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stdout.endswith("</html>\n")


def test_its_demo_names_the_package_that_is_missing(pyz: Path) -> None:
    done = run(pyz, "demo")
    assert done.returncode == 2
    assert "the demo needs paramiko" in done.stderr
    assert "Traceback" not in done.stderr


def test_its_recorded_clusters_are_read_inside_the_file(pyz: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(pyz)!r}); from ncheck.demo import recorded_cluster as c; "
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code + "print([n.node for n in c('healthy-4x8-h100')])"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("['gpu01', 'gpu02', 'gpu03', 'gpu04']\n", "")


def test_a_node_is_reached_by_the_machines_own_ssh(pyz: Path) -> None:
    done = run(pyz, "-H", "nosuchhost.invalid", "--select", "NC1", "--mesh", "none", "-o", "json")
    report = json.loads(done.stdout)
    assert [(node["transport"], node["cause"]) for node in report["nodes"]] == [("openssh", "name-unknown")]
