"""NC623: a clock that nothing keeps right, among clocks that are kept."""

from __future__ import annotations

from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.clock_unsynchronized import clock_unsynchronized

KEPT, FREE = True, False


def nodes(*synchronized: bool | None) -> dict[str, Facts]:
    return {
        f"n{at}": {HostSettingsFacts: HostSettingsFacts(8, synchronized=one)} for at, one in enumerate(synchronized)
    }


def outcomes(*synchronized: bool | None) -> list[Outcome]:
    return [one.outcome for one in judge([clock_unsynchronized], nodes(*synchronized)).verdicts]


def test_the_free_clock_is_named() -> None:
    assert judge([clock_unsynchronized], nodes(KEPT, FREE, KEPT)).findings == [
        Finding("NC623", "clock-unsynchronized", Severity.WARNING, ("n1",), "the clock of n1 is not synchronized", (),
                "timedatectl; chronyc tracking", kind="look"),
    ]  # fmt: skip


def test_clocks_that_are_all_free_are_compared_elsewhere_and_hidden_ones_are_skipped() -> None:
    assert outcomes(FREE, FREE) == outcomes(KEPT, FREE) == outcomes(KEPT, KEPT) == [Outcome.PASSED] * 2
    assert outcomes(KEPT, None, KEPT) == [Outcome.PASSED, Outcome.SKIPPED, Outcome.PASSED]
