"""A child that is kept: what has closed its output is not asked again, though its end is not seen yet."""

from __future__ import annotations

import os
import sys
import time

from ncheck.agent.long_lived_child import LongLivedChild

MUTE = "import os, sys; os.close(1); os.close(2); sys.stdin.read()"


def test_a_child_that_will_say_no_more_counts_as_ended() -> None:
    child = LongLivedChild([sys.executable, "-c", MUTE], dict(os.environ))
    before = child.lives
    lines = list(child.messages(time.monotonic() + 60))
    assert (before, lines, child.lives, child.process.poll()) == (True, [], False, None)
    child.end()
