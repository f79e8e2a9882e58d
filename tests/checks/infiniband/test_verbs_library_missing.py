"""NC408: an HCA in use without the library that NCCL opens."""

from __future__ import annotations

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.verbs_library_missing import verbs_library_missing

LOST = "libibverbs.so.1: cannot open shared object file: No such file or directory"
PASSED, SKIPPED, FAILED = Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED


def node(verbs: str | Absent, layer: str = "InfiniBand", state: str = "Active") -> Facts:
    port = HcaPort("mlx5_0", 1, state, "LinkUp", 200.0, layer)
    return {LibraryFacts: LibraryFacts(verbs, Absent("no MPI")), InfinibandFacts: InfinibandFacts((port,), "sysfs")}


def outcomes(*nodes: Facts) -> list[Outcome]:
    verdicts = judge([verbs_library_missing], {f"n{n}": facts for n, facts in enumerate(nodes)}).verdicts
    return [verdict.outcome for verdict in verdicts]


def test_a_node_that_cannot_load_it_is_named_even_alone() -> None:
    assert judge([verbs_library_missing], {"n1": node(LOST)}).findings == [
        Finding("NC408", "verbs-library-missing", Severity.ERROR, ("n1",), f"NCCL cannot use InfiniBand: {LOST}", (),
                "sudo apt-get install libibverbs1 ibverbs-providers"),
    ]  # fmt: skip


def test_roce_ports_count_where_another_node_can_use_them() -> None:
    assert outcomes(node(LOST, "Ethernet"), node("", "Ethernet")) == [FAILED, PASSED]


def test_it_is_silent_where_no_node_uses_roce_and_where_no_port_is_active() -> None:
    assert outcomes(node(LOST, "Ethernet"), node(LOST, "Ethernet")) == [SKIPPED, SKIPPED]
    assert outcomes(node(LOST, state="Down"), node("")) == [SKIPPED, PASSED]


def test_a_node_without_a_device_is_skipped() -> None:
    none: Facts = {**node(Absent("no device")), InfinibandFacts: Absent("no InfiniBand or RoCE device")}
    assert outcomes(none, node("")) == [SKIPPED, PASSED]


def with_devices(listed: tuple[str, ...] | None, uverbs: str) -> Facts:
    facts = LibraryFacts("", Absent("no MPI"), {"mlx5_0": uverbs}, listed)
    return {**node(""), LibraryFacts: facts}


def test_a_libibverbs_that_finds_no_hca_although_the_device_opens_is_named() -> None:
    (found,) = judge([verbs_library_missing], {"n1": with_devices((), "")}).findings
    assert found.message == (
        "NCCL cannot use InfiniBand: libibverbs loads, and lists no HCA: the library for this card (such as libmlx5)"
        " is missing"
    )


def test_it_is_silent_where_the_device_does_not_open_or_the_library_was_not_asked() -> None:
    assert outcomes(with_devices((), "Permission denied"), with_devices(None, ""), with_devices(("mlx5_0",), "")) == [
        PASSED, PASSED, PASSED,
    ]  # fmt: skip
