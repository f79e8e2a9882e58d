"""NC704: NCCL's own log names another network, HCA or interface than it was held to."""

from __future__ import annotations

import pytest
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe.node_result import Method
from ncheck.steps.judge import judge
from ncheck_checks.measured.net_fell_back import net_fell_back

from .results import probed, step, well

IB = step(1, "n1", "n2", net="IB")
SOCKET = "n1:7:8 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.1<0>"
HCAS = "n1:7:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.1<0>"
BOOTSTRAP = "n1:7:8 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.1<0>"
PLAN = ("mlx5_0:1", "mlx5_1:1", "eth0")


def test_sockets_under_a_pin_to_infiniband_are_an_error() -> None:
    nodes = probed(n1=well(IB, planned=PLAN, used=(BOOTSTRAP, SOCKET)))
    assert judge([net_fell_back], nodes).findings == [
        Finding("NC704", "net-fell-back", Severity.ERROR, ("n1",), "NCCL was pinned to IB but used Socket",
                (BOOTSTRAP, SOCKET), "ibstat; ls -l /dev/infiniband", kind="look"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("planned", "used", "told"),
    [
        (PLAN, ("[0] NCCL INFO Using network Socket",), "NCCL was pinned to IB but used Socket"),
        (
            ("mlx5_0:1", "eth0"), (BOOTSTRAP, HCAS, "[0] NCCL INFO Using network IB"),
            "NCCL used mlx5_1:1 instead of the planned mlx5_0:1",
        ),
        (
            ("mlx5_0:1", "mlx5_1:1", "eth9"), (BOOTSTRAP, HCAS),
            "NCCL used eth0 instead of the planned eth9",
        ),
    ],
)  # fmt: skip
def test_what_was_used_instead_is_named(planned: tuple[str, ...], used: tuple[str, ...], told: str) -> None:
    (finding,) = judge([net_fell_back], probed(n1=well(IB, planned=planned, used=used))).findings
    assert finding.message == told


def test_it_is_silent_where_nccl_took_what_the_plan_names() -> None:
    free = step(1, "n1", "n2")
    for part in (
        well(IB, planned=PLAN, used=(BOOTSTRAP, HCAS, "[0] NCCL INFO Using network IB")),
        well(IB, planned=PLAN, used=(BOOTSTRAP, SOCKET, HCAS, "[0] NCCL INFO Using network IBext_v8")),
        well(free, planned=("eth0",), used=(BOOTSTRAP, SOCKET, "[0] NCCL INFO Using network Socket")),
        well(free, planned=("eth0",), used=(SOCKET.replace("<0>", "<0> [1]eth1:10.2.0.1<0>"),)),
    ):
        assert [one.outcome for one in judge([net_fell_back], probed(n1=part)).verdicts] == [Outcome.PASSED]


def test_it_is_skipped_where_nccl_said_nothing_of_a_network() -> None:
    for part in (
        well(step(1, "n1"), planned=PLAN, used=(SOCKET,)),
        well(step(1, "n1", "n2", method=Method.TCP), planned=("eth0",)),
    ):
        assert [one.outcome for one in judge([net_fell_back], probed(n1=part)).verdicts] == [Outcome.SKIPPED]
