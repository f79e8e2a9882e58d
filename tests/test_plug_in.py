"""The plug-in of docs/api.md, built and installed as a wheel: its check is found and runs beside ncheck's own."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import ncheck
import pytest

TREE = Path(__file__).parents[1]
API = (TREE / "docs" / "api.md").read_text(encoding="utf-8")
# Where another test of the same process imported distutils, to look for pip warns.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Setuptools is replacing distutils:UserWarning")]

HOME = str(Path(ncheck.__file__).parents[1])


def check_file() -> str:
    """Return the page's first example of a check, without the lines that only the page needs."""
    (example,) = re.findall(r'^```python\n("""The GPU driver.*?)^```', API, flags=re.DOTALL | re.MULTILINE)
    return "".join(line for line in example.splitlines(keepends=True) if not line.startswith("assert "))


def project_file() -> str:
    (example,) = re.findall(r"^```toml\n(.*?)^```", API, flags=re.DOTALL | re.MULTILINE)
    return str(example)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with what is installed here, and install it into a folder; no package index is asked."""
    if find_spec("hatchling") is None or find_spec("pip") is None:
        pytest.skip("needs hatchling and pip to build the wheel: make test installs them")
    project, wheels, installed = (tmp_path_factory.mktemp(name) for name in ("project", "wheels", "installed"))
    (project / "site_checks").mkdir()
    (project / "site_checks" / "__init__.py").touch()
    (project / "site_checks" / "driver_too_old.py").write_text(check_file(), encoding="utf-8")
    (project / "pyproject.toml").write_text(project_file(), encoding="utf-8")
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(wheels), str(project))
    (wheel,) = wheels.iterdir()
    pip("install", "--target", str(installed), str(wheel))
    return installed


def pip(*words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", words[0], "--no-index", "--no-deps", *words[1:]]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def run_ncheck(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), HOME])}
    argv = [sys.executable, "-m", "ncheck", *words]
    return subprocess.run(argv, cwd=site, env=environ, capture_output=True, text=True, check=False, timeout=60)


def test_its_check_is_listed_under_a_heading_of_its_own(site: Path) -> None:
    listed = json.loads(run_ncheck(site, "list", "-o", "json").stdout)
    assert [row for row in listed if row["code"].startswith("SITE")] == [
        {
            "code": "SITE001",
            "name": "driver-too-old",
            "severity": "error",
            "topic": "Plug-in SITE",
            "title": "The GPU driver is older than our image needs",
        }
    ]
    assert "NC201" in {row["code"] for row in listed}


def test_its_check_runs_on_the_nodes_of_a_recording(site: Path) -> None:
    recording = str(TREE / "fixtures" / "one-node-down")
    done = run_ncheck(site, "replay", recording, "--select", "SITE001", "-o", "json")
    report = json.loads(done.stdout)
    reached = [node["name"] for node in report["nodes"] if node["reached"]]
    assert {node: verdict["outcome"] for verdict in report["verdicts"] for node in verdict["nodes"]} == {
        node["name"]: "failed" if node["reached"] else "unknown" for node in report["nodes"]
    }
    assert [(finding["code"], finding["nodes"], finding["message"]) for finding in report["findings"]] == [
        ("SITE001", reached, "driver 550.127.08, need 560 or newer")
    ]


def test_its_page_is_explained(site: Path) -> None:
    done = run_ncheck(site, "explain", "SITE001")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nodes with an NVIDIA driver older than 560." in done.stdout


def test_it_imports_documented_names_only() -> None:
    found = [node for node in ast.walk(ast.parse(check_file())) if isinstance(node, ast.ImportFrom)]
    ours = {
        node.module: [alias.name for alias in node.names] for node in found if str(node.module).startswith("ncheck")
    }
    assert set(ours) == {"ncheck", "ncheck.facts.gpus"}
    assert set(ours["ncheck"]) <= set(ncheck.__all__)
    assert all(f"#### {fact}\n" in API for fact in ours["ncheck.facts.gpus"])
