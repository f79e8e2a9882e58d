"""The node refused your keys

## What it finds
Nodes whose SSH server accepted none of the keys that ncheck could offer: `ssh` says `Permission denied (publickey)`.
The evidence lists each key with its fingerprint, and the keys that could not be offered: protected by a passphrase and
not in an agent, unreadable, or refused by the agent.

## Why it matters
Launchers log in without a terminal. Without an accepted key they cannot start anything: mpirun ends with "Permission
denied (publickey,password)".

## What to type
Without a key: `ssh-keygen -t ed25519; ssh-copy-id USER@NODE` makes one and installs it. `ssh-copy-id USER@NODE`
installs a key that you have. If the user is wrong: `user@NODE` in the list, or `ncheck nodes.txt -l USER`. Add a key
with a passphrase to an agent: `eval "$(ssh-agent)"; ssh-add ~/.ssh/id_ed25519`. If the key is in ~/.ssh/authorized_keys
there already, sshd may not accept its type: `sudo sshd -T | grep -i pubkeyaccepted` on the node shows the types; make a
key of one of them, such as `ssh-keygen -t rsa -b 4096`, and install that. Inside a Slurm allocation `ncheck --via srun`
needs no ssh.

If other nodes let the same user in with the same key, look before you install it: `getent passwd USER` on the node's
console prints nothing where the account is missing (`sudo systemctl status sssd`), and the log of sshd
(`sudo journalctl -u ssh -n 30`) says "Invalid user", "not in PubkeyAcceptedAlgorithms", or "bad ownership or modes".
A server answers the same in all of these cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import quote

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import MAKE_KEY, USE_KEY, Cause, Login, login_results

MOST_SHOWN, MOST_INSTALLED = 8, 32  # nodes: after these, the next run names the rest


@cluster_check("NC120", Severity.ERROR, LoginFacts, alone=True, blocks_plan=True, explains_unreached=True)
def authentication_refused(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    logins = {node: held.login for node, held in cluster.facts(LoginFacts).items()}
    accept: dict[tuple[str, str], list[str]] = {}  # by user and key
    for name, login in logins.items():
        if login.reached and login.offered_keys:
            accept.setdefault((login.user, login.offered_keys[-1]), []).append(name)
    keyless = {name: login for name, login in logins.items() if login.fix.startswith(MAKE_KEY)}
    if len(keyless) > 1:
        yield _no_key(keyless)
    for node in cluster:
        login = logins[node.name]
        if node.name in keyless and len(keyless) > 1:
            continue
        others = [name for key in login.offered_keys for name in accept.get((login.user, key), ())]
        for result in login_results(node, Cause.AUTH_REFUSED, _refused):
            known = others and login.user != "root"  # whose account every node has
            own = _refused_here_alone(login, others) if known and isinstance(result, Problem) else None
            yield (
                replace(own, nodes=result.nodes, evidence=result.evidence)
                if own and isinstance(result, Problem)
                else result
            )


def _refused(node: str, login: Login) -> Problem:
    user = login.user or "your user"
    offered = "no key was accepted" if login.offered_keys else "no key was offered"
    fix = f"ssh-copy-id {_port(login)}{node}" if login.offered_keys else USE_KEY
    look = login.fix.startswith("ssh ")  # a login by hand, to see why
    do = (login.fix or fix) == USE_KEY
    return Problem(f"{user} refused: {offered}", fix, where=HERE, look=look, do=do, summary="SSH key refused")


def _no_key(logins: Mapping[str, Login]) -> Problem:
    """Return one problem for all: a key is made once, and installed on each."""
    install = [login.fix.removeprefix(MAKE_KEY) for login in logins.values()][:MOST_INSTALLED]
    return Problem(
        "no key was offered: make one, install it on each node, or name yours with -i KEY",
        MAKE_KEY + "; ".join(install),
        tuple(f"{node}: {login.detail}" for node, login in logins.items() if login.detail)[:MOST_SHOWN],
        tuple(logins),
        where=HERE,
        summary="no SSH key",
    )


def _refused_here_alone(login: Login, others: list[str]) -> Problem:
    """Return the problem where other nodes accept the key of this user: ssh-copy-id needs an account there."""
    message = (
        f"{login.user} refused: no key was accepted, although {fold(others)} let this user in with one of them: either "
        f"the account {login.user} is missing (LDAP, sssd), or its home is not mounted, or the key is not installed; "
        "ssh-copy-id mends only the last"
    )
    look = f"getent passwd {quote(login.user)}; sudo journalctl -u ssh -u sshd -n 30 --no-pager"
    return Problem(message, look, look=True, summary="SSH key refused")


def _port(login: Login) -> str:
    return f"-p {login.port} " if login.port not in (0, 22) else ""
