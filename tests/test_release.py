"""make release: the same commit gives the same bytes anywhere, and release/verify refuses a changed one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import requires
from importlib.metadata import version as installed
from pathlib import Path

import ncheck
import pytest
from check_jsonschema import main as check_workflow
from click.testing import CliRunner
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement_pb2 import Statement

from .test_pyz import SCRIPT

pytestmark = [pytest.mark.slow, pytest.mark.network]

ROOT = Path(__file__).parents[1]
VERIFY = ROOT / "release" / "verify"
NAMES = {
    "SHA256SUMS", "ncheck.pyz", "provenance.intoto.json", "sbom.cyclonedx.json", "cluster_ncheck-V-py3-none-any.whl",
    "cluster_ncheck-V-wheelhouse.tar.gz", "cluster_ncheck-V-site.tar.gz", "cluster_ncheck-V.tar.gz",
}  # fmt: skip


def plain(name: str) -> str:
    """Return a file's name with V for the version, or a distribution's name as an index writes it."""
    return re.sub(r"(?<=cluster_ncheck-)\d+\.\d+\.\d+[^-]*?(?=-|\.tar)", "V", name)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a release of this commit in two folders, at two ends of the world, for users with two umasks."""
    folder = tmp_path_factory.mktemp("release")
    wheelhouse = folder / "wheels"
    python = (sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "download")
    wanted = [line for line in requires("cluster-ncheck") or () if ";" not in line]  # neither an extra nor tomli
    subprocess.run([*python, "--only-binary", ":all:", "--dest", str(wheelhouse), *wanted], check=True)
    site = folder / "site"
    for at, page in enumerate(("index.html", "checks/NC402/index.html")):
        path = site / ncheck.__version__ / page
        path.parent.mkdir(parents=True)
        path.write_text(f"<p>{page}")
        os.utime(path, (at, at))
    made = []
    for name, zone, umask in (("a", "UTC", 0o022), ("deeper/b", "Asia/Tokyo", 0o027)):
        checkout = folder / name
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(checkout)], check=True)
        environ = {**os.environ, "TZ": zone}
        pyz = checkout / "dist" / "ncheck.pyz"
        subprocess.run([sys.executable, str(SCRIPT), str(pyz)], check=True, env=environ, umask=umask)
        wheelhouse = wheelhouse.rename(checkout / "dist" / "wheelhouse")
        script = str(checkout / "release" / "release.py")
        words = [sys.executable, script, str(checkout / "dist" / "release"), "--pyz", str(pyz)]
        words += ["--wheelhouse", str(wheelhouse), "--site", str(site)]
        subprocess.run(words, check=True, env=environ, umask=umask, stdout=subprocess.PIPE)
        made.append(checkout / "dist" / "release")
    return made[0], made[1]


def verify(folder: Path) -> tuple[int, str]:
    """Return the exit code, and the output without the folder's name."""
    done = subprocess.run([str(VERIFY), str(folder)], capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).replace(f"verify: {folder}: ", "")


def test_two_builds_in_two_folders_give_the_same_bytes(releases: tuple[Path, Path]) -> None:
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in releases)
    assert {plain(name) for name in first} == NAMES
    assert [name for name in first if first[name] != second.get(name)] == []
    assert first.keys() == second.keys()


def test_the_site_is_packed_under_its_version_with_the_time_of_the_commit(releases: tuple[Path, Path]) -> None:
    time = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, check=True)
    with tarfile.open(releases[0] / f"cluster_ncheck-{ncheck.__version__}-site.tar.gz") as archive:
        assert [(one.name, one.mtime, one.mode, one.uid) for one in archive] == [
            (f"site/{ncheck.__version__}/{page}", int(time.stdout), 0o644, 0)
            for page in ("checks/NC402/index.html", "index.html")
        ]


