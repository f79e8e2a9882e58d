"""What a node is asked only if an option wants it, or only if something is wrong, and was not asked in these runs."""

from __future__ import annotations

from ncheck.facts.code import CODE
from ncheck.facts.packages import PACKAGES
from ncheck.facts.programs import PROGRAMS
from ncheck.facts.prompt import PROMPT
from ncheck.model.evidence import Note, Reply, Status


def unasked_replies() -> dict[str, Reply | Note]:
    """Return the reason for each of these sources."""
    return {
        CODE.key: Note("no folder of code was named: --workdir DIR"),
        PROGRAMS.key: Note("no command with a full path was given"),
        PACKAGES.key: Note("only with --packages all"),
        PROMPT.key: Reply(Status.MISSING, "the job's Python has a framework"),
    }
