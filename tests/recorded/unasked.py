"""What a node is asked only if an option wants it, and was not asked in these runs."""

from __future__ import annotations

from ncheck.facts.code import CODE
from ncheck.facts.packages import PACKAGES
from ncheck.model.evidence import Reply, Status


def unasked_replies() -> dict[str, Reply]:
    """Return the head's own words for each of these sources."""
    return {
        CODE.key: Reply(Status.NOT_ASKED, "no folder of code was named: --workdir DIR"),
        PACKAGES.key: Reply(Status.NOT_ASKED, "only with --packages all"),
    }
