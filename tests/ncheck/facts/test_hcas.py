"""The details of HCAs, from the answer to the facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.hcas import HCAS, HcaFacts, HcaModuleFacts, HcaPortDetails
from ncheck.facts.infiniband import Gid
from ncheck.facts.learning import facts_of
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

V2 = "0000:0000:0000:0000:0000:ffff:0a14:0001"


def read(answered: Answered, reply: Reply) -> Facts:
    facts = facts_of(answered({HCAS: reply}), [HcaFacts, HcaModuleFacts])
    return {HcaFacts: facts[HcaFacts], HcaModuleFacts: facts[HcaModuleFacts]}


def answer(port: dict[str, JsonValue], name: str = "mlx5_0") -> Reply:
    whole: dict[str, JsonValue] = {"port": 1, "rate": "", "pkeys": [], "gids": [], **port}
    hca: JsonValue = {"hca": name, "board": "MT_0000000838", "ports": [whole]}
    return Reply(
        Status.OK, value={"hcas": [hca], "left_out": 0, "modules": {"mlx5_core": "23.10-1.1.9", "mlx5_ib": ""}}
    )


def test_a_port_is_read_with_its_lanes_partitions_and_gids(answered: Answered) -> None:
    gid: JsonValue = {"index": 3, "address": V2, "kind": "RoCE v2", "netdev": "eth2"}
    facts = read(answered, answer({"rate": "200 Gb/sec (2X NDR)", "pkeys": ["0x800b", "0x7fff"], "gids": [gid]}))
    assert facts == {
        HcaFacts: HcaFacts((
            HcaPortDetails("mlx5_0", 1, 2, "NDR", (0x800B, 0x7FFF), (Gid(3, V2, "RoCE v2", "eth2"),), "MT_0000000838"),
        )),
        HcaModuleFacts: HcaModuleFacts({"mlx5_core": "23.10-1.1.9", "mlx5_ib": ""}),
    }  # fmt: skip


def test_a_rate_without_lanes_leaves_them_unknown(answered: Answered) -> None:
    fact = read(answered, answer({"rate": "100 Gb/sec"}))[HcaFacts]
    assert isinstance(fact, HcaFacts)
    assert fact.of("mlx5_0", 1) == HcaPortDetails("mlx5_0", 1, board="MT_0000000838")
    assert fact.of("mlx5_9", 2) == HcaPortDetails("mlx5_9", 2)


def test_a_machine_without_hcas_has_modules_all_the_same(answered: Answered) -> None:
    facts = read(answered, Reply(Status.OK, value={"hcas": [], "left_out": 0, "modules": {}}))
    assert facts == {HcaFacts: Absent("no InfiniBand or RoCE device"), HcaModuleFacts: HcaModuleFacts({})}


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
