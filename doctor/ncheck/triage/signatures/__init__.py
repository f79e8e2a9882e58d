"""All signatures of log lines, a module per program, and the keywords that a line must contain for any to match.

Imported only when there is a log to read: compiling the patterns is slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncheck.triage.signature import Reading, Signature
from ncheck.triage.signatures import gpu, infiniband, machine, mpi, nccl, network, probe, torch

# Of several readings of one line that are equally sure, the first in this order decides the wording.
MODULES = (nccl, gpu, infiniband, network, torch, mpi, machine, probe)


SIGNATURES: tuple[Signature, ...] = tuple(signature for module in MODULES for signature in module.SIGNATURES)


# Searching two hundred patterns is slow; most lines contain none of these keywords and are skipped. A test takes the
# patterns apart and checks that every alternative of them contains a keyword. Lower case, in forms that cover several
# words: "fail" covers failed, FAILED and failure.
KEYWORDS = (
    "error", "fail", "fault", "signal", "exit", "kill", "lost", "xid", "oom",
    "not ", "neither ", "unable", "missing", "lacks ", "without nvls", "insufficient", "undefined", "disabled",
    "no cuda", "no kernel", "no nccl", "no route", "no space", "no such",
    "invalid", "illegal", "misaligned", "incompatible", "match", "differ", "duplicate", "unique", "unexpected",
    "unknown", "unrecognized", "unsupported", "unsatisfied", "wrong", "truncated", "past end", "uncorrectable",
    "refused", "denied", "prohibited", "filtered", "ufw block", "firewall", "credential", "kex_", "has changed",
    "timed out", "timeout", "skew", "waiting", "gave up", "in progress", "returned", "got async", "frag",
    "closed", "reset", "broken pipe", "was cut", "unreachable", "unroutable", "remote=", "] connect [", "martian",
    "too ", "exceeded", "exhaust", "out of ", "out-of-", "locked memory", "fallen off", "triggered", "completion ",
    "attempt", "busy", "communicat", "already", "found", "other ranks", "same gpu", "this node ", "only one", "first(",
    "physical state", "down", "hostname", "known ips", "nthread", "worker_count", "usage:", "warning", "%|", "802",
    "acsctl", "eaddrinuse", "final_reject", "hydu_", "ibv_", "op.", "peer_mem", "peermem", "rocegetversion",
    "ss_family", "sigsegv", "transport/tcp", "unpack_read",
)  # fmt: skip


# node01:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0; most INFO lines report no trouble
_HARMLESS_INFO = re.compile(
    r"NCCL INFO (?!.*(?:fail|error|retry|Disabled|progress|without|mismatch|wrong|closed|nable|refused))"
)


def may_match(text: str) -> bool:
    """Return whether any signature could match this line."""
    return any(map(text.lower().__contains__, KEYWORDS))


def readings(text: str) -> Iterator[Reading]:
    """Return the readings of one line of a log, in the order of the signatures."""
    if not may_match(text) or ("NCCL INFO" in text and _HARMLESS_INFO.search(text)):
        return iter(())
    return (reading for signature in SIGNATURES if (reading := signature.read(text)))
