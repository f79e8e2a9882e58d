"""The tests run on the installed wheel, not on the tree that it was built from."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import ncheck
import ncheck_checks
import pytest
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from packaging.requirements import Requirement

TREE = Path(__file__).parents[1]

under_make = pytest.mark.skipif(
    os.environ.get("NCHECK_INSTALLED") != "1", reason="`make test` tests the installed wheel; this run tests the tree"
)


@under_make
def test_both_packages_come_from_site_packages() -> None:
    site = Path(sysconfig.get_path("purelib"))
    assert [Path(package.__file__ or "").parents[1] for package in (ncheck, ncheck_checks)] == [site, site]


@under_make
def test_the_installed_files_are_those_of_the_tree() -> None:
    site = Path(sysconfig.get_path("purelib"))
    places = {
        "ncheck": TREE / "doctor/ncheck",
        "ncheck_checks": TREE / "checks/ncheck_checks",
        "ncheck/fixtures": TREE / "fixtures",
    }
    for place, source in places.items():
        for file in source.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                installed, made = site / place / file.relative_to(source), file.read_bytes()
                if file.suffix == ".po":
                    installed, made = installed.with_suffix(".mo"), compiled_catalogue(made)
                assert installed.read_bytes() == made, f"{file} is newer than the wheel: make test again"


def compiled_catalogue(source: bytes) -> bytes:
    compiled = io.BytesIO()
    write_mo(compiled, read_po(io.BytesIO(source)))
    return compiled.getvalue()


@under_make
def test_both_scripts_answer_from_any_folder(tmp_path: Path) -> None:
    for name in ("ncheck", "cluster-ncheck"):
        script = Path(sysconfig.get_path("scripts")) / name
        done = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"ncheck {ncheck.__version__}\n")


@under_make
def test_the_wheel_installs_two_packages_and_no_other_name() -> None:
    names = {str(file) for file in distribution("cluster-ncheck").files or () if ".." not in file.parts}
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"ncheck", "ncheck_checks"}


@pytest.mark.slow
@under_make
def test_the_script_works_in_a_folder_with_packages_called_like_our_folders(tmp_path: Path) -> None:
    for name in ("doctor", "checks", "tests", "reports"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('imported {name} of the training repository')")
    script = str(Path(sysconfig.get_path("scripts")) / "ncheck")
    listed = subprocess.run([script, "list"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (listed.returncode, listed.stderr) == (0, "")
    local = [script, "local", "--probe", "none", "-o", "json"]
    done = subprocess.run(local, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert json.loads(done.stdout)["exit_code"] == done.returncode


@under_make
def test_the_wheel_carries_its_licence_and_no_tests() -> None:
    names = {str(file) for file in distribution("cluster-ncheck").files or ()}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "release/", "bench/")) for name in names)


MODULES = 162  # of ours, for the checks of ssh on one host: who needs more writes the new number, and why
START = """
import sys
from ncheck.__main__ import leave
from ncheck.cli.main import main
main(["-H", "nowhere.invalid", "--select", "NC1", "--config", "none"])
import threading
for thread in threading.enumerate():
    if thread.name == "prepare":  # it imports while the node is dialled
        thread.join()
print(*(name for name in sys.modules if name.split(".")[0] in ("ncheck", "ncheck_checks")))
leave(0)
"""


@under_make
def test_a_run_imports_what_its_checks_need_and_no_room(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", START], cwd=tmp_path, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()[-1].split()
    assert len(names) <= MODULES * 1.05
    rooms = ("ncheck.probe", "ncheck.triage", "ncheck.hook", "ncheck.read", "ncheck.plan")
    assert [name for name in names if name.startswith(rooms)] == []


# The first releases without the holes that are known: CVE-2026-44405 (SHA-1 signatures), CVE-2026-26007, and
# CVE-2025-27516 (the sandbox).
SAFE = {"paramiko": "<6,>=5.0", "cryptography": ">=46.0.5", "jinja2": ">=3.1.6"}


def test_no_release_of_a_dependency_with_a_known_hole_is_allowed() -> None:
    wanted = {(one := Requirement(text)).name.lower(): one for text in distribution("cluster-ncheck").requires or ()}
    assert {name: str(one.specifier) for name, one in wanted.items() if name in SAFE} == SAFE
