"""The shutdown of this node that systemd has scheduled, and this node's own time."""

import os
import time

from ncheck.agent.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

SCHEDULED = "/run/systemd/shutdown/scheduled"
_LONGEST = 8192  # bytes: the message to the users is at most half of that

READS = (SCHEDULED,)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"systemd": it runs here, "scheduled": the file's text, "now"}; without the file, the last two are null.

    So all nodes without a scheduled shutdown answer the same.
    """
    found = read_file(SCHEDULED)
    if found["status"] == "missing":
        return {"systemd": os.path.isdir("/run/systemd/system"), "scheduled": None, "now": None}
    if found["status"] != "ok":
        raise OSError("{}: {}".format(SCHEDULED, found["reason"]))
    return {"systemd": True, "scheduled": found["value"][:_LONGEST], "now": time.time()}
