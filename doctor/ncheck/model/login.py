"""The fact by which a cluster knows which nodes can be asked; facts/login.py reads it."""

from __future__ import annotations

from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Login


@dataclass(frozen=True)
class LoginFacts:
    """The result of the login; every node has this fact, unreachable nodes too.

    `noise` is what the node's start-up files printed on stdout, made safe for a terminal, at most a few lines.
    `python_seconds`: seconds that python3 needed to start there; `shell_seconds`: seconds that the login shell
    needed for its start-up files; 0 is not measured. `python`: where no python3 runs, the path of one that exists;
    "" if none does. `old_python`: of one that is too old for the agent.
    """

    login: Login
    noise: str = ""
    python_seconds: float = 0.0
    shell_seconds: float = 0.0
    python: str = ""
    old_python: str = ""
