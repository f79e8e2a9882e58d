"""NC721: below 0.75 of what the links should give something is broken."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.facts.pcie import PcieFacts, PcieLink
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.parse.interface_names import Kind
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Stage, Timing
from ncheck.steps.judge import judge
from ncheck_checks.measured.bandwidth_far_too_low import bandwidth_far_too_low
from ncheck_checks.measured.bandwidth_low import bandwidth_low
from ncheck_checks.measured.scaling_poor import scaling_poor

from .bandwidths import board, in_one_domain, inside, part, probed, together
from .results import both


def test_a_node_far_below_is_an_error_with_the_limiting_term() -> None:
    assert judge([bandwidth_far_too_low], inside(n1=450.0, n2=245.0)).findings == [
        Finding("NC721", "bandwidth-far-too-low", Severity.ERROR, ("n2",),
                "all-reduce inside n2: 245 GB/s of 490 expected (0.50), limited by NVLS over 8 GPUs: "
                "18 NVLinks x 20.6 GB/s", (), "nvidia-smi nvlink -s",
                kind="look", summary="all-reduce inside nodes at 50% of expected"),
    ]  # fmt: skip


def test_an_nvlink_domain_that_only_reaches_its_nics_is_an_error_and_imex_the_place_to_look() -> None:
    message = (
        "all-reduce on 3 nodes: 380 GB/s of 722 expected (0.53), limited by ring over the NVLink domain: "
        "18 NVLinks x 40.1 GB/s"
    )
    for busbw, found in ((380.0, True), (660.0, False)):
        nodes = {name: {**own, **in_one_domain()} for name, own in together(3, busbw).items()}
        findings = judge([bandwidth_far_too_low], nodes).findings
        assert [(one.message, one.fix) for one in findings] == [(message, "nvidia-imex-ctl -N")] * found


def test_what_an_option_names_is_said_to_be_its_word_and_sockets_have_no_fabric_to_look_at() -> None:
    result = replace(part(Stage.ALL, ("n1", "n2", "n3"), 8, 1.0, expect=380.0), planned=("eth0",))
    (finding,) = judge([bandwidth_far_too_low], {name: probed(result) for name in result.step.group}).findings
    assert finding.message == "all-reduce on 3 nodes: 1 GB/s of 380 expected (0.00), set by --expect"
    assert finding.fix == "sudo ethtool -S eth0"


def test_what_nccl_says_of_gpudirect_is_evidence() -> None:
    result = part(Stage.ALL, ("n1", "n2", "n3"), 8, 190.0)
    told = replace(result, used=("n2:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",))
    nodes = {"n1": probed(result), "n2": probed(told), "n3": probed(result)}
    found = judge([bandwidth_far_too_low], nodes).findings
    assert [(one.evidence, one.fix) for one in found] == [
        (("NCCL's log: GPUDirect RDMA is off for mlx5_0 of n2",), "sudo modprobe nvidia_peermem")
    ]  # fmt: skip


def test_lanes_that_are_missing_are_evidence() -> None:
    narrow = PcieFacts({}, {"mlx5_4": (PcieLink(8, 16.0, 16, 32.0),)})
    nodes = together(3, 200.0)
    nodes["n1"] = {**nodes["n1"], PcieFacts: narrow}
    found = judge([bandwidth_far_too_low], nodes).findings
    assert [one.evidence for one in found] == [("PCIe x8 of x16 at mlx5_4 of n1",)]


def test_repeats_that_differ_are_evidence_and_make_it_no_less_an_error() -> None:
    result = part(Stage.ALL, ("n1", "n2", "n3"), 8, 200.0)
    (calm,) = result.rows
    noisy = replace(calm, fastest=calm.seconds * 0.5, slowest=calm.seconds * 1.5, timing=Timing(2, 5))
    nodes = dict.fromkeys(result.step.group, probed(replace(result, rows=(noisy,))))
    found = judge([bandwidth_far_too_low], nodes).findings
    assert [one.evidence for one in found] == [("noisy: the repeats differ by 100% of their median",)]


def test_all_nodes_that_were_not_reached_leave_the_most_that_were() -> None:
    names = ("n1", "n2", "n3", "n4")
    two, three = (part(Stage.SCALING, names[:count], 8, busbw) for count, busbw in ((2, 480.0), (3, 100.0)))
    nodes = {"n1": probed(two, three), "n2": probed(two, three), "n3": probed(three), "n4": probed()}
    assert [one.nodes for one in judge([bandwidth_far_too_low], nodes).findings] == [("n1", "n2", "n3")]


def test_a_node_that_is_slow_with_each_partner_is_evidence_of_what_all_of_them_reach() -> None:
    names = ("n1", "n2", "n3")
    speeds = {("n1", "n2"): 20.0, ("n2", "n3"): 20.0, ("n3", "n1"): 48.0}
    results: list[tuple[tuple[str, ...], NodeResult]] = [
        (pair, part(Stage.PAIR, pair, 1, busbw)) for pair, busbw in speeds.items()
    ]
    results.append((names, part(Stage.ALL, names, 8, 160.0)))
    nodes = {name: probed(*(result for group, result in results if name in group)) for name in names}
    found = judge([bandwidth_far_too_low], nodes).findings
    assert [(one.nodes, one.evidence) for one in found] == [(names, ("n2 is slow with every partner",))]


def test_a_node_whose_gpu_name_is_garbled_has_not_passed() -> None:
    nodes = {**inside(n1=450.0, n2=450.0), "n3": probed(part(Stage.INSIDE, ("n3",), 8, 80.0), model="NVIDIA H1#0")}
    assert [verdict.outcome for verdict in judge([bandwidth_far_too_low], nodes).verdicts] == [
        Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN,
    ]  # fmt: skip


def test_no_node_passes_where_one_of_them_takes_the_expectation_of_all_away() -> None:
    names = ("n1", "n2", "n3", "n4")
    sick: tuple[Facts, ...] = (board(model="NVIDIA H999"), {InfinibandFacts: InfinibandFacts((), "sysfs")})
    for lost in sick:
        runs = [part(Stage.INSIDE, (name,), 8, 470.0) for name in names]
        runs += [part(Stage.PAIR, names[:2], 1, 47.0), part(Stage.PAIR, names[2:], 1, 47.0)]
        runs.append(part(Stage.ALL, names, 8, 60.0))
        nodes = {name: probed(*(run for run in runs if name in run.step.group)) for name in names}
        assert {one.outcome for one in judge([bandwidth_far_too_low], nodes).verdicts} == {Outcome.FAILED}
        nodes["n4"] = {**nodes["n4"], **lost}
        for check in (bandwidth_far_too_low, bandwidth_low, scaling_poor):
            assert {one.outcome for one in judge([check], nodes).verdicts} == {Outcome.UNKNOWN}


def test_where_nothing_is_known_of_the_network_what_was_measured_inside_has_not_passed_for_all() -> None:
    names = ("n1", "n2", "n3")
    sockets = replace(part(Stage.ALL, names, 8, 60.0), planned=("eth0",))
    nodes = {name: probed(part(Stage.INSIDE, (name,), 8, 470.0), sockets) for name in names}
    reason = "no expected bandwidth (unknown: the bandwidth of sockets between more than two ranks)"
    assert {(one.outcome, one.reason) for one in judge([bandwidth_far_too_low], nodes).verdicts} == {
        (Outcome.SKIPPED, reason)
    }  # fmt: skip


def test_a_step_of_which_one_node_reports_nothing_lets_no_node_pass() -> None:
    names = ("n1", "n2", "n3", "n4")
    alone = {name: part(Stage.INSIDE, (name,), 8, 470.0) for name in names}
    whole = part(Stage.ALL, names, 8, 60.0)
    nodes = {name: probed(alone[name], whole) for name in names} | {"n4": probed(alone["n4"])}
    reason = "no bandwidth of the all-reduce on 4 nodes: n4 reported nothing"
    for check in (bandwidth_far_too_low, bandwidth_low, scaling_poor):
        assert {(one.outcome, one.reason) for one in judge([check], nodes).verdicts} == {(Outcome.UNKNOWN, reason)}


def test_it_is_silent_about_what_is_merely_low() -> None:
    for nodes in (inside(n1=380.0, n2=471.2), together(4, 310.0)):
        assert {verdict.outcome for verdict in judge([bandwidth_far_too_low], nodes).verdicts} == {Outcome.PASSED}


def test_sockets_are_never_far_too_slow_for_a_busy_machine_halves_them() -> None:
    result = part(Stage.PAIR, ("n1", "n2"), 1, 0.05)
    result = replace(result, step=replace(result.step, method=Method.TCP), planned=("eth0",))
    wire = NicFacts((Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, speed=1000),))
    node = {**board(), NicFacts: wire, ProbeFacts: ProbeFacts((result,))}
    judgement = judge([bandwidth_far_too_low], {"n1": node, "n2": node})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 2


def test_of_operations_on_the_same_nodes_the_worst_one_decides_which_check_tells_of_them() -> None:
    nodes = both(inside(n1=400.0, n2=470.0), inside(Op.ALL_GATHER, n1=100.0, n2=362.0))
    assert judge([bandwidth_low], nodes).findings == []
    (finding,) = judge([bandwidth_far_too_low], nodes).findings
    assert (finding.nodes, finding.message) == (
        ("n1",),
        (
            "all-gather inside n1: 100 GB/s of 371 expected (0.27), limited by ring over NVLink: 18 NVLinks x 20.6 "
            "GB/s; all-reduce 400 GB/s of 490 expected (0.82)"
        ),
    )
