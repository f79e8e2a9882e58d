"""Which network plug-in the loader would give to NCCL, and what its file says, on libraries that a compiler made."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.agent import loader
from ncheck.agent.answers import net_plugin
from ncheck.agent.job import JobSetup
from ncheck.agent.sources import Sources
from ncheck.model.evidence import JsonValue

from .test_nccl import needs_compiler

Asked = Callable[..., dict[str, JsonValue]]
OFI = """
const char *said = "NET/OFI Initializing aws-ofi-nccl 1.16.3";
int ncclNetPlugin_v9, ncclNetPlugin_v10, ncclTunerPlugin_v3;
extern int fi_getinfo(void);
int calls(void) { return fi_getinfo(); }
__attribute__((constructor)) static void run(void) { __builtin_trap(); }
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return a function that asks in an environment, on a machine that has only what lies in tmp_path."""
    monkeypatch.setattr(net_plugin, "HCAS", str(tmp_path / "infiniband"))
    monkeypatch.setattr(net_plugin, "EFA_MODULE", str(tmp_path / "efa"))
    monkeypatch.setattr(net_plugin, "PLACES", (str(tmp_path / "opt*" / "lib"),))
    monkeypatch.setattr(loader, "DEFAULT", (str(tmp_path / "usr"),))
    monkeypatch.setattr(loader, "_cache", lambda: "\tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6\n")

    def answered(python: Path | None = None, **variables: str) -> dict[str, JsonValue]:
        sources = Sources()
        sources.job = JobSetup({}, {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **variables})
        sources.job.path = str(python) if python else None
        said: dict[str, JsonValue] = net_plugin.answer(sources, None, 60.0)
        return said

    return answered


def compiled(path: Path, source: str, *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = ("-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=0xabcdef12")
    command = ["cc", *made, "-x", "c", "-o", str(path), "-", *options]
    subprocess.run(command, input=source.encode(), check=True)
    return path


def plain(name: str) -> dict[str, JsonValue]:
    return {"name": name, "path": None, "sure": True}


def test_without_any_there_is_a_name_that_leads_nowhere(asked: Asked) -> None:
    assert asked() == {
        "named": [], "off": False, "plugins": [plain("libnccl-net.so")], "tuner": plain("libnccl-tuner.so"),
        "elsewhere": [], "efa": [], "efa_driver": None,
    }  # fmt: skip


@needs_compiler
def test_what_a_plug_in_is_is_read_from_its_file_and_never_run(tmp_path: Path, asked: Asked) -> None:
    fabric = compiled(tmp_path / "fabric" / "libfabric.so.1.25.0", "int fi_getinfo(void) { return 0; }",
                      "-Wl,-soname,libfabric.so.1")  # fmt: skip
    plug_in = compiled(tmp_path / "ofi" / "libnccl-net.so", OFI, "-x", "none", str(fabric))
    described: dict[str, JsonValue] = {
        "name": "libnccl-net.so", "path": str(plug_in), "kind": "aws-ofi-nccl", "version": "1.16.3",
        "build": "abcdef12", "net": [9, 10], "tuner": [3], "missing": ["libfabric.so.1"], "libfabric": None,
    }  # fmt: skip
    folder = str(plug_in.parent)
    assert asked(LD_LIBRARY_PATH=folder)["plugins"] == [described]
    (fabric.parent / "libfabric.so.1").symlink_to(fabric.name)
    found: JsonValue = {"path": str(fabric), "version": "libfabric.so.1.25.0"}
    both = f"{folder}:{fabric.parent}"
    assert asked(LD_LIBRARY_PATH=both)["plugins"] == [{**described, "missing": [], "libfabric": found}]
    (fabric.parent / "pkgconfig").mkdir()
    (fabric.parent / "pkgconfig" / "libfabric.pc").write_text("Name: libfabric\nVersion: 1.22.0amzn4.0\n")
    found = {"path": str(fabric), "version": "1.22.0amzn4.0"}
    assert asked(LD_LIBRARY_PATH=both)["plugins"] == [{**described, "missing": [], "libfabric": found}]


def test_names_are_looked_up_as_nccl_does(tmp_path: Path, asked: Asked) -> None:
    broken = tmp_path / "usr" / "libnccl-net-ofi.so"
    broken.parent.mkdir()
    broken.write_bytes(b"no library" * 9)
    error = {"name": "libnccl-net-ofi.so", "error": f"{broken}: not a 64-bit ELF library"}
    assert asked(NCCL_NET_PLUGIN="ofi")["plugins"] == [error]
    assert asked(NCCL_NET_PLUGIN="libnccl-net-ofi.so")["plugins"] == [error]
    assert asked(NCCL_NET_PLUGIN=str(broken))["plugins"] == [{**error, "name": str(broken)}]
    assert asked(NCCL_NET_PLUGIN="gib,ofi")["plugins"] == [plain("libnccl-net-gib.so"), error]
    assert asked(NCCL_NET_PLUGIN="/x/none.so")["plugins"] == [plain("/x/none.so")]
    off = asked(NCCL_NET_PLUGIN="None")
    assert (off["named"], off["off"], off["plugins"]) == ([], True, [])
    (tmp_path / "nccl.conf").write_text("NCCL_NET_PLUGIN=ofi\n")
    assert asked(NCCL_CONF_FILE=str(tmp_path / "nccl.conf"))["plugins"] == [error]


def test_a_cache_that_cannot_be_read_leaves_it_open_and_one_that_is_not_there_does_not(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "_cache", lambda: "")
    monkeypatch.setattr(loader, "CACHE", str(tmp_path / "ld.so.cache"))
    assert asked()["plugins"] == [plain("libnccl-net.so")]
    (tmp_path / "ld.so.cache").write_bytes(b"glibc-ld.so.cache1.1")
    assert asked()["plugins"] == [{**plain("libnccl-net.so"), "sure": False}]


def test_a_plug_in_beside_condas_interpreter_is_found_without_a_variable(tmp_path: Path, asked: Asked) -> None:
    plug_in = tmp_path / "env" / "lib" / "libnccl-net.so"
    plug_in.parent.mkdir(parents=True)
    plug_in.write_bytes(b"no library" * 9)
    error = {"name": "libnccl-net.so", "error": f"{plug_in}: not a 64-bit ELF library"}
    assert asked(python=tmp_path / "env" / "bin" / "python3")["plugins"] == [error]


def test_a_plug_in_that_lies_where_the_loader_does_not_look_is_shown(tmp_path: Path, asked: Asked) -> None:
    plug_in = tmp_path / "opt1" / "lib" / "libnccl-net.so"
    plug_in.parent.mkdir(parents=True)
    plug_in.write_bytes(b"")
    assert asked()["elsewhere"] == [str(plug_in)]


def test_devices_of_efa_are_known_by_their_driver(tmp_path: Path, asked: Asked) -> None:
    for name, driver in (("rdmap0s6", "efa"), ("mlx5_0", "mlx5_core")):
        (tmp_path / "drivers" / driver).mkdir(parents=True)
        (tmp_path / "infiniband" / name / "device").mkdir(parents=True)
        (tmp_path / "infiniband" / name / "device" / "driver").symlink_to(tmp_path / "drivers" / driver)
    (tmp_path / "efa").mkdir()
    (tmp_path / "efa" / "version").write_text("2.13.0g\n")
    said = asked()
    assert (said["efa"], said["efa_driver"]) == (["rdmap0s6"], "2.13.0g")
