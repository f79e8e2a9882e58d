"""What every check of one cause of a failed login owes; each check's own file names its cause and its words.

`judge` is the test file's own: test_all_checks.py watches it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ncheck.facts.login import ListingFacts, LoginFacts
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.steps.judge import Judgement

Judge = Callable[[Sequence[Check], Mapping[str, Facts]], Judgement]
HEARD = Login(reached=False, detail="as it was heard", port=22, address="10.1.0.7", user="ann", fix="ssh a",
              offered_keys=("ED25519 SHA256:k ~/.ssh/id_ed25519",))  # fmt: skip


def only_its_cause_is_red(  # noqa: PLR0913  the check, and what its finding says
    judge: Judge, check: Check, code: str, cause: Cause, message: str, *, where: str = "", kind: str = "fix"
) -> None:
    """Hold a check to its cause: a login that ended by it is an error, with the transport's own line; one that got past
    it passed; one that ended at that step or before by another cause is unknown.
    """

    def judged(login: Login) -> Judgement:
        return judge([check], {"a": {LoginFacts: LoginFacts(login), ListingFacts: ListingFacts(())}})

    (finding,) = judged(replace(HEARD, cause=cause)).findings
    assert finding == Finding(
        code, check.name, Severity.ERROR, ("a",), message, ("as it was heard",), "ssh a",
        where=where, kind=kind, summary=finding.summary,
    )  # fmt: skip
    reached = judged(Login(reached=True))
    assert (reached.verdicts, reached.findings) == ([Verdict(check.name, code, ("a",), Outcome.PASSED)], [])
    otherwise = judged(Login(reached=False, cause=Cause.TRANSPORT, detail="ulimit"))
    unknown = Verdict(check.name, code, ("a",), Outcome.UNKNOWN, "not reached (transport)")
    assert (otherwise.verdicts, otherwise.findings) == ([unknown], [])


def own_lines(judge: Judge, check: Check, cause: Cause) -> list[str]:
    """Return the check's own lines to type for two nodes, where the transport knew none."""
    ended = replace(HEARD, cause=cause, fix="")
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(ended)},
        "b": {LoginFacts: LoginFacts(replace(ended, port=10001, user="$(id)"))},
    }
    return [finding.fix for finding in judge([check], nodes).findings]
