"""The login asks for a person

## What it finds
Nodes that want a password, a code or a new password besides or instead of a key.

## Why it matters
A launcher has no one to ask, so it fails or hangs there.

## What to type
Log in once by hand, `ssh NODE`, and change the password if it has expired. Where a second factor is the rule, start
from a host inside, or keep a master connection open (`ControlMaster` in ~/.ssh/config): ncheck uses it.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC122", Cause.PERSON_WANTED)
def login_wants_a_person(node: str, _login: Login) -> Problem:
    return Problem("it wants more than a key: a password, a code, or a new password", f"ssh {node}")