def test_a_release_is_refused_after_one_changed_byte(releases: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(releases[0], folder)
    assert verify(folder) == (0, "all files are as released\n")
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for at in (0, len(whole) // 2):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            code, text = verify(folder)
            assert code == 1
            assert text == f"{path.name} is changed\n" or path.name == "SHA256SUMS"
        path.write_bytes(whole)
    assert verify(folder)[0] == 0


def test_a_file_that_is_missing_added_or_a_link_is_named(releases: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(releases[0], folder)
    (folder / "ncheck.pyz").rename(tmp_path / "ncheck.pyz")
    assert verify(folder) == (1, "ncheck.pyz is missing\n")
    (folder / "ncheck.pyz").symlink_to(tmp_path / "ncheck.pyz")
    assert verify(folder) == (1, "ncheck.pyz is changed\n")
    (folder / "ncheck.pyz").unlink()
    (tmp_path / "ncheck.pyz").rename(folder / "ncheck.pyz")
    (folder / "install.sh").write_text("true\n")
    assert verify(folder) == (1, "install.sh is not in SHA256SUMS\n")
    (folder / "install.sh").unlink()
    (folder / "SHA256SUMS.sigstore.json").write_text("{}")
    assert verify(folder) == (0, "all files are as released\n")
    (folder / "SHA256SUMS.sigstore.json").unlink()
    (folder / "SHA256SUMS.sigstore.json").mkdir()
    assert verify(folder) == (1, "SHA256SUMS.sigstore.json is no plain file\n")


def test_a_list_that_was_made_anew_does_not_fit_the_provenance(releases: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(releases[0], folder)
    (folder / "ncheck.pyz").write_bytes(b"#!/bin/sh\n")
    files = sorted(path.name for path in folder.iterdir() if path.name != "SHA256SUMS")
    sums = subprocess.run(["sha256sum", *files], cwd=folder, capture_output=True, text=True, check=True)
    (folder / "SHA256SUMS").write_text(sums.stdout)
    assert verify(folder) == (1, "provenance.intoto.json is about other files\n")


@pytest.mark.parametrize(
    "text",
    ["", "no list\n", f"{'0' * 64}  ../../etc/passwd\n", f"{'0' * 64}  a\n" * 2, f"{'0' * 64}  a\f{'0' * 64}  b\n"],
)
def test_a_list_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text(text)
    assert verify(tmp_path) == (1, "SHA256SUMS is no list of SHA-256 sums and names, each once\n")


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    code, text = verify(tmp_path)
    assert (code, text.startswith("cannot be read: ")) == (1, True)


def test_the_provenance_names_the_commit_and_every_package(releases: tuple[Path, Path]) -> None:
    text = json.loads((releases[0] / "provenance.intoto.json").read_text())
    statement = ParseDict(text, Statement())
    predicate = ParseDict(text["predicate"], Provenance())
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    source, *packages = predicate.build_definition.resolved_dependencies
    assert dict(source.digest) == {"gitCommit": commit.stdout.strip()}
    assert {"paramiko", "click", "rich"} <= {one.name.partition("-")[0] for one in packages if one.digest}
    tools = {one.name: one.uri for one in packages if not one.digest}
    assert tools["mkdocs-material"] == f"pkg:pypi/mkdocs-material@{installed('mkdocs-material')}"
    assert {plain(one.name) for one in statement.subject} == NAMES - {"SHA256SUMS", "provenance.intoto.json"}


def test_the_sbom_is_valid_and_has_every_dependency(releases: tuple[Path, Path]) -> None:
    text = (releases[0] / "sbom.cyclonedx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    assert bom["metadata"]["component"]["name"] == "cluster-ncheck"
    packages = {re.sub(r"[-_.]+", "-", one["name"]).lower(): one for one in bom["components"]}
    wanted = {re.split(r"[<>=; ]", line)[0].lower() for line in requires("cluster-ncheck") or () if ";" not in line}
    assert {*wanted, "bcrypt"} <= packages.keys()
    assert packages.keys().isdisjoint({"pip", "pytest", "mypy", "setuptools"})
    assert {name: one["purl"] for name, one in packages.items()} == {
        name: f"pkg:pypi/{name}@{one['version']}" for name, one in packages.items()
    }


def test_a_checkout_with_changes_gives_no_release(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(tmp_path / "a")], check=True)
    (tmp_path / "a" / "new.txt").touch()
    script = str(tmp_path / "a" / "release" / "release.py")
    done = subprocess.run(
        [sys.executable, script, str(tmp_path / "out"), "--pyz", "x", "--wheelhouse", "y", "--site", "z"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1,
        "release: not committed, so no commit could be named:\n?? new.txt\n",
    )


EXAMPLES = ROOT / "docs" / "examples" / "release"


def test_the_workflow_is_one_that_a_forge_takes_and_makes_what_the_makefile_has() -> None:
    workflow = EXAMPLES / "release.yml"
    done = CliRunner().invoke(check_workflow, ["--builtin-schema", "vendor.github-workflows", str(workflow)])
    assert (done.exit_code, done.output) == (0, "ok -- validation done\n")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        line.split()[-1] for line in workflow.read_text().splitlines() if re.search(r"^[ -]+(run: )?.*\bmake ", line)
    }
    assert (named, named <= targets) == ({"release", "test"}, True)


def paths_of(page: str) -> Iterator[Path]:
    """Yield each path of this checkout that a page names in backticks or links to; a bare file is the last folder's."""
    folder = ROOT
    for name in re.findall(r"`([\w./-]+/|[\w./-]+\.\w+)`|\]\(([\w./-]+)\)", (ROOT / page).read_text()):
        path = name[0] or name[1]
        if "/" in path:
            yield ROOT / path
            folder = (ROOT / path).parent
        elif path.startswith("test_"):
            yield folder / path


def test_the_page_about_security_names_what_exists() -> None:
    paths = list(paths_of("SECURITY.md"))
    assert len(paths) > 8
    assert [path for path in paths if not path.exists()] == []


def test_debians_own_tool_makes_a_package_of_the_single_file(releases: tuple[Path, Path], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(EXAMPLES / "debian", tree / "debian")
    for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "docs/ncheck.1"):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / "dist").mkdir()
    shutil.copy(releases[0] / "ncheck.pyz", tree / "dist")
    subprocess.run(["dpkg-buildpackage", "-b", "-us", "-uc"], cwd=tree, check=True, capture_output=True)
    (package,) = tmp_path.glob("*.deb")
    assert package.name == f"ncheck_{ncheck.__version__}-1_all.deb"
    subprocess.run(["dpkg-deb", "-x", str(package), str(tmp_path / "root")], check=True)
    program = tmp_path / "root" / "usr" / "bin" / "ncheck"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([str(program), "--version"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"ncheck {ncheck.__version__}\n")
    assert {path.name for path in (tmp_path / "root" / "usr" / "share").rglob("*.gz")} >= {"ncheck.1.gz"}


def test_the_container_runs_ncheck_without_root() -> None:
    lines = (EXAMPLES / "Containerfile").read_text().splitlines()
    words = {line.split()[0]: line.split()[1:] for line in lines if re.match("[A-Z]+ ", line)}
    assert (words["USER"], words["ENTRYPOINT"]) == (["1000"], ['["ncheck"]'])
    assert words["COPY"][1] in NAMES


BASE = os.environ.get("NCHECK_TEST_BASE", "")


@pytest.mark.skipif(
    not BASE, reason="NCHECK_TEST_BASE names no base: mmdebstrap --variant=apt stable base.tar (as root)"
)
def test_the_container_is_built_and_examines_the_machine_that_it_runs_on(
    releases: tuple[Path, Path], tmp_path: Path
) -> None:
    stores = ("--root", str(tmp_path / "root"), "--runroot", str(tmp_path / "run"), "--storage-driver", "vfs")

    def buildah(*words: str) -> str:
        command = ["buildah", *stores, *words]
        environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        return subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    empty = buildah("from", "scratch")
    buildah("add", "-q", empty, BASE, "/")
    buildah("commit", "-q", "--rm", empty, "localhost/base")
    recipe = str(EXAMPLES / "Containerfile")
    buildah("bud", "-q", "-t", "ncheck", "-f", recipe, "--build-arg", "BASE=localhost/base", str(releases[0]))
    made = buildah("from", "localhost/ncheck")
    assert buildah("run", made, "--", "id", "-u") == "1000"
    assert buildah("run", made, "--", "ncheck", "--version") == f"ncheck {ncheck.__version__}"
    report = json.loads(buildah("run", made, "--", "ncheck", "local", "-o", "json", "--fail-on", "never"))
    assert [node["reached"] for node in report["nodes"]] == [True]
