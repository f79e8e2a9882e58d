"""What a rank tells, line by line: each short enough that a pipe passes it on whole, whoever else writes there."""

import json
import os
import threading

LONGEST_WORDS = 400  # characters of any text: a line stays far below the 4096 bytes that a pipe never parts


class RankError(Exception):
    """What ended this rank's part, in words; `code` is the ncclResult_t where NCCL gave one."""

    def __init__(self, words, code=None):
        Exception.__init__(self, words)
        self.words, self.code = words, code


class Telling:
    """Writes lines to the parent's pipe, or, without one, to standard output behind `ncheck:`."""

    def __init__(self, rank, number=None):
        self.rank = rank
        self.number, self.before = (1, "\nncheck:") if number is None else (number, "")
        self.writing = threading.Lock()
        self.ended = False

    def say(self, what, **fields):
        """Tell one line; after a failure nothing more is told."""
        with self.writing:
            if not self.ended:
                self.ended = what in ("failure", "done")
                text = json.dumps(dict(fields, rank=self.rank, **{"is": what}))
                os.write(self.number, (self.before + text + "\n").encode())

    def failure(self, step, words, code=None, *, late=False):
        self.say("failure", step=step, words=words[:LONGEST_WORDS], code=code, late=late)
