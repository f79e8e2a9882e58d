"""NC362: hardly any room left for new connections."""

from __future__ import annotations

from ncheck.facts.net_settings import Conntrack, InterfaceSettings, NetSettingsFacts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.network.conntrack_nearly_full import conntrack_nearly_full


def judged(conntrack: Conntrack | None) -> Judgement:
    settings = NetSettingsFacts({"all": InterfaceSettings()}, (32768, 60999), conntrack=conntrack)
    return judge([conntrack_nearly_full], {"n1": {NetSettingsFacts: settings}})


def test_more_than_80_per_cent_are_named_with_twice_as_many() -> None:
    assert judged(Conntrack(60000, 65536)).findings == [
        Finding("NC362", "conntrack-nearly-full", Severity.WARNING, ("n1",),
                "60000 of 65536 entries of the connection tracking table are in use", (),
                "sudo sysctl -w net.netfilter.nf_conntrack_max=131072",
                summary="the connection tracking table is nearly full"),
    ]  # fmt: skip


def test_it_is_silent_at_80_per_cent_and_below() -> None:
    assert [judged(Conntrack(count, 1000)).findings for count in (0, 214, 800)] == [[], [], []]


def test_a_node_that_tracks_nothing_is_skipped() -> None:
    assert [verdict.outcome for verdict in judged(None).verdicts] == [Outcome.SKIPPED]
