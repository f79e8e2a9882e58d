"""NC370: every ephemeral port is reserved."""

from __future__ import annotations

from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.judge import judge
from ncheck.model.finding import Finding, Severity
from ncheck_checks.network.ephemeral_ports_none import ephemeral_ports_none


def findings(*reserved: tuple[int, int]) -> list[Finding]:
    settings = NetSettingsFacts({"all": InterfaceSettings()}, (32768, 60999), reserved)
    return judge([ephemeral_ports_none], {"n1": {NetSettingsFacts: settings}}).findings


def test_a_range_of_which_nothing_is_left_is_an_error() -> None:
    assert findings((1024, 65535)) == [
        Finding("NC370", "ephemeral-ports-none", Severity.ERROR, ("n1",),
                "no ephemeral port is left: all of 32768 to 60999 are reserved, and no program can connect", (),
                "sudo sysctl -w net.ipv4.ip_local_reserved_ports=", summary="no ephemeral port is left"),
    ]  # fmt: skip


def test_it_is_silent_where_one_is_left() -> None:
    assert findings() == findings((1024, 60998)) == []
