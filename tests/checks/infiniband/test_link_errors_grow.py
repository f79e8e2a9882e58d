"""NC426: damaged data counts where it was counted during the run, and symbols where they are more than may be."""

from __future__ import annotations

import pytest
from ncheck.model.finding import Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.link_errors_grow import link_errors_grow

from .counted import node, without_hca

CHECK = [link_errors_grow]


def test_symbol_errors_beyond_one_in_a_million_millions_of_bits_are_a_warning() -> None:
    (found,) = judge(CHECK, {"n1": node({"symbol_error": 40}, {"symbol_error": 1240}), "n2": node()}).findings
    assert (found.severity, found.nodes) == (Severity.WARNING, ("n1",))
    assert found.message == (
        "mlx5_0:1 received damaged data during the run: "
        "symbol_error +1200 in 64 s (18.8 per second, 12 GB received, 12 GB sent)"
    )


def test_as_many_symbol_errors_as_the_specification_allows_are_no_fault() -> None:
    assert judge(CHECK, {"n1": node({}, {"symbol_error": 25})}).findings == []  # 64 s of 400 Gb/s: 25.6
    assert len(judge(CHECK, {"n1": node({}, {"symbol_error": 27})}).findings) == 1


@pytest.mark.parametrize("counter", ["port_rcv_errors", "link_error_recovery", "local_link_integrity_errors"])
def test_other_damage_counts_from_the_first(counter: str) -> None:
    assert len(judge(CHECK, {"n1": node({counter: 7}, {counter: 8})}).findings) == 1
    assert judge(CHECK, {"n1": node({counter: 7}, {counter: 7})}).findings == []


def test_a_network_card_that_counts_damaged_frames_is_named_where_no_hca_is() -> None:
    (found,) = judge(CHECK, {"n1": without_hca({"rx_crc_errors": 5}, {"rx_crc_errors": 105})}).findings
    assert found.summary == "eth0 received damaged data during the run"


@pytest.mark.parametrize("counter", ["rx_crc_errors", "rx_frame_errors"])
def test_one_damaged_ethernet_frame_of_a_run_is_what_the_standard_allows(counter: str) -> None:
    assert judge(CHECK, {"n1": without_hca({counter: 5}, {counter: 6})}).findings == []
    assert len(judge(CHECK, {"n1": without_hca({counter: 5}, {counter: 7})}).findings) == 1


def test_lost_packets_are_no_damage() -> None:
    assert judge(CHECK, {"n1": node({}, {"out_of_sequence": 9000, "np_cnp_sent": 9000})}).findings == []
