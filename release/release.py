"""Make all files of a release in one folder: wheel, source, single file, wheelhouse, site, SBOM, provenance, sums.

    make release                  (dist/release; then sign it: see SECURITY.md)
    python release/release.py OUT --pyz FILE --wheelhouse FOLDER --site FOLDER

The same commit and the same dependencies give the same bytes, in any folder: no file has a time but that of the commit
(SOURCE_DATE_EPOCH). release/verify compares such a folder with what its SHA256SUMS and its provenance say.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement

ROOT = Path(__file__).resolve().parents[1]
NAME = "cluster_ncheck"
SUMS, PROVENANCE, SBOM = "SHA256SUMS", "provenance.intoto.json", "sbom.cyclonedx.json"
# What writes into the files that are made, beside the packages of the wheelhouse.
TOOLS = ("hatchling", "mkdocs", "mkdocs-material", "Markdown", "pymdown-extensions", "Jinja2", "Pygments")
# How to make the same files again, as SLSA wants it named: any URI, and this one says it by itself.
BUILD_TYPE = "urn:cluster-ncheck:make-release:1"


def release(out: Path, pyz: Path, wheelhouse: Path, site: Path) -> None:
    """Write the folder; what was in it goes.

    Raises SystemExit where the files of the checkout are not those of its commit.
    """
    if changed := _run("git", "-C", str(ROOT), "status", "--porcelain"):
        raise SystemExit(f"release: not committed, so no commit could be named:\n{changed.rstrip()}")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    (wheel,) = out.glob(f"{NAME}-*.whl")
    version = wheel.name.split("-")[1]
    shutil.copy(pyz, out / "ncheck.pyz")
    wheels = {path.name: path for path in wheelhouse.glob("*.whl") if not path.name.startswith(NAME)}
    packed = {**wheels, wheel.name: wheel}
    _tar(out / f"{NAME}-{version}-wheelhouse.tar.gz", {f"wheelhouse/{name}": path for name, path in packed.items()})
    pages = {f"site/{path.relative_to(site)}": path for path in (site / version).rglob("*") if path.is_file()}
    if not pages:
        raise SystemExit(f"release: {site} has no pages of {version}")
    _tar(out / f"{NAME}-{version}-site.tar.gz", pages)
    _sbom(out / SBOM, packed)
    _provenance(out, packed)
    lines = [f"{_digest(path)}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / SUMS).write_text("".join(lines))


def _epoch() -> int:
    """Return the seconds that SOURCE_DATE_EPOCH says, else those of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or _run("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))


def _tar(out: Path, files: dict[str, Path]) -> None:
    """Pack files under these names, in their order, with one time and no owner."""
    time = _epoch()
    with (
        out.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = path.stat().st_size, time, 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)


def _sbom(out: Path, wheels: dict[str, Path]) -> None:
    """Write what an installation consists of: cyclonedx-bom reads one that has these wheels and nothing else.

    It reads their metadata, so nothing else of them is unpacked: pip would also note where on this machine they lay.
    """
    with tempfile.TemporaryDirectory() as name:
        environment = Path(name) / "runtime"
        _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        (packages,) = environment.glob("lib/python*/site-packages")
        for wheel in wheels.values():
            with zipfile.ZipFile(wheel) as archive:
                for file in archive.namelist():
                    if file.partition("/")[0].endswith(".dist-info"):
                        archive.extract(file, packages)
        _run(
            sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--no-validate",
            "--spec-version", "1.6", "--pyproject", str(ROOT / "pyproject.toml"), "--output-file", str(out),
            str(environment / "bin" / "python"),
        )  # fmt: skip


def _provenance(out: Path, wheels: dict[str, Path]) -> None:
    """Write which commit and which packages the files were made of: a statement of in-toto, by SLSA 1.0."""
    commit = _run("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    made_of = [_described("ncheck", {"gitCommit": commit})]
    made_of += [_described(name, {"sha256": _digest(path)}) for name, path in sorted(wheels.items())
                if not name.startswith(NAME)]  # fmt: skip
    made_of += [ResourceDescriptor(one, f"pkg:pypi/{one.lower()}@{metadata.version(one)}") for one in TOOLS]
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"command": "make release", "python": f"{sys.version_info[0]}.{sys.version_info[1]}"},
            "resolvedDependencies": [MessageToDict(one.pb) for one in made_of],
        },
        "runDetails": {"builder": {"id": os.environ.get("NCHECK_BUILDER", "urn:cluster-ncheck:by-hand")}},
    }
    subjects = [_described(path.name, {"sha256": _digest(path)}).pb for path in sorted(out.iterdir())]
    statement = Statement(subjects, "https://slsa.dev/provenance/v1", predicate)
    statement.validate()
    text = json.dumps(MessageToDict(statement.pb), indent=1, sort_keys=True)
    (out / PROVENANCE).write_text(f"{text}\n")


def _described(name: str, digest: dict[str, str]) -> ResourceDescriptor:
    return ResourceDescriptor(name=name, digest=digest)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*words: str) -> str:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(_epoch())} if words[0] == sys.executable else None
    done = subprocess.run(words, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pyz", type=Path, required=True)
    parser.add_argument("--wheelhouse", type=Path, required=True)
    parser.add_argument("--site", type=Path, required=True)
    given = parser.parse_args()
    release(given.out, given.pyz, given.wheelhouse, given.site)
