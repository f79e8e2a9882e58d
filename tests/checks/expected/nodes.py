"""What checks of expectations say of one node."""

from __future__ import annotations

from ncheck.model.finding import Outcome
from ncheck.steps.judge import Judgement


def said(judgement: Judgement) -> tuple[str, list[str]]:
    """Return the outcome on the only node, and the messages of the findings, or the reason."""
    (verdict,) = judgement.verdicts
    messages = [finding.message for finding in judgement.findings]
    return verdict.outcome.value, messages if verdict.outcome is Outcome.FAILED else [verdict.reason]
