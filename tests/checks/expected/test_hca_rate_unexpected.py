"""NC905: active ports have the expected rate; other ports are another check's."""

from __future__ import annotations

from typing import Any

from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.steps.judge import judge
from ncheck_checks.expected.hca_rate_unexpected import hca_rate_unexpected as check

from tests.checks.expected.nodes import said


def ports(*rates: float | None, state: str = "Active") -> InfinibandFacts:
    made = (HcaPort(f"mlx5_{at}", 1, state, "LinkUp", rate, "InfiniBand") for at, rate in enumerate(rates))
    return InfinibandFacts(tuple(made), "sysfs")


def node(fact: object, **expected: Any) -> dict[str, Facts]:
    return {"n1": {ExpectedFacts: ExpectedFacts(**expected), InfinibandFacts: fact}}


def test_a_port_that_is_slower_than_expected_is_an_error() -> None:
    found = said(judge([check], node(ports(400.0, 100.0), rate=400.0)))
    assert found == ("failed", ["mlx5_1:1 has 100 Gb/s, expected 400"])
    assert said(judge([check], node(Absent("none"), rate=400.0))) == ("failed", ["no HCA, expected 400 Gb/s"])


def test_what_could_not_be_read_is_unknown() -> None:
    assert said(judge([check], node(ports(None), rate=400.0))) == ("unknown", ["mlx5_0:1: its rate could not be read"])
    assert said(judge([check], node(Unread("ibstat hangs"), rate=400.0))) == ("unknown", ["ibstat hangs"])


def test_it_is_silent_where_the_rate_is_right_or_none_is_expected() -> None:
    assert said(judge([check], node(ports(400.0, 400.0), rate=400.0))) == ("passed", [""])
    down = node(ports(10.0, state="Down"), rate=400.0)
    assert said(judge([check], down)) == ("skipped", ["no port of an HCA is active"])
    assert said(judge([check], node(ports(10.0)))) == ("skipped", ["no rate is expected: --expect rate=400"])
