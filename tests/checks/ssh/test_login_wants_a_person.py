"""NC122: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.login_wants_a_person import login_wants_a_person

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it requires more than a key: a password, a code, or a new password"
    only_its_cause_is_red(judge, login_wants_a_person, "NC122", Cause.PERSON_WANTED, message, where="here")
