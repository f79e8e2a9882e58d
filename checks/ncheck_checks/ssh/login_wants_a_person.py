"""The login needs interactive input

## What it finds
Nodes that require a password, a code or a new password in addition to or instead of a key.

## Why it matters
A launcher cannot ask anyone, so it fails or hangs there.

## What to type
Log in once by hand, `ssh NODE`, and change the password if it has expired. If a second factor is required, start from a
host inside, or keep a master connection open (`ControlMaster` in ~/.ssh/config): ncheck uses it.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC122", Cause.PERSON_WANTED)
def login_wants_a_person(node: str, login: Login) -> Problem:
    message = "it requires more than a key: a password, a code, or a new password"
    return Problem(message, by_ssh(node, login), where=HERE, summary="login requires a person")
