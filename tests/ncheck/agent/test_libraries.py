"""libmpi beside its daemon, and what the job's interpreter can open by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers import libraries
from ncheck.agent.sources import Sources


def orted(folder: Path) -> dict[str, str]:
    program = folder / "bin" / "orted"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": str(program.parent)}


def test_libmpi_may_lie_in_the_daemons_own_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "MPI", ("libmpi-of-nobody.so.40",))
    environment = orted(tmp_path)
    assert "libmpi-of-nobody.so.40: cannot open" in libraries.answer(Sources(environment), None, 20.0)["mpi"]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.40").write_text("")
    assert libraries.answer(Sources(environment), None, 20.0)["mpi"] == ""


def test_without_a_daemon_nothing_is_asked(tmp_path: Path) -> None:
    assert libraries.answer(Sources({"PATH": str(tmp_path)}), None, 20.0)["mpi"] is None


def test_where_there_is_an_hca_the_library_is_opened_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlx5_0").mkdir()
    environment = {"PATH": "/usr/bin:/bin"}
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path))
    monkeypatch.setattr(libraries, "VERBS", ("libc.so.6",))
    assert libraries.answer(Sources(environment), None, 20.0)["verbs"] == ""
    monkeypatch.setattr(libraries, "VERBS", ("libnobody.so.1", "libnobody.so"))
    assert "libnobody.so.1: cannot open" in libraries.answer(Sources(environment), None, 20.0)["verbs"]
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path / "none"))
    assert libraries.answer(Sources(environment), None, 20.0)["verbs"] is None


def test_each_hca_says_whether_its_device_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, hca in enumerate(("mlx5_0", "mlx5_1", "mlx5_2")):
        (tmp_path / "hcas" / hca).mkdir(parents=True)
        (tmp_path / "verbs" / f"uverbs{number}").mkdir(parents=True)
        (tmp_path / "verbs" / f"uverbs{number}" / "ibdev").write_text("" if number == 2 else hca + "\n")
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path / "hcas"))
    monkeypatch.setattr(libraries, "UVERBS", str(tmp_path / "verbs"))
    monkeypatch.setattr(libraries, "DEVICES", "/dev/ncheck-has-no-such-folder")
    monkeypatch.setattr(libraries, "VERBS", ("libc.so.6",))
    answer = libraries.answer(Sources({"PATH": "/usr/bin:/bin"}), None, 20.0)
    assert (answer["verbs"], answer["listed"], answer["uverbs"]) == (
        "", None,
        {
            "mlx5_0": "No such file or directory", "mlx5_1": "No such file or directory",
            "mlx5_2": "no uverbs device: ib_uverbs is not loaded",
        },
    )  # fmt: skip


def test_the_real_libibverbs_lists_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlx5_0").mkdir()
    monkeypatch.setattr(libraries, "HCAS", str(tmp_path))
    answer = libraries.answer(Sources({"PATH": "/usr/bin:/bin"}), None, 20.0)
    if answer["verbs"]:
        pytest.skip("no libibverbs on this machine")
    assert answer["listed"] == []
