"""The messages of a rank, one per line: short enough that a pipe never splits one, even if others write there."""

import json
import os
import threading

from ncheck.probe.agent import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Sequence

_LAST = ("held", "removed")
LONGEST_WORDS = 400  # characters of any text: a line stays far below the 4096 bytes that a pipe never splits
_PER_LINE = 20  # segments in one message


class RankError(Exception):
    """Why this rank failed; `code` is the ncclResult_t if NCCL returned one, `driver` the CUresult of the driver."""

    def __init__(self, words: str, code: "Optional[int]" = None, driver: "Optional[int]" = None) -> None:
        Exception.__init__(self, words)
        self.words, self.code, self.driver = words, code, driver


class Messages:
    """Writes messages to the parent's pipe, or without one to standard output after `ncheck:`."""

    def __init__(self, rank: "Optional[int]", number: "Optional[int]" = None) -> None:
        self.rank, self.alone = rank, number is None
        self.number, self.before = (1, "\nncheck:") if number is None else (number, "")
        self.writing = threading.Lock()
        self.ended = False

    def send(self, kind: str, **fields: object) -> None:
        """Write one message; after a failure only those about shared memory."""
        with self.writing:
            if not self.ended or kind in _LAST:
                self.ended = self.ended or kind in ("failure", "done")
                text = json.dumps(dict(fields, rank=self.rank, **{"is": kind}))
                os.write(self.number, (self.before + text + "\n").encode())

    def own_segments(self) -> "Dict[str, int]":
        """Report what this process has in shared memory; return it."""
        own = sorted(segments.seen(["self"])[0].items())
        for start in range(0, len(own), _PER_LINE):
            self.send("held", segments=dict(own[start : start + _PER_LINE]))
        return dict(own)

    def removed(self, words: "Sequence[str]", gone: "Sequence[str]") -> None:
        """Report what was removed, as text, and which paths do not exist any more."""
        for start in range(0, len(gone), _PER_LINE):
            self.send("removed", gone=gone[start : start + _PER_LINE])
        for start in range(0, len(words), _PER_LINE):
            self.send("removed", words=words[start : start + _PER_LINE])

    def failure(self, step: str, words: str, code: "Optional[int]" = None, *, late: bool = False) -> None:
        self.send("failure", step=step, words=words[:LONGEST_WORDS], code=code, late=late)
