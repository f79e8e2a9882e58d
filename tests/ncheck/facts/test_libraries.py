"""libmpi beside its daemon, and what the job's interpreter can open by name, and the facts of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import libraries
from ncheck.agent.sources import Sources
from ncheck.facts.learning import facts_of
from ncheck.facts.libraries import LIBRARIES, LibraryFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]
NO_HCA, NO_DAEMON = Absent("no InfiniBand or RoCE device"), Absent("no daemon of Open MPI")


@pytest.fixture
def found(
    answered: Answered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str]], LibraryFacts]:
    """Return a function from an environment to the facts of what the agent finds in it, on a node without HCAs."""
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path / "none"))

    def facts(environment: dict[str, str]) -> LibraryFacts:
        fact = read(answered, libraries.answer(Sources(environment), None, 20.0))
        assert isinstance(fact, LibraryFacts), fact
        return fact

    return facts


Found = Callable[[dict[str, str]], LibraryFacts]
PLAIN = {"PATH": "/usr/bin:/bin"}


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({LIBRARIES: Reply(Status.OK, value=value)}), [LibraryFacts])[LibraryFacts]


def orted(folder: Path) -> dict[str, str]:
    program = folder / "bin" / "orted"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": str(program.parent)}


def test_libmpi_may_lie_in_the_daemons_own_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Found
) -> None:
    monkeypatch.setattr(libraries, "MPI", ("libmpi-of-nobody.so.40",))
    environment = orted(tmp_path)
    assert "libmpi-of-nobody.so.40: cannot open" in str(found(environment).mpi)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.40").write_text("")
    assert found(environment) == LibraryFacts(NO_HCA, "")


def test_without_a_daemon_and_an_hca_nothing_is_asked(tmp_path: Path, found: Found) -> None:
    assert found({"PATH": str(tmp_path)}) == LibraryFacts(NO_HCA, NO_DAEMON)


def test_where_there_is_an_hca_the_library_is_opened_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Found
) -> None:
    (tmp_path / "mlx5_0").mkdir()
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path))
    monkeypatch.setattr(libraries, "VERBS", ("libc.so.6",))
    assert found(PLAIN).verbs == ""
    monkeypatch.setattr(libraries, "VERBS", ("libnobody.so.1", "libnobody.so"))
    assert "libnobody.so.1: cannot open" in str(found(PLAIN).verbs)


def test_each_hca_says_whether_its_device_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Found) -> None:
    for number, hca in enumerate(("mlx5_0", "mlx5_1", "mlx5_2")):
        (tmp_path / "hcas" / hca).mkdir(parents=True)
        (tmp_path / "verbs" / f"uverbs{number}").mkdir(parents=True)
        (tmp_path / "verbs" / f"uverbs{number}" / "ibdev").write_text("" if number == 2 else hca + "\n")
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path / "hcas"))
    monkeypatch.setattr(libraries, "UVERBS", str(tmp_path / "verbs"))
    monkeypatch.setattr(libraries, "DEVICES", "/dev/ncheck-has-no-such-folder")
    monkeypatch.setattr(libraries, "VERBS", ("libc.so.6",))
    facts = found(PLAIN)
    assert (facts.verbs, facts.listed, facts.uverbs) == (
        "", None,
        {
            "mlx5_0": "No such file or directory", "mlx5_1": "No such file or directory",
            "mlx5_2": "no uverbs device: ib_uverbs is not loaded",
        },
    )  # fmt: skip


def test_the_real_libibverbs_lists_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Found) -> None:
    (tmp_path / "mlx5_0").mkdir()
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path))
    facts = found(PLAIN)
    if facts.verbs:
        pytest.skip("no libibverbs on this machine")
    assert facts.listed == ()


@pytest.mark.parametrize("value", [None, {}, {"verbs": None}, {"verbs": 7, "mpi": ""}, {"verbs": "", "mpi": []}])
def test_nonsense_is_unread(answered: Answered, value: JsonValue) -> None:
    assert isinstance(read(answered, value), Unread)


def test_the_devices_of_hcas_are_read_and_a_recording_of_an_earlier_release_has_none(answered: Answered) -> None:
    value: JsonValue = {"verbs": "", "uverbs": {"mlx5_0": "Permission denied"}, "listed": ["mlx5_0"], "mpi": ""}
    assert read(answered, value) == LibraryFacts("", "", {"mlx5_0": "Permission denied"}, ("mlx5_0",))
    assert read(answered, {"verbs": "", "mpi": ""}) == LibraryFacts("", "", Absent("no InfiniBand or RoCE device"))
    assert isinstance(read(answered, {"verbs": "", "uverbs": {"-rf": ""}, "listed": [], "mpi": ""}), Unread)
