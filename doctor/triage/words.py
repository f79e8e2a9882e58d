"""Words of trouble: a line without any of them is read by no row, and nearly all lines of a log are such.

Two hundred patterns are dear to search in each line; that a text lacks a word is told at once. Whatever a row can match
has one of these words in it: a test takes the patterns apart and names the word that a new row wants.
"""

from __future__ import annotations

# In small letters, and in parts that cover several forms: "fail" stands for failed, FAILED and failure.
WORDS = (
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


def may_tell(text: str) -> bool:
    """Tell whether a row could read this line at all."""
    return any(map(text.lower().__contains__, WORDS))
