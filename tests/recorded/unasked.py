"""What a node is asked only if an option wants it, or only if something is wrong, and was not asked in these runs."""

from __future__ import annotations

from ncheck.facts.code import CODE
from ncheck.facts.packages import PACKAGES
from ncheck.facts.programs import PROGRAMS
from ncheck.facts.prompt import PROMPT
from ncheck.model.evidence import Reply, Status


def unasked_replies() -> dict[str, Reply]:
    """Return the reason for each of these sources."""
    return {
        CODE.key: Reply(Status.NOT_ASKED, "no folder of code was named: --workdir DIR"),
        PROGRAMS.key: Reply(Status.NOT_ASKED, "no command with a full path was given"),
        PACKAGES.key: Reply(Status.NOT_ASKED, "only with --packages all"),
        PROMPT.key: Reply(Status.MISSING, "the job's Python has a framework"),
    }
