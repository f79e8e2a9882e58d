"""NC428: a port that has counted far more errors than all others is a warning; what many have is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.facts.error_counters import Counted, ErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.link_counters_stand_out import link_counters_stand_out
from ncheck_checks.infiniband.link_errors_grow import link_errors_grow

from .counted import PORT, node, without_hca

DAYS = 12 * 86400.0
HCAS = tuple(f"mlx5_{number}" for number in range(8))


def counting(errors: Mapping[str, dict[str, int]] | None = None, counters: int = 18) -> Facts:
    """Return a node of twelve days with eight ports, and what some of them have counted."""
    ports = {f"{hca}:1": Counted(counters, (errors or {}).get(hca, {})) for hca in HCAS}
    return {
        **node(),
        InfinibandFacts: InfinibandFacts(tuple(replace(PORT, hca=hca) for hca in HCAS), "sysfs"),
        ErrorCountersFacts: ErrorCountersFacts(DAYS, ports),
    }


def cluster(**bad: Facts) -> dict[str, Facts]:
    return {f"n{number}": bad.get(f"n{number}", counting()) for number in range(64)}


def test_a_port_with_500_recoveries_where_511_others_have_none_is_named() -> None:
    nodes = cluster(
        n7=counting({"mlx5_3": {"link_error_recovery": 500, "link_downed": 3, "port_xmit_discards": 10**6}})
    )
    message = "mlx5_3:1 counted 500 link_error_recovery in 12 days (42 per day); the median of 511 others is 0"
    assert judge([link_counters_stand_out], nodes).findings == [
        Finding(
            "NC428", "link-counters-stand-out", Severity.WARNING, ("n7",), message, (),
            "grep -H . /sys/class/infiniband/mlx5_3/ports/1/*counters/*", kind="look",
            summary="mlx5_3:1 has counted far more errors than others",
        )
    ]  # fmt: skip


def test_what_many_ports_have_and_what_depends_on_traffic_is_normal() -> None:
    restarted = {f"n{number}": counting({hca: {"link_downed": 12} for hca in HCAS}) for number in range(16)}
    traffic = counting({"mlx5_0": {"port_xmit_discards": 10**6, "out_of_sequence": 10**5, "np_cnp_sent": 10**9}})
    single = counting({"mlx5_1": {"link_downed": 9, "symbol_error": 99}})  # a cable was exchanged
    assert judge([link_counters_stand_out], cluster(**restarted, n20=traffic, n21=single)).findings == []


def test_a_port_that_no_job_uses_is_not_named() -> None:
    spare = counting({"mlx5_3": {"symbol_error": 65535}})
    down = tuple(replace(PORT, hca=hca, state="Down" if hca == "mlx5_3" else "Active") for hca in HCAS)
    nodes = cluster(n7={**spare, InfinibandFacts: InfinibandFacts(down, "sysfs")})
    assert judge([link_counters_stand_out], nodes).findings == []
    assert len(judge([link_counters_stand_out], cluster(n7=spare)).findings) == 1


def test_network_cards_are_compared_where_no_hca_is() -> None:
    nodes = {f"n{number}": without_hca({}, {}) for number in range(4)} | {
        "bad": without_hca({"rx_crc_errors": 900}, {})
    }
    (found,) = judge([link_counters_stand_out], nodes).findings
    assert (found.nodes, found.summary) == (("bad",), "eth0 has counted far more errors than others")


def test_few_ports_cannot_be_compared_and_are_no_pass() -> None:
    few = {"n1": node({"symbol_error": 65535}), "n2": node(), "n3": node()}
    none = {"n1": counting(counters=0), "n2": {**node(), ErrorCountersFacts: Absent("no /sys")}}
    for nodes in (few, none):
        assert {one.outcome for one in judge([link_counters_stand_out], nodes).verdicts} == {Outcome.SKIPPED}


def test_errors_that_still_grow_are_the_cause() -> None:
    growing = node({"port_rcv_errors": 900}, {"port_rcv_errors": 950})
    nodes = {f"n{number}": node() for number in range(7)} | {"bad": growing}
    grows, stands_out = judge([link_errors_grow, link_counters_stand_out], nodes).findings
    assert (stands_out.code, stands_out.see) == ("NC428", (grows.code,))
