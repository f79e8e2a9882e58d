"""RoCE ports, from the answer to the fact; and what is no port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.roce import ROCE, RoceFacts, RocePort
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]


def port(**changed: JsonValue) -> dict[str, JsonValue]:
    return {
        "interface": "eth2", "pfc": [3], "dscp": [[26, 3]], "ecn_np": [3], "ecn_rp": None,
        "traffic_class": "Global tclass=106\nset by cma", "tos": "0", **changed,
    }  # fmt: skip


def read(answered: Answered, ports: dict[str, JsonValue]) -> object:
    return facts_of(answered({ROCE: Reply(Status.OK, value={"ports": ports})}), [RoceFacts])[RoceFacts]


def test_a_port_is_read(answered: Answered) -> None:
    one = RocePort("eth2", (3,), ((26, 3),), (3,), None, "Global tclass=106 set by cma", "0")
    assert read(answered, {"mlx5_0:1": port()}) == RoceFacts({"mlx5_0:1": one})


def test_no_port_is_absent(answered: Answered) -> None:
    assert read(answered, {}) == Absent("no RoCE port")


@pytest.mark.parametrize("ports", [{"-x:1": port()}, {"mlx5_0": port()}, {"mlx5_0:1": port(interface="--flush")}])
def test_what_is_no_port_is_unread(answered: Answered, ports: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, ports), Unread)
