"""Whether a suspect is at fault: one run of ncheck on it and two other nodes, read with one question in mind.

A suspect is at fault if a check proves a fault of its own, such as broken memory; if nobody reaches it, from here or
from the others; or if it fails with both partners, and these pass together. Anything less is no proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncheck.hostlist import fold
from ncheck.model.report import Report, Standing
from ncheck.retry.plan import Proof, Prove


def proof_of(report: Report, asked: Prove) -> Proof:
    """Return what a run on these nodes shows of the suspect."""
    node, partners = asked.suspect, asked.partners
    bad = {one.node: one for one in report.bad}
    own = bad.get(node)
    shared = [one for one in partners if one in bad and own and own.codes and {*own.codes} <= {*bad[one].codes}]
    by_pairs = _by_pairs(report, node, partners)
    if by_pairs and by_pairs.proved:
        return by_pairs
    if own and own.proved and not shared:
        how = own.reason if own.reached else f"neither this machine nor another node reaches it ({own.reason})"
        return Proof(proved=True, reason=f"{node} is at fault: {how}")
    if own and not by_pairs:
        why = f"{fold(shared)} has this fault, too: {own.reason}" if shared else own.reason
        return Proof(proved=False, reason=f"{node} is not proved to be at fault: {why}")
    return by_pairs or Proof(proved=False, reason=f"{node} is not proved to be at fault: {report.probe.sentence}")


def _by_pairs(report: Report, node: str, partners: Sequence[str]) -> Proof | None:
    """Return what the pairs show; None if the suspect is in none. One success of a pair clears it."""
    passes = {frozenset(pair.nodes) for pair in report.probe.pairs if pair.standing is not Standing.FAILED}
    measured = {frozenset(pair.nodes) for pair in report.probe.pairs}
    others, together = fold(partners), frozenset(partners)
    tried = [partner for partner in partners if frozenset((node, partner)) in measured]
    passed = [partner for partner in tried if frozenset((node, partner)) in passes]
    if together in measured and together not in passes:
        why = f"{others} fail together, too: the network or the software of all nodes is at fault"
        return Proof(proved=False, reason=why)
    if not tried:
        return None
    if len(tried) < len(partners) or together not in measured:
        reason = f"{node} is not proved to be at fault: it was measured with {fold(tried)} alone"
    elif not passed:
        return Proof(proved=True, reason=f"{node} fails with {others}, which pass together")
    elif len(passed) < len(tried):
        failed = fold(one for one in tried if one not in passed)
        reason = f"{node} fails with {failed} alone, and passes with {fold(passed)}"
    else:
        reason = f"{node} passes with {others}"
    return Proof(proved=False, reason=reason)
