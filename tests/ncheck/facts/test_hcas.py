"""HCAs in a tree made like that of sysfs, and the facts of it; and what is no HCA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import hcas
from ncheck.facts.hcas import HCAS, HcaFacts, HcaModuleFacts, HcaPortDetails
from ncheck.facts.infiniband import Gid
from ncheck.facts.learning import facts_of
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

ADDRESS = "0000:0000:0000:0000:0000:ffff:0a14:0001"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hcas, "HCAS", str(tmp_path / "infiniband"))
    monkeypatch.setattr(hcas, "MODULES", str(tmp_path / "module"))
    return tmp_path


def laid(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")


def read(answered: Answered, reply: Reply | None = None) -> Facts:
    """Read the agent's own answer, unless another one is given."""
    reply = reply or Reply(Status.OK, value=hcas.answer(None, None, 1.0))
    facts = facts_of(answered({HCAS: reply}), [HcaFacts, HcaModuleFacts])
    return {HcaFacts: facts[HcaFacts], HcaModuleFacts: facts[HcaModuleFacts]}


def test_a_port_has_its_lanes_its_partitions_and_its_gids(sysfs: Path, answered: Answered) -> None:
    port = {"rate": "200 Gb/sec (2X NDR)", "pkeys/0": "0x800b", "pkeys/1": "0x7fff"}
    gids = {f"gids/{index}": gid for index, gid in {"0": ADDRESS, "1": EMPTY, "3": ADDRESS}.items()}
    kinds = {"gid_attrs/types/0": "RoCE v2", "gid_attrs/ndevs/0": "eth2"}
    laid(sysfs / "infiniband/mlx5_0", {"board_id": "MT_0000000838"})
    laid(sysfs / "infiniband/mlx5_0/ports/1", {**port, **gids, **kinds})
    laid(sysfs / "module", {"mlx5_core/version": "23.10-1.1.9", "mlx5_ib/refcnt": "1", "other/version": "1"})
    gid = Gid(0, ADDRESS, "RoCE v2", "eth2")
    assert read(answered) == {
        HcaFacts: HcaFacts((HcaPortDetails("mlx5_0", 1, 2, "NDR", (0x800B, 0x7FFF), (gid,), "MT_0000000838"),)),
        HcaModuleFacts: HcaModuleFacts({"mlx5_core": "23.10-1.1.9", "mlx5_ib": ""}),
    }


def test_a_gap_in_the_table_hides_no_gid_and_a_table_of_zeros_is_not_read_to_its_end(
    sysfs: Path, answered: Answered
) -> None:
    gids = {f"gids/{index}": ADDRESS if index in (9, 60) else EMPTY for index in range(64)}
    laid(sysfs / "infiniband/mlx5_0/ports/1", gids)
    assert read(answered)[HcaFacts] == HcaFacts((HcaPortDetails("mlx5_0", 1, gids=(Gid(9, ADDRESS, "", ""),)),))


def test_hundreds_of_virtual_functions_are_counted_and_not_all_sent(sysfs: Path) -> None:
    for number in range(70):
        laid(sysfs / f"infiniband/mlx5_{number}", {"ports/1/rate": "100 Gb/sec (4X EDR)"})
    answer = hcas.answer(None, None, 1.0)
    assert (len(answer["hcas"]), answer["left_out"]) == (64, 6)


def test_a_rate_without_lanes_leaves_them_unknown(sysfs: Path, answered: Answered) -> None:
    laid(sysfs / "infiniband/mlx5_0", {"board_id": "MT_0000000838", "ports/1/rate": "100 Gb/sec"})
    fact = read(answered)[HcaFacts]
    assert isinstance(fact, HcaFacts)
    assert fact.of("mlx5_0", 1) == HcaPortDetails("mlx5_0", 1, board="MT_0000000838")
    assert fact.of("mlx5_9", 2) == HcaPortDetails("mlx5_9", 2)


@pytest.mark.usefixtures("sysfs")
def test_a_machine_without_hcas_has_none_and_no_module(answered: Answered) -> None:
    assert hcas.answer(None, None, 1.0) == {"hcas": [], "left_out": 0, "modules": {}}
    assert read(answered) == {HcaFacts: Absent("no InfiniBand or RoCE device"), HcaModuleFacts: HcaModuleFacts({})}


def answer(port: dict[str, JsonValue], name: str = "mlx5_0") -> Reply:
    whole: dict[str, JsonValue] = {"port": 1, "rate": "", "pkeys": [], "gids": [], **port}
    hca: JsonValue = {"hca": name, "board": "MT_0000000838", "ports": [whole]}
    return Reply(Status.OK, value={"hcas": [hca], "left_out": 0, "modules": {}})


@pytest.mark.parametrize(
    "reply",
    [
        answer({"pkeys": ["none"]}), answer({"pkeys": ["0x10000"]}),
        answer({}, "-rf"), answer({"rate": None}), Reply(Status.FAILED, reason="lost"),
        answer({"gids": [{"index": 0, "address": "10.0.0.1", "kind": "", "netdev": ""}]}), Reply(Status.MISSING),
    ],
)  # fmt: skip
def test_nonsense_and_silence_are_unread(answered: Answered, reply: Reply) -> None:
    assert isinstance(read(answered, reply)[HcaFacts], Unread)
