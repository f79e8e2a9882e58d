"""NC427: packets that RDMA had to send again; congestion that is only marked is normal."""

from __future__ import annotations

from ncheck.facts.infiniband import EFA, HcaPort
from ncheck.model.finding import Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.rdma_packets_lost import rdma_packets_lost

from .counted import GB, node, without_hca

CHECK = [rdma_packets_lost]


def test_lost_packets_are_a_warning_with_the_congestion_beside_them() -> None:
    after = {"out_of_sequence": 6000, "rp_cnp_handled": 800}
    (found,) = judge(CHECK, {"n1": node({}, after), "n2": node()}).findings
    assert (found.severity, found.nodes) == (Severity.WARNING, ("n1",))
    assert found.message == (
        "mlx5_0:1 lost RDMA packets during the run: "
        "out_of_sequence +6000, rp_cnp_handled +800 in 64 s (93.8 per second, 12 GB received, 12 GB sent)"
    )


def test_one_acknowledgement_that_never_came_is_enough() -> None:
    (found,) = judge(CHECK, {"n1": node({"local_ack_timeout_err": 3}, {"local_ack_timeout_err": 4})}).findings
    assert "local_ack_timeout_err +1 in 64 s" in found.message


def test_a_connection_of_efa_that_is_throttled_is_enough_and_packets_that_are_sent_again_are_normal() -> None:
    efa = HcaPort("rdmap0s6", 1, "Active", "LinkUp", 100, EFA)
    again = {"retrans_pkts": 10**6}
    (found,) = judge(CHECK, {"n1": node({}, {**again, "impaired_remote_conn_events": 1}, efa)}).findings
    assert found.message == (
        "rdmap0s6:1 lost RDMA packets during the run: impaired_remote_conn_events +1, retrans_pkts +1000000 in 64 s "
        "(0.0156 per second, 12 GB received, 12 GB sent)"
    )
    assert judge(CHECK, {"n1": node({}, {**again, "rx_drops": 9, "retrans_timeout_events": 9}, efa)}).findings == []


def test_few_losses_in_much_traffic_and_marked_congestion_are_normal() -> None:
    few, rare = node({}, {"packet_seq_err": 9}, moved=0), node({}, {"packet_seq_err": 500}, moved=100 * GB)
    marked = node({}, {"np_cnp_sent": 10**6, "rp_cnp_handled": 10**6, "rnr_nak_retry_err": 4})
    assert judge(CHECK, {"n1": few, "n2": rare, "n3": marked}).findings == []


def test_a_node_without_an_hca_has_no_rdma() -> None:
    (verdict,) = judge(CHECK, {"n1": without_hca({}, {})}).verdicts
    assert (verdict.outcome.value, verdict.reason) == ("skipped", "no InfiniBand or RoCE device")
