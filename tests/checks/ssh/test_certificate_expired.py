"""NC190: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.certificate_expired import certificate_expired

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "ann refused: the certificate of the key is out of date; have it signed again as your site does it"
    only_its_cause_is_red(
        judge, certificate_expired, "NC190", Cause.CERTIFICATE_EXPIRED, message, where="here", kind="look"
    )
