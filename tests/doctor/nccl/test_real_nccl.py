"""A real NCCL, without a GPU: what it says of itself, and which interface it picks, against what ncheck says."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.advice.nccl_choice import nccl_choice, settings_in_force
from doctor.collect import facts_of
from doctor.model.evidence import Answer, Evidence
from doctor.model.facts import EnvironmentFacts, LoadedNcclFacts, NcclCopiesFacts, NcclCopy, NicFacts

Ask = Callable[..., Evidence]
Folder = Callable[[str], Path]

# Before 2.28.3 a link's state did not count.
RELEASES = ("2.19.3", "2.28.3")

# The identifier's bytes 8 to 35 are the address that NCCL picked: family, port, then IPv4 at 12 or IPv6 at 16.
ORACLE = """
import ctypes, json, socket, sys
library, name = ctypes.CDLL(sys.argv[1]), ctypes.create_string_buffer(128)
status = library.ncclGetUniqueId(name)
family = int.from_bytes(name.raw[8:10], "little")
address = name.raw[12:16] if family == socket.AF_INET else name.raw[16:32]
print(json.dumps([status, socket.inet_ntop(family, address) if status == 0 else ""]))
"""

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"NCCL_SOCKET_IFNAME": "lo"},
    {"NCCL_SOCKET_IFNAME": "=lo"},
    {"NCCL_SOCKET_IFNAME": "^lo"},
    {"NCCL_SOCKET_IFNAME": "^nothing"},
    {"NCCL_SOCKET_IFNAME": "nothing"},
    {"NCCL_SOCKET_FAMILY": "AF_INET"},
)


@pytest.mark.parametrize("release", RELEASES)
def test_a_copy_on_the_library_path_is_found_asked_and_told_to_be_the_one_that_loads(
    ask: Ask, nccl_folder: Folder, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    path = nccl_folder(release)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(path))
    facts = facts_of(ask(Answer("nccl"), Answer("interpreter")), (NcclCopiesFacts, LoadedNcclFacts))
    copies, loaded = facts[NcclCopiesFacts], facts[LoadedNcclFacts]
    assert isinstance(copies, NcclCopiesFacts), copies
    assert isinstance(loaded, LoadedNcclFacts), loaded
    library = os.path.realpath(path / "libnccl.so.2")
    (ours,) = [copy for copy in copies.copies if copy.path == library]
    assert ours == NcclCopy(library, release, "environment", ours.cuda)
    assert ours.cuda.startswith("12.")
    assert (loaded.version, os.path.realpath(loaded.path), loaded.static) == (release, library, False)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: " ".join(settings.values()) or "unset")
@pytest.mark.parametrize("release", RELEASES)
def test_the_interface_that_nccl_picks_is_the_one_that_we_reason_out(
    ask: Ask, nccl_folder: Folder, monkeypatch: pytest.MonkeyPatch, release: str, settings: dict[str, str]
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    facts = facts_of(ask(Answer("interfaces"), Answer("environment")), (NicFacts, EnvironmentFacts))
    nics, environment = facts[NicFacts], facts[EnvironmentFacts]
    assert isinstance(nics, NicFacts), nics
    assert isinstance(environment, EnvironmentFacts), environment
    numbers = tuple(int(part) for part in release.split("."))
    picked = nccl_choice(nics, settings_in_force(environment, numbers), numbers).picked
    assert picked_by_nccl(nccl_folder(release)) == (str(ipaddress.ip_address(picked[1].ip)) if picked else "")


def picked_by_nccl(folder: Path) -> str:
    """Return the address that NCCL itself picks in this environment, "" where it finds none."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ORACLE, str(folder / "libnccl.so.2")], capture_output=True, text=True, check=True
    )
    status, address = json.loads(done.stdout.splitlines()[-1])
    return str(address) if status == 0 else ""
