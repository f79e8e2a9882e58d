"""A real NCCL, without a GPU: what it says of itself, and which interface it picks, against what ncheck says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from ncheck.agent.guard import descendants
from ncheck.agent.sources import Sources
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.learning import facts_of
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts, NcclCopy
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.evidence import Answer, Evidence, Reply, Status
from ncheck.nccl.settings import CONF_FILE_VARIABLE, release_of
from ncheck.plan.planned_pick import PLANNED

from .agreement import RELEASES, RENDEZVOUS, compared, compared_rendezvous, read_pick

Ask = Callable[..., Evidence]
Folder = Callable[[str], Path]


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


@pytest.mark.parametrize("release", RELEASES)
def test_the_interface_that_nccl_picks_is_the_one_that_we_reason_out(
    ask: Ask, nccl_folder: Folder, release: str
) -> None:
    actual, reasoned = compared(*seen(ask), release, partial(picked, nccl_folder(release)))
    assert actual == reasoned


@pytest.mark.parametrize("rendezvous", RENDEZVOUS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_rendezvous_is_echoed_or_refused_as_we_reason_out(
    ask: Ask, nccl_folder: Folder, release: str, rendezvous: str
) -> None:
    actual, reasoned = compared_rendezvous(*seen(ask), release, partial(picked, nccl_folder(release)), rendezvous)
    assert actual == reasoned


def seen(ask: Ask) -> tuple[NicFacts, EnvironmentFacts]:
    facts = facts_of(ask(Answer("interfaces"), Answer("environment")), (NicFacts, EnvironmentFacts))
    nics, environment = facts[NicFacts], facts[EnvironmentFacts]
    assert isinstance(nics, NicFacts), nics
    assert isinstance(environment, EnvironmentFacts), environment
    return nics, environment


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_written_whatever_the_job_and_its_file_ask_for(
    nccl_folder: Folder, tmp_path: Path, release: str
) -> None:
    conf, logs = tmp_path / "job.conf", tmp_path / "logs"
    logs.mkdir()
    conf.write_text(f"NCCL_DEBUG=TRACE\nNCCL_DEBUG_FILE={logs}/file\nNCCL_SOCKET_IFNAME=lo\n")
    asked = {"NCCL_CONF_FILE": str(conf), "NCCL_TOPO_DUMP_FILE": f"{logs}/topo", "NCCL_GRAPH_DUMP_FILE": f"{logs}/g"}
    pick = picked(nccl_folder(release), asked)
    assert pick.address == ("127.0.0.1" if release_of(release) >= CONF_FILE_VARIABLE else pick.address) != ""
    assert picked(nccl_folder(release), {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"{logs}/%h"}).error == ""
    assert list(logs.iterdir()) == []


def picked(folder: Path, variables: dict[str, str]) -> NcclPickFacts:
    """Return what a library picks under these variables: the agent's answer, read as the head reads it."""
    sources = Sources({**os.environ, "LD_LIBRARY_PATH": str(folder)})
    sources.start({"environment": {"python": sys.executable}})
    arguments = {"variables": variables, "interfaces": []}
    said = sources.respond({"kind": "answer", "name": PLANNED.name, "timeout": 60.0, "arguments": arguments})
    return read_pick(variables, Reply(Status(said["status"]), str(said.get("reason")), value=said.get("value")))


@pytest.mark.parametrize("release", RELEASES)
def test_the_agent_tells_it_on_the_oldest_and_the_newest_python(
    ask: Ask, nccl_folder: Folder, monkeypatch: pytest.MonkeyPatch, python3: str, release: str
) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", (python3,))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nccl_folder(release)))
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "=lo")
    sources = (Answer("nccl-pick"), Answer("nccl"), Answer("interpreter"))
    facts = facts_of(ask(*sources, environment={"python": python3}), (NcclPickFacts,))
    assert facts[NcclPickFacts] == NcclPickFacts("127.0.0.1", release)


@pytest.mark.parametrize("release", RELEASES)
def test_the_listening_socket_ends_with_the_question(nccl_folder: Folder, release: str) -> None:
    before = listening()
    assert picked(nccl_folder(release), {"NCCL_SOCKET_IFNAME": "=lo"}).address == "127.0.0.1"
    assert listening() <= before


def listening() -> set[str]:
    """Return the listening sockets of this process and of all beneath it: others come and go on this machine."""
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    sockets = {words[9] for words in lines if words[3] == "0A"}
    return sockets & {inode for pid in (os.getpid(), *descendants(os.getpid())) for inode in held(pid)}


def held(pid: int) -> Iterator[str]:
    """Yield the numbers of the sockets that a process holds: "socket:[4711]"."""
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(file.readlink()).removeprefix("socket:[").removesuffix("]")
