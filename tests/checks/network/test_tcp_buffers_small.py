"""NC371: buffers that hold a connection to a few hundred Mb/s."""

from __future__ import annotations

from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.network.tcp_buffers_small import tcp_buffers_small


def judged(**buffers: int) -> Judgement:
    settings = NetSettingsFacts({"all": InterfaceSettings()}, (32768, 60999), buffers=buffers)
    return judge([tcp_buffers_small], {"n1": {NetSettingsFacts: settings}})


def test_buffers_of_a_page_are_named_with_the_defaults() -> None:
    fix = "sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456' net.ipv4.tcp_wmem='4096 16384 4194304'"
    assert judged(tcp_rmem=4096, tcp_wmem=4096).findings == [
        Finding("NC371", "tcp-buffers-small", Severity.WARNING, ("n1",),
                "TCP is slow: net.ipv4.tcp_rmem 4096 bytes and net.ipv4.tcp_wmem 4096 bytes at most", (), fix,
                summary="TCP's buffers are small"),
    ]  # fmt: skip


def test_it_is_silent_at_the_defaults_and_skipped_where_the_kernel_does_not_show_them() -> None:
    outcomes = [case.verdicts[0].outcome for case in (judged(tcp_rmem=6291456, tcp_wmem=4194304), judged())]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]
