"""What a rank tells, line by line: each short enough that a pipe passes it on whole, whoever else writes there."""

import json
import os
import threading

from ncheck.agent.tasks import segments

_LAST = ("held", "removed")
LONGEST_WORDS = 400  # characters of any text: a line stays far below the 4096 bytes that a pipe never parts
_A_LINE = 20  # segments told of in one line


class RankError(Exception):
    """What ended this rank's part, in words; `code` is the ncclResult_t where NCCL gave one."""

    def __init__(self, words, code=None):
        Exception.__init__(self, words)
        self.words, self.code = words, code


class Telling:
    """Writes lines to the parent's pipe, or, without one, to standard output behind `ncheck:`."""

    def __init__(self, rank, number=None):
        self.rank, self.alone = rank, number is None
        self.number, self.before = (1, "\nncheck:") if number is None else (number, "")
        self.writing = threading.Lock()
        self.ended = False

    def say(self, what, **fields):
        """Tell one line; after a failure nothing more is told but what there is in shared memory."""
        with self.writing:
            if not self.ended or what in _LAST:
                self.ended = self.ended or what in ("failure", "done")
                text = json.dumps(dict(fields, rank=self.rank, **{"is": what}))
                os.write(self.number, (self.before + text + "\n").encode())

    def held(self):
        """Tell what this process has in shared memory; return it."""
        held = sorted(segments.seen(["/proc/self"])[0].items())
        for start in range(0, len(held), _A_LINE):
            self.say("held", segments=dict(held[start : start + _A_LINE]))
        return dict(held)

    def removed(self, words, gone):
        """Tell what was removed, in words, and what of all that it had is there no more."""
        for start in range(0, len(gone), _A_LINE):
            self.say("removed", gone=gone[start : start + _A_LINE])
        for start in range(0, len(words), _A_LINE):
            self.say("removed", words=words[start : start + _A_LINE])

    def failure(self, step, words, code=None, *, late=False):
        self.say("failure", step=step, words=words[:LONGEST_WORDS], code=code, late=late)
