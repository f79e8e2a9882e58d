"""The certificate of your key is out of date

## What it finds
Nodes that refused your keys, where a certificate that was offered has expired, or is not valid yet by the clock of this
machine. The evidence names the file and the time.

## Why it matters
Sites that sign keys (step-ca, Vault, Teleport, an own CA) give certificates for hours or days. After that every
launcher ends with "Permission denied (publickey)", on all nodes at once.

## What to type
`ssh-keygen -L -f ~/.ssh/id_ed25519-cert.pub` shows from when to when it is valid, and for whom. Have it signed again as
your site does it, such as `step ssh login`, `vault write ssh-client-signer/sign/ROLE`, `tsh login`, or by the person
who has the CA. `ssh-copy-id` does not help where sshd trusts the CA alone.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC190", Cause.CERTIFICATE_EXPIRED)
def certificate_expired(_node: str, login: Login) -> Problem:
    user = login.user or "your user"
    message = f"{user} refused: the certificate of the key is out of date; have it signed again as your site does it"
    look = "ssh-keygen -L -f ~/.ssh/id_ed25519-cert.pub"
    return Problem(message, look, where=HERE, look=True, summary="SSH certificate out of date")
