"""The environment's answer: what steers the job, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ncheck.agent.answers.environment import answer, chosen
from ncheck.agent.sources import Sources


def test_what_steers_the_job_is_told_and_the_rest_is_not() -> None:
    told, hidden = chosen({"NCCL_DEBUG": "WARN", "PATH": "/bin", "EDITOR": "vi", "NCCL_IB_PKEY": "0x8001"})
    assert told == {"NCCL_DEBUG": "WARN", "NCCL_IB_PKEY": "0x8001", "PATH": "/bin"}
    assert hidden == []


@pytest.mark.parametrize(
    "name", ["NCCL_API_TOKEN", "HOROVOD_SECRET_KEY", "OMPI_PASSWORD", "UCX_access_key", "https_proxy", "I_MPI_AUTH"]
)
def test_a_secrets_value_never_leaves_the_node(name: str) -> None:
    said = answer(Sources({name: "hunter2", "PATH": "/bin"}), None, 5.0)
    assert "hunter2" not in json.dumps(said)
    assert said["secret"] == [name]


def test_the_files_of_nccl_come_line_by_line_without_their_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".nccl.conf").write_text("# ours\nNCCL_SOCKET_IFNAME==eth0\nNCCL_API_KEY=hunter2\n")
    said = answer(Sources({}), None, 5.0)
    assert said["files"][f"{tmp_path}/.nccl.conf"] == ["# ours", "NCCL_SOCKET_IFNAME==eth0", "NCCL_API_KEY=<hidden>"]


def test_a_file_named_by_the_environment_takes_the_place_of_the_homes(tmp_path: Path) -> None:
    said = answer(Sources({"NCCL_CONF_FILE": str(tmp_path)}), None, 5.0)
    assert said["files"][str(tmp_path)] == {"error": "it is a folder"}


def test_a_value_that_is_not_utf_8_can_be_sent() -> None:
    told, _ = chosen({"NCCL_DEBUG_FILE": "/tmp/caf\udce9"})  # noqa: S108  a name, as os.environ would hold it
    assert json.dumps(told).encode("ascii")
    assert told == {"NCCL_DEBUG_FILE": "/tmp/caf\\xe9"}  # noqa: S108


def test_a_variable_whose_file_is_not_there_is_named_wherever_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "there.xml").touch()
    (tmp_path / ".nccl.conf").write_text(f"NCCL_TOPO_FILE={tmp_path}/gone.xml\nNCCL_GRAPH_FILE={tmp_path}/there.xml\n")
    assert answer(Sources({}), None, 5.0)["missing"] == ["NCCL_TOPO_FILE"]
    outweighed = {"NCCL_TOPO_FILE": f"{tmp_path}/there.xml", "NCCL_GRAPH_FILE": f"{tmp_path}/none.xml"}
    assert answer(Sources(outweighed), None, 5.0)["missing"] == ["NCCL_GRAPH_FILE"]
    of_open_mpi = {"OPAL_PREFIX": f"{tmp_path}/openmpi", "OPAL_LIBDIR": str(tmp_path), "OPAL_MANDIR": "/nowhere"}
    assert answer(Sources(of_open_mpi), None, 5.0)["missing"] == ["NCCL_TOPO_FILE", "OPAL_PREFIX"]
