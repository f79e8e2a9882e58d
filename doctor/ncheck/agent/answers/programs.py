"""Whether the program that a launch starts, and the script that this is given, are on this node."""

import os

from ncheck.agent.isolated_calls import each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Arguments

_PATIENCE = 5.0  # seconds for all of them: a healthy file system needs milliseconds

READS = ("whether the program and the script of the job's command, written after --, are where their full paths say",)


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what is wrong with each path. Asked as {"programs": [paths], "files": [paths]}."""
    asked = [(path, True) for path in arguments["programs"]] + [(path, False) for path in arguments["files"]]
    seconds = min(_PATIENCE, timeout)
    hangs = {"error": "no answer within {:.0f} s: its file system hangs".format(seconds)}
    found = each(lambda one: _look(one[0], program=one[1]), asked, seconds)
    return {"paths": {path: state or hangs for (path, _), state in found}}


def _look(path: str, *, program: bool) -> "Dict[str, str]":
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"trouble": "does not exist"}
    except OSError as error:
        return {"error": error.strerror or str(error)}
    if program and not (os.path.isfile(path) and os.access(path, os.X_OK)):
        return {"trouble": "is not a program that the job's user may run"}
    return {"trouble": ""}
