"""The job's user has another id on some node

## What it finds
Nodes where the user of the login has another numeric id (uid) than on the other nodes. Nodes that are used under
different names are not compared. In a tie, both sides are named and none is blamed.

## Why it matters
Network file systems know users by their numbers: on the named node the job cannot read its own files, or writes files
that the other nodes cannot read. sshd refuses a home folder or keys that belong to somebody else.

## What to type
`id` on the named nodes. Give the user the same id everywhere: one source of users (LDAP, SSSD) for all nodes, or
`sudo usermod -u UID USER` and the new owner for the user's local files.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, split
from ncheck.facts.login import IdentityFacts, LoginFacts


@cluster_check("NC612", Severity.WARNING, IdentityFacts, LoginFacts)
def user_id_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    users: dict[str, dict[str, str]] = {}
    for node, login in cluster.facts(LoginFacts).items():
        user_id = cluster[node][IdentityFacts].user_id
        if user_id is None:
            yield Inconclusive("the node's shell did not say its user id", (node,))
        else:
            users.setdefault(login.login.user, {})[node] = str(user_id)
    for user, ids in users.items():
        if parted := split(ids):
            message = f"the user id of {user or 'the login'} differs: {parted.summary()}"
            yield Problem(message, "id", nodes=parted.odd, look=True)
