"""NC904: HCAs are counted, not their ports."""

from __future__ import annotations

from typing import Any

from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.steps.judge import judge
from ncheck_checks.expected.hca_count_unexpected import hca_count_unexpected as check

from tests.checks.expected.nodes import said

TWO = InfinibandFacts(
    tuple(
        HcaPort(hca, port, "Active", "LinkUp", 200.0, "InfiniBand") for hca in ("mlx5_0", "mlx5_1") for port in (1, 2)
    ),
    "sysfs",
)


def node(fact: object, **expected: Any) -> dict[str, Facts]:
    return {"n1": {ExpectedFacts: ExpectedFacts(**expected), InfinibandFacts: fact}}


def test_fewer_hcas_than_expected_are_an_error() -> None:
    assert said(judge([check], node(TWO, hcas=8))) == ("failed", ["2 HCAs, expected 8"])
    assert said(judge([check], node(Absent("no HCA"), hcas=8))) == ("failed", ["0 HCAs, expected 8"])


def test_what_could_not_be_read_is_unknown() -> None:
    assert said(judge([check], node(Unread("ibstat hangs"), hcas=8))) == ("unknown", ["ibstat hangs"])


def test_it_is_silent_where_the_number_is_right_or_none_is_expected() -> None:
    assert said(judge([check], node(TWO, hcas=2))) == ("passed", [""])
    assert said(judge([check], node(TWO, gpus=8))) == ("skipped", ["no number of HCAs is expected: --expect hcas=8"])
