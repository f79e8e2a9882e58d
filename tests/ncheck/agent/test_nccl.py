"""Which NCCL is there and which would be loaded, with libraries that a compiler here makes to order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.agent.answers import nccl
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.nccl_loaded import built_as, spelled
from ncheck.agent.job import JobSetup
from ncheck.agent.sources import Sources
from ncheck.model.evidence import JsonValue

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make libraries with")

NCCL = """
const char banner[] = "NCCL version {version}+cuda{cuda}";
int ncclGetVersion(int *version) {{ *version = {number}; return 0; }}
"""
TORCH = "extern int ncclGetVersion(int *); int torch_uses_it(int *v) { return ncclGetVersion(v); }"


def compiled(path: Path, text: str, *arguments: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), str(source), *arguments], check=True)
    source.unlink()
    return path


def a_copy(folder: Path, version: str, cuda: str = "12.4") -> Path:
    major, minor, patch = map(int, version.split("."))
    text = NCCL.format(version=version, cuda=cuda, number=major * 10000 + minor * 100 + patch)
    return compiled(folder / "libnccl.so.2", text, "-Wl,-soname,libnccl.so.2")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder of packages with a torch in it that must never be imported."""
    torch = tmp_path / "site" / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "__init__.py").write_text("raise SystemExit('torch was imported')")
    return tmp_path / "site"


Asked = Callable[..., dict[str, JsonValue]]


@pytest.fixture
def asked(site: Path) -> Asked:
    """Return a function that asks for NCCL in an environment, and leaves out what this machine itself has."""

    def answered(**variables: str) -> dict[str, JsonValue]:
        sources = Sources()
        plain = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
        sources.job = JobSetup({"python": sys.executable}, {**plain, "PYTHONPATH": str(site), **variables})
        sources.job.enter(60.0)
        said: dict[str, JsonValue] = nccl.answer(sources, None, 60.0)
        return said

    return answered


def torch_that_links(site: Path, stub: Path, *arguments: str) -> None:
    compiled(site / "torch" / "lib" / "libtorch_cuda.so", TORCH, str(stub), *arguments)


@needs_compiler
def test_every_copy_is_told_once_with_its_version_and_its_cuda(asked: Asked, tmp_path: Path, site: Path) -> None:
    wheel = a_copy(site / "nvidia" / "nccl" / "lib", "2.21.5")
    other = a_copy(tmp_path / "other", "2.18.3", "11.8")
    (tmp_path / "other" / "libnccl.so").symlink_to(other)
    (tmp_path / "other" / "libnccl-net.so").write_text("a plug-in, and no NCCL")
    copies = asked(LD_LIBRARY_PATH=str(tmp_path / "other"))["copies"]
    assert isinstance(copies, list)
    assert [copy for copy in copies if isinstance(copy, dict) and str(copy["path"]).startswith(str(tmp_path))] == [
        {"path": str(other), "origin": "environment", "version": "2.18.3", "cuda": "11.8",
         "seen_as": [str(tmp_path / "other" / "libnccl.so"), str(other)]},
        {"path": str(wheel), "origin": "wheel", "version": "2.21.5", "cuda": "12.4", "seen_as": [str(wheel)]},
    ]  # fmt: skip


@needs_compiler
def test_a_copy_that_cannot_be_opened_says_why(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "libnccl.so.2").write_bytes(b"\x7fELF and no more")
    copies = asked(LD_LIBRARY_PATH=str(tmp_path))["copies"]
    assert isinstance(copies, list)
    (broken,) = [copy for copy in copies if isinstance(copy, dict) and str(copy["path"]).startswith(str(tmp_path))]
    assert isinstance(broken["version"], dict)
    assert "libnccl.so.2" in str(broken["version"]["error"])


