"""NCCL's own diagnostics (NCCL_RUN_DIAGNOSTICS=1, since 2.31; those of RAS too): the NCCL DIAG lines of a log.

They have two tags: [OK], and [INFO] for anything to look at. A notice on a healthy machine (GPUs that share a NIC, a
tool that is not installed) has the same tag as a link that gave wrong data: the text decides.
Layout: NCCL's user guide, troubleshooting/diagnostics, and its src/diagnostics.cc, p2p.cc, ib_write_bw.cc of 2.32.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import plain_text

MOST = 64  # lines of each kind that are kept
_LONGEST = 400
VARIABLES = {"NCCL_RUN_DIAGNOSTICS": "1", "NCCL_RUN_RAS_DIAGNOSTICS": "1"}
SINCE = (2, 31)

# node0:24563 NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (56 peer accesses)
_LINE = expression(r"NCCL DIAG (?:\[([A-Z]+)\] *)?(.+)")

# NCCL diagnostics completed in 245.3 ms across 8 ranks
_COMPLETED = expression(r"^NCCL diagnostics completed in [\d.]+ ms across (\d{1,7}) ranks")

#  in comm 0x7a3f9b2c41d05e88
_COMM = expression(r" in comm 0x[0-9a-f]+$")

# A check that could not be run: it found nothing out.
_UNTRIED = (
    "tool missing", "server did not start", "capability probe timed out", "does not support IB", "no usable IB device",
    "cannot determine", "cannot enumerate", "cannot select", "cannot allocate", "cannot share", "cannot receive",
    "cannot exchange", "cannot build", "in allocated time", "setup failed on rank", "invalid channel count",
    "invalid qps parameter", "bootstrap failure", "transport detect returned", "check returned", "unavailable via",
    "diagnostics incomplete", "partial",
)  # fmt: skip

# Also printed on a healthy machine. ncheck has its own checks of NCCL's variables, which may differ between nodes.
_NOTICES = (
    "multiple net devices per rank", "net devices are shared across ranks", "skipped", "min/median/max",
    "some temporary resources may remain", "NCCL environment",
)  # fmt: skip


class Says(str, Enum):
    """What a line means, whatever its tag."""

    OK = "ok"
    WRONG = "wrong"  # a path that NCCL intends to use does not work, or is slower than similar ones
    UNTRIED = "untried"  # a check could not be run
    NOTICE = "notice"


@dataclass(frozen=True)
class Diagnostic:
    """One line: its tag (OK, INFO, WARN), the check (p2p, net bw), and its text without the communicator."""

    tag: str
    check: str
    words: str
    says: Says


@dataclass(frozen=True)
class NcclDiagnostics:
    """One run of the diagnostics. `ranks` is None if the run did not finish."""

    lines: tuple[Diagnostic, ...] = ()
    ranks: int | None = None


def parse_diagnostics(text: str | Iterable[str]) -> NcclDiagnostics:
    """Read the lines of the diagnostics; all others are ignored."""
    lines = plain_text(text).split("\n") if isinstance(text, str) else text
    found: dict[Diagnostic, None] = {}
    ranks = None
    for line in lines:
        hit = _LINE.search(line[:_LONGEST])
        if hit and (ended := _COMPLETED.match(hit[2])):
            ranks = int(ended[1])
        elif hit and hit[1] and len(found) < MOST:
            found.setdefault(_diagnostic(hit[1], _COMM.sub("", hit[2].strip())))
    return NcclDiagnostics(tuple(found), ranks)


def _diagnostic(tag: str, text: str) -> Diagnostic:
    check, colon, words = text.partition(": ")
    return Diagnostic(tag, check if colon else "", words if colon else text, _meaning(tag, text))


def _meaning(tag: str, text: str) -> Says:
    """Return what a line means. A line that is not OK and that no known release prints counts as a problem."""
    if tag == "OK":
        return Says.OK
    if tag == "INFO":
        for phrases, meaning in ((_UNTRIED, Says.UNTRIED), (_NOTICES, Says.NOTICE)):
            if any(phrase in text for phrase in phrases):
                return meaning
    return Says.WRONG
