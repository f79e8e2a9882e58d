"""Checks of the way into a node, one a cause: what each has to say, and where it cannot say anything.

A check is red on nodes whose login failed by its cause, green where the login got past that step, unknown where it
failed at that step by another cause, or before it, and skipped where no SSH was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from shlex import quote

from ncheck.facts.login import LoginFacts
from ncheck.model.check import Check, Inconclusive, NotApplicable, Problem, Said, node_check
from ncheck.model.cluster import NodeView
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Severity

# The steps of a login, in their order, with the causes that end it there.
STEPS: tuple[tuple[Cause, ...], ...] = (
    (Cause.NAME_UNKNOWN,),
    (Cause.REFUSED, Cause.FILTERED, Cause.UNROUTABLE),
    (Cause.NOT_SSH, Cause.SILENT),
    (Cause.STALLED,),
    (Cause.HOST_KEY_UNKNOWN, Cause.HOST_KEY_CHANGED, Cause.HOST_KEY_REVOKED),
    (Cause.AUTH_REFUSED, Cause.TOO_MANY_KEYS, Cause.PERSON_WANTED, Cause.SLURM_JOB_WANTED),
    (Cause.NO_SHELL,),
    (Cause.NO_PYTHON,),
    (Cause.NOT_ENTERED,),
    (Cause.CLOSED, Cause.FLOODED),
)


_STEP = {cause: number for number, causes in enumerate(STEPS) for cause in causes}


_WITHOUT_SSH = frozenset({"local", "rsh"})  # ways in on which no SSH was tried, so that none can be called healthy


Words = Callable[[str, Login], Problem]


def login_check(code: str, cause: Cause) -> Callable[[Words], Check]:
    """Make the check of one cause. The function under it says, for a node and its failed login, what is wrong and what
    to type where the transport knew no better line; it is given name and address quoted for a shell. What the transport
    heard becomes the evidence.
    """

    def made(words: Words) -> Check:
        def judge(node: NodeView) -> Iterator[Said]:
            login = node[LoginFacts].login
            if login.cause is cause:
                said = words(quote(node.name), replace(login, address=login.address and quote(login.address)))
                yield Problem(said.message, login.fix or said.fix, tuple(line for line in (login.detail,) if line))
            elif doubt := never_got_that_far(login, cause):
                yield doubt
            elif login.transport in _WITHOUT_SSH and _STEP[cause] <= _STEP[Cause.AUTH_REFUSED]:
                yield NotApplicable("no SSH lies between")

        judge.__name__, judge.__module__ = words.__name__, words.__module__
        return node_check(code, Severity.ERROR, LoginFacts, blocks_plan=True, explains_unreached=True)(judge)

    return made


def by_ssh(node: str, login: Login) -> str:
    """Return the start of a line that goes in as this run did, "ssh -p 10001 root@node07"; the node comes quoted."""
    port = f"-p {login.port} " if login.port not in (0, 22) else ""
    return f"ssh {port}{quote(login.user) + '@' if login.user else ''}{node}"


def never_got_that_far(login: Login, cause: Cause) -> Inconclusive | None:
    """Return the doubt of a check about `cause` where the login ended at that step, or before it, by something else."""
    if login.cause is None or login.cause is cause:
        return None if login.reached or login.cause else Inconclusive("not reached")
    if _furthest(login) > _STEP[cause]:
        return None
    return Inconclusive(f"{'never got that far' if login.reached else 'not reached'} ({login.cause.value})")


def _furthest(login: Login) -> int:
    """Return the step at which it ended. What cut it short in the end says little of where that was."""
    step = _STEP.get(login.cause, -1) if login.cause else len(STEPS)
    if login.reached:
        return max(step, _STEP[Cause.NO_PYTHON])
    return min(step, _STEP[Cause.AUTH_REFUSED]) if login.cause in (Cause.CLOSED, Cause.FLOODED) else step
