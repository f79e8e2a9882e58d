"""The toolkit and cuDNN as files show them: no library is opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.agent import loader
from ncheck.agent.answers import cuda
from ncheck.agent.job import JobSetup
from ncheck.agent.sources import Sources
from ncheck.model.evidence import JsonValue

from .test_nccl import compiled, needs_compiler

Asked = Callable[..., dict[str, JsonValue]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return a function that asks in an environment, on a machine that has only what lies in tmp_path."""
    monkeypatch.setattr(cuda, "CUDA", str(tmp_path / "cuda"))
    monkeypatch.setattr(cuda, "CUDNN", (str(tmp_path / "usr" / "*-linux-gnu"),))
    monkeypatch.setattr(loader, "_cache", lambda: "")

    def answered(**variables: str) -> dict[str, JsonValue]:
        sources = Sources()
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "CUDA", "PATH"))}
        sources.job = JobSetup({"python": sys.executable}, {**plain, "PYTHONPATH": str(tmp_path / "site"), **variables})
        sources.job.enter(60.0)
        try:
            said: dict[str, JsonValue] = cuda.answer(sources, None, 60.0)
        finally:
            sources.end()
        return said

    return answered


def toolkit(root: Path, **files: str) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "nvcc").write_text("#!/bin/sh\nexit 1\n")
    (root / "bin" / "nvcc").chmod(0o755)
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def library(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def wheel(site: Path, version: str) -> Path:
    (site / f"nvidia_cudnn_cu12-{version}.dist-info").mkdir(parents=True)
    return library(site / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9")


def test_the_toolkit_is_the_one_that_torch_would_compile_with(tmp_path: Path, asked: Asked) -> None:
    home = toolkit(tmp_path / "home", include__cuda_h="/* */\n#define CUDA_VERSION 11080\n")
    conda = toolkit(tmp_path / "conda", targets__x86__cuda_h="", version_txt="CUDA Version 10.2.89\n")
    assert asked()["toolkit"] is None
    system = toolkit(tmp_path / "cuda", version_json='{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}')
    assert asked()["toolkit"] == {"path": str(system), "version": "12.4.1"}
    path = f"{conda}/bin"
    assert asked(PATH=path)["toolkit"] == {"path": str(conda), "version": "10.2.89"}
    assert asked(PATH=path, CUDA_HOME=str(tmp_path))["toolkit"] == {"path": str(conda), "version": "10.2.89"}
    assert asked(PATH=path, CUDA_HOME=str(home))["toolkit"] == {"path": str(home), "version": "11.8"}
    (home / "include" / "cuda.h").unlink()
    (home / "bin" / "nvcc").write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.6, V12.6.85'\n")
    assert asked(CUDA_HOME=str(home))["toolkit"] == {"path": str(home), "version": "12.6"}
    (home / "bin" / "nvcc").write_text("#!/bin/sh\nexit 1\n")
    assert asked(CUDA_HOME=str(home))["toolkit"] == {"path": str(home), "version": None}
    (home / "bin" / "nvcc").write_bytes(b"\x7fELF")
    error = "nvcc --version: cannot be started: [Errno 8] Exec format error: '{}/bin/nvcc'"
    assert asked(CUDA_HOME=str(home))["toolkit"] == {"path": str(home), "error": error.format(home)}


@pytest.mark.slow
@needs_compiler
def test_the_cudnn_of_the_job_is_the_one_that_the_loader_gives_to_torch(tmp_path: Path, asked: Asked) -> None:
    site = tmp_path / "site"
    (site / "torch" / "lib").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
    path = wheel(site, "9.1.0.70")
    library(tmp_path / "usr" / "x86_64-linux-gnu" / "libcudnn.so.8.9.7")
    steered = library(tmp_path / "steered" / "libcudnn.so.9.5.1")
    (tmp_path / "steered" / "libcudnn.so.9").symlink_to(steered)
    assert asked()["cudnn"] is None
    stub = compiled(tmp_path / "stub" / "libcudnn.so.9", "int c() { return 0; }", "-Wl,-soname,libcudnn.so.9")
    steered_by = {"LD_LIBRARY_PATH": str(tmp_path / "steered")}
    of_the_wheel: JsonValue = {"path": str(path), "version": "9.1.0.70"}
    of_the_variable: JsonValue = {"path": str(steered), "version": "9.5.1"}
    for tags, expected in (("--enable-new-dtags", of_the_variable), ("--disable-new-dtags", of_the_wheel)):
        arguments = (f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/../../nvidia/cudnn/lib", "-Wl,--no-as-needed", str(stub))
        compiled(site / "torch" / "lib" / "libtorch_cuda.so", "int t() { return 0; }", *arguments)
        assert asked() == {"toolkit": None, "cudnn": of_the_wheel, "copies": ["8.9.7"]}
        assert asked(**steered_by)["cudnn"] == expected
    path.unlink()
    assert asked()["cudnn"] == {"error": "torch needs libcudnn.so.9, and the loader finds none"}
    built = site / "torch" / "lib" / "libtorch_cuda.so"
    built.write_text("<html>")
    assert asked()["cudnn"] == {"error": f"torch's library: {built}: cut off"}


def test_other_frameworks_open_that_of_the_wheel_whose_header_may_say_its_version(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "site" / "tensorflow-2.18.0.dist-info").mkdir(parents=True)
    assert asked()["cudnn"] is None
    header = tmp_path / "site" / "nvidia" / "cudnn" / "include" / "cudnn_version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 3\n#define CUDNN_PATCHLEVEL 0\n")
    path = library(tmp_path / "site" / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9")
    assert asked()["cudnn"] == {"path": str(path), "version": "9.3.0"}
    header.unlink()
    assert asked()["cudnn"] == {"path": str(path), "version": None}
