"""The node accepts no key of your type

## What it finds
Nodes that refused your keys and that list, as they greet, which types of keys they accept (PubkeyAcceptedAlgorithms):
none of the keys that were offered is of such a type. Older releases of OpenSSH, such as 9.2, list all that they know:
there ncheck cannot tell this from a key that is not installed, and reports authentication-refused.

## Why it matters
Systems in FIPS mode accept no Ed25519 keys, new ones no DSA and no RSA keys with SHA-1. To install the same key again
changes nothing.

## What to type
Make a key of a type in the list and install it: `ssh-keygen -t ecdsa; ssh-copy-id -i ~/.ssh/id_ecdsa.pub USER@NODE`.
`sudo sshd -T | grep -i pubkeyaccepted` on the node shows the whole list.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC191", Cause.KEY_TYPE_REFUSED)
def key_type_refused(node: str, login: Login) -> Problem:
    user = login.user or "your user"
    look = login.fix.startswith("ssh ")  # a login by hand, where no type is known that it accepts
    message = f"{user} refused: sshd accepts no key of the types that were offered; use a key of another type"
    fix = f"ssh-keygen -t ecdsa; ssh-copy-id -i ~/.ssh/id_ecdsa.pub {node}"
    return Problem(message, fix, where=HERE, look=look, summary="SSH key type refused")
