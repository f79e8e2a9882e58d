"""NC355: fewer than 10000 ports for connections."""

from __future__ import annotations

from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.ephemeral_ports_few import ephemeral_ports_few


def findings(first: int, last: int, *reserved: tuple[int, int]) -> list[Finding]:
    settings = NetSettingsFacts({"all": InterfaceSettings()}, (first, last), reserved)
    return judge([ephemeral_ports_few], {"n1": {NetSettingsFacts: settings}}).findings


def test_a_narrow_range_is_named() -> None:
    assert findings(50000, 51000) == [
        Finding("NC355", "ephemeral-ports-few", Severity.WARNING, ("n1",),
                "only 1001 ephemeral ports: 50000 to 51000", (),
                "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'"),
    ]  # fmt: skip


def test_a_wide_range_of_which_most_is_reserved_is_named() -> None:
    (finding,) = findings(32768, 60999, (30000, 55000), (60990, 61010))
    assert finding.message == "only 5989 ephemeral ports: 32768 to 60999, some of them reserved"
    assert finding.fix == "sudo sysctl -w net.ipv4.ip_local_reserved_ports="


def test_it_is_silent_at_the_default_at_a_widened_range_and_at_a_few_reserved_ports() -> None:
    assert findings(32768, 60999) == findings(1024, 65535) == findings(32768, 60999, (8080, 8080), (50051, 50052)) == []


def test_a_range_of_which_nothing_is_left_is_an_error() -> None:
    assert findings(32768, 60999, (1024, 65535)) == [
        Finding("NC355", "ephemeral-ports-few", Severity.ERROR, ("n1",),
                "no ephemeral port is left: all of 32768 to 60999 are reserved, and no program can connect", (),
                "sudo sysctl -w net.ipv4.ip_local_reserved_ports=", summary="no ephemeral port is left"),
    ]  # fmt: skip


def test_settings_that_could_not_be_read_are_unknown() -> None:
    verdicts = judge([ephemeral_ports_few], {"n1": {NetSettingsFacts: Unread("no answer")}}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.UNKNOWN]