@needs_compiler
@pytest.mark.parametrize(
    ("tags", "how"),
    [("--disable-new-dtags", "DT_RPATH of torch's library"), ("--enable-new-dtags", "LD_LIBRARY_PATH")],
)
def test_the_library_path_weighs_more_than_a_runpath_and_less_than_an_rpath(
    asked: Asked, tmp_path: Path, site: Path, tags: str, how: str
) -> None:
    wheel = a_copy(site / "nvidia" / "nccl" / "lib", "2.21.5")
    other = a_copy(tmp_path / "other", "2.18.3")
    torch_that_links(site, wheel, f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib")
    version, path = ("2.18.3", other) if how == "LD_LIBRARY_PATH" else ("2.21.5", wheel)
    assert asked(LD_LIBRARY_PATH=str(tmp_path / "other"))["loaded"] == {
        "version": version, "path": str(path), "static": False, "how": how,
    }  # fmt: skip


def an_rccl(folder: Path, name: str) -> Path:
    text = NCCL.format(version="2.22.3", cuda="0", number=22203)
    return compiled(folder / name, text, f"-Wl,-soname,{name}")


@needs_compiler
@pytest.mark.parametrize("name", ["librccl.so", "librccl.so.1"])
def test_torch_for_amd_loads_the_rccl_beside_it(asked: Asked, tmp_path: Path, site: Path, name: str) -> None:
    library = an_rccl(site / "torch" / "lib", name)
    system = an_rccl(tmp_path / "rocm", "librccl.so.1")
    torch = site / "torch" / "lib" / "libtorch_hip.so"
    compiled(torch, TORCH, str(library), "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN")
    answer = asked(LD_LIBRARY_PATH=str(tmp_path / "rocm"))
    assert answer["loaded"] == {
        "version": "2.22.3", "path": str(library), "static": False, "how": "DT_RPATH of torch's library",
    }  # fmt: skip
    copies = [copy for copy in answer["copies"] if str(copy["path"]).startswith(str(tmp_path))]  # type: ignore[union-attr,call-overload,index]
    assert {(copy["path"], copy["origin"], copy["version"], copy["cuda"]) for copy in copies} == {  # type: ignore[call-overload,index]
        (str(system), "environment", "2.22.3", ""), (str(library), "torch", "2.22.3", ""),
    }  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("folder", ["rocm", "none"])
def test_without_torch_rccl_is_opened_by_name_where_rocm_is_installed(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    library = an_rccl(tmp_path / "rocm", "librccl.so.1")
    monkeypatch.setattr("ncheck.agent.answers.nccl_loaded.ROCM", str(tmp_path / folder))
    monkeypatch.setattr("ncheck.agent.answers.nccl_loaded._NAME", "libnone.so.2")
    (tmp_path / "site" / "torch" / "__init__.py").unlink()
    loaded = asked(LD_LIBRARY_PATH=str(tmp_path / "rocm"))["loaded"]
    assert (loaded and loaded["path"]) == (str(library) if folder == "rocm" else None)  # type: ignore[call-overload,index]


@needs_compiler
def test_the_loader_itself_agrees(tmp_path: Path, site: Path, asked: Asked) -> None:
    stub = a_copy(site / "nvidia" / "nccl" / "lib", "2.21.5")
    a_copy(tmp_path / "other", "2.18.3")
    for tags in ("--disable-new-dtags", "--enable-new-dtags"):
        torch_that_links(site, stub, f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib")
        library = site / "torch" / "lib" / "libtorch_cuda.so"
        ask = "import ctypes as c, sys; v = c.c_int(); c.CDLL(sys.argv[1]).torch_uses_it(c.byref(v)); print(v.value)"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "other")}
        argv = [sys.executable, "-c", ask, str(library)]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
        said = asked(LD_LIBRARY_PATH=str(tmp_path / "other"))["loaded"]
        assert isinstance(said, dict)
        assert said["version"] == spelled(int(done.stdout))


@needs_compiler
def test_nccl_inside_torch_is_told_as_static(asked: Asked, tmp_path: Path, site: Path) -> None:
    a_copy(tmp_path / "other", "2.18.3")
    text = 'const char banner[] = "NCCL version 2.10.3+cuda11.3";'
    library = compiled(site / "torch" / "lib" / "libtorch_cuda.so", text)
    assert asked(LD_LIBRARY_PATH=str(tmp_path / "other"))["loaded"] == {
        "version": "2.10.3", "path": str(library), "static": True, "how": "inside torch's own libtorch_cuda.so",
    }  # fmt: skip


@needs_compiler
def test_a_preloaded_copy_weighs_most(asked: Asked, tmp_path: Path, site: Path) -> None:
    stub = a_copy(site / "nvidia" / "nccl" / "lib", "2.21.5")
    preloaded = a_copy(tmp_path / "pre", "2.27.7")
    torch_that_links(site, stub, "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib")
    assert asked(LD_PRELOAD=str(preloaded))["loaded"] == {
        "version": "2.27.7", "path": str(preloaded), "static": False, "how": "LD_PRELOAD",
    }  # fmt: skip


@needs_compiler
def test_a_torch_without_cuda_leaves_it_to_the_wheel(asked: Asked, site: Path) -> None:
    wheel = a_copy(site / "nvidia" / "nccl" / "lib", "2.21.5")
    assert asked()["loaded"] == {
        "version": "2.21.5", "path": str(wheel), "static": False,
        "how": "the wheel nvidia-nccl of this interpreter (torch here is built without NCCL)",
    }  # fmt: skip


def test_an_interpreter_that_cannot_look_for_torch_is_not_taken_for_one_without(asked: Asked, site: Path) -> None:
    (site / "sitecustomize.py").write_text(
        "import importlib.util\ndef find_spec(name):\n    raise OSError(5, 'stale file handle')\n"
        "importlib.util.find_spec = find_spec\n"
    )
    assert asked()["loaded"] == {"error": f"{sys.executable} did not report where its packages are"}


def test_versions_are_spelled_as_nccl_counts_them() -> None:
    assert [spelled(number) for number in (22105, 23203, 21003, 2804, 2708)] == [
        "2.21.5", "2.32.3", "2.10.3", "2.8.4", "2.7.8",
    ]  # fmt: skip


def test_what_is_no_library_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"NCCL version 2.21.5+cuda12.4" * 10)
    assert [built_as(str(tmp_path / name)) for name in ("empty", "text", "nowhere")] == [("", "")] * 3


def test_what_runs_nccl_or_cuda_for_ncheck_leaves_no_file_behind() -> None:
    found = child_environment({"HOME": "/home/a", "NCCL_GRAPH_DUMP_FILE": "/home/a/graph"}, {"NCCL_ALGO": "Ring"}, {})
    assert {name: value for name, value in found.items() if name[:4] in {"HOME", "NCCL", "CUDA"}} == {
        "HOME": "/home/a", "NCCL_ALGO": "Ring", "CUDA_CACHE_DISABLE": "1",
    }  # fmt: skip
