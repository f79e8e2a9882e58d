"""The order of a login's steps: a check is green only where the login is known to have got past its step."""

from __future__ import annotations

import pytest
from ncheck.facts.login import LoginFacts
from ncheck.model.check import Inconclusive
from ncheck.model.cluster import Facts
from ncheck.model.evidence import INFRASTRUCTURE, Cause, Login
from ncheck.model.finding import Outcome
from ncheck.network.logins import STEPS, never_got_that_far
from ncheck.steps.judge import judge
from ncheck_checks.ssh.connection_cut import connection_cut
from ncheck_checks.ssh.connection_filtered import connection_filtered
from ncheck_checks.ssh.host_unroutable import host_unroutable
from ncheck_checks.ssh.ssh_login_stalls import ssh_login_stalls


def test_every_cause_that_a_node_can_be_blamed_for_has_one_step() -> None:
    placed = [cause for causes in STEPS for cause in causes]
    assert sorted(placed) == sorted(set(Cause) - INFRASTRUCTURE)


@pytest.mark.parametrize(
    ("login", "check", "doubt"),
    [
        (Login(reached=True), Cause.CLOSED, None),
        (Login(reached=False, cause=Cause.HOST_KEY_CHANGED), Cause.REFUSED, None),
        (Login(reached=False, cause=Cause.REFUSED), Cause.AUTH_REFUSED, Inconclusive("not reached (refused)")),
        (Login(reached=False, cause=Cause.REFUSED), Cause.FILTERED, Inconclusive("not reached (refused)")),
        (Login(reached=True, cause=Cause.NO_PYTHON), Cause.NO_SHELL, None),
        (
            Login(reached=True, cause=Cause.NO_PYTHON),
            Cause.NOT_ENTERED,
            Inconclusive("the login ended before this step (no-python)"),
        ),
        (Login(reached=True, cause=Cause.DEADLINE), Cause.AUTH_REFUSED, None),
        (Login(reached=False, cause=Cause.CLOSED), Cause.HOST_KEY_CHANGED, None),
        (Login(reached=False, cause=Cause.CLOSED), Cause.AUTH_REFUSED, Inconclusive("not reached (closed)")),
        (Login(reached=False, cause=Cause.OVERLOADED), Cause.NAME_UNKNOWN, Inconclusive("not reached (overloaded)")),
        (Login(reached=False), Cause.REFUSED, Inconclusive("not reached")),
    ],
)
def test_a_check_says_nothing_of_a_step_that_was_not_passed(
    login: Login, check: Cause, doubt: Inconclusive | None
) -> None:
    assert never_got_that_far(login, check) == doubt


@pytest.mark.parametrize("way", ["local", "rsh"])
def test_where_no_ssh_was_tried_none_is_called_healthy(way: str) -> None:
    reached: Facts = {LoginFacts: LoginFacts(Login(reached=True, transport=way))}
    judgement = judge([connection_filtered, connection_cut], {"n1": reached})
    assert [(verdict.code, verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        ("NC112", Outcome.SKIPPED, "no SSH is used"),
        ("NC127", Outcome.PASSED, ""),
    ]


@pytest.mark.parametrize(
    ("cause", "typed"),
    [
        (Cause.FILTERED, "ip route get '$(reboot)'; sudo traceroute -T -p 22 '$(reboot)'"),
        (Cause.UNROUTABLE, "ip route get '$(reboot)'"),
        (Cause.STALLED, "ping -M do -s 1472 -c 3 '$(reboot)'"),
    ],
)
def test_an_address_from_a_recording_is_no_command(cause: Cause, typed: str) -> None:
    login = Login(reached=False, cause=cause, address="$(reboot)", port=22)
    checks = [connection_filtered, host_unroutable, ssh_login_stalls]
    assert [one.fix for one in judge(checks, {"n1": {LoginFacts: LoginFacts(login)}}).findings] == [typed]
