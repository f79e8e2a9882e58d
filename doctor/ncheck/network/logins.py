"""Checks of the login to a node, one for each cause of failure.

A check fails on nodes whose login failed for its cause, and passes on nodes whose login got past that step. It is
unknown if the login failed at that step for another cause, or before it, and skipped if no SSH was used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from shlex import quote

from ncheck.facts.login import LoginFacts
from ncheck.model.check import Check, Inconclusive, NotApplicable, Problem, Said, node_check
from ncheck.model.cluster import NodeView
from ncheck.model.evidence import INFRASTRUCTURE, Cause, Login
from ncheck.model.finding import Severity
from ncheck.ssh.failures import MAKE_KEY, NEW_HOST_KEYS, RESTART_SSH, SHOW_HOST_KEYS, USE_KEY, way_to

__all__ = [
    "INFRASTRUCTURE",
    "MAKE_KEY",
    "NEW_HOST_KEYS",
    "RESTART_SSH",
    "SHOW_HOST_KEYS",
    "STEPS",
    "USE_KEY",
    "WITHOUT_SSH",
    "Cause",
    "Login",
    "by_ssh",
    "login_check",
    "login_results",
    "never_got_that_far",
    "way_to",
]

# The steps of a login in order, with the causes of failure at each step.
STEPS: tuple[tuple[Cause, ...], ...] = (
    (Cause.NAME_UNKNOWN, Cause.STEP_NOT_STARTED),
    (Cause.REFUSED, Cause.FILTERED, Cause.UNROUTABLE),
    (Cause.NOT_SSH, Cause.SILENT),
    (Cause.STALLED,),
    (Cause.HOST_KEY_UNKNOWN, Cause.HOST_KEY_CHANGED, Cause.HOST_KEY_REVOKED),
    (
        Cause.AUTH_REFUSED, Cause.CERTIFICATE_EXPIRED, Cause.KEY_TYPE_REFUSED, Cause.TOO_MANY_KEYS, Cause.PERSON_WANTED,
        Cause.SLURM_JOB_WANTED,
    ),
    (Cause.NO_SHELL,),
    (Cause.COMMAND_REPLACED,),
    (Cause.NO_PYTHON,),
    (Cause.NOT_ENTERED,),
    (Cause.CLOSED, Cause.FLOODED),
)  # fmt: skip

_STEP = {cause: number for number, causes in enumerate(STEPS) for cause in causes}
WITHOUT_SSH = frozenset({"local", "rsh", "srun"})  # transports without SSH: nothing can be said about SSH there
Describe = Callable[[str, Login], Problem]


def login_check(code: str, cause: Cause) -> Callable[[Describe], Check]:
    """Make the check of one cause from a function that returns the problem of a node with a failed login.

    The function gets the node's name and address quoted for a shell. Its fix is used if the transport has no better
    one, which is typed at the same place and of the same kind; what the transport reported becomes the evidence.
    """

    def made(describe: Describe) -> Check:
        def judge(node: NodeView) -> Iterator[Said]:
            yield from login_results(node, cause, describe)

        judge.__name__, judge.__module__ = describe.__name__, describe.__module__
        return node_check(code, Severity.ERROR, LoginFacts, blocks_plan=True, explains_unreached=True)(judge)

    return made


def login_results(node: NodeView, cause: Cause, describe: Describe) -> Iterator[Said]:
    """Yield what a login means for the check of this cause."""
    login = node[LoginFacts].login
    if login.cause is cause:
        problem = describe(quote(node.name), replace(login, address=login.address and quote(login.address)))
        evidence = (login.detail,) if login.detail else ()
        yield replace(problem, fix=login.fix or problem.fix, evidence=evidence, nodes=(node.name,))
    elif doubt := never_got_that_far(login, cause):
        yield replace(doubt, nodes=(node.name,))
    elif login.transport in WITHOUT_SSH and _STEP[cause] <= _STEP[Cause.AUTH_REFUSED]:
        yield NotApplicable("no SSH is used", nodes=(node.name,))


def by_ssh(node: str, login: Login, *flags: str) -> str:
    """Return an ssh command with the options of this run: "ssh -F FILE -p 10001 root@node07". `node` is quoted."""
    port = ("-p", str(login.port)) if login.port not in (0, 22) else ()
    user = f"{quote(login.user)}@" if login.user else ""
    return " ".join(("ssh", *flags, *map(quote, login.options), *port, user + node))


def never_got_that_far(login: Login, cause: Cause) -> Inconclusive | None:
    """Return Inconclusive if the login ended at the step of `cause`, or before it, for another cause."""
    if login.cause is None or login.cause is cause:
        return None if login.reached or login.cause else Inconclusive("not reached")
    if _furthest(login) > _STEP[cause]:
        return None
    return Inconclusive(
        f"{'the login ended before this step' if login.reached else 'not reached'} ({login.cause.value})"
    )


def _furthest(login: Login) -> int:
    """Return the step at which the login ended. A cut connection counts as ended at the authentication or before it."""
    step = _STEP.get(login.cause, -1) if login.cause else len(STEPS)
    if login.reached:
        return max(step, _STEP[Cause.NO_PYTHON])
    return min(step, _STEP[Cause.AUTH_REFUSED]) if login.cause in (Cause.CLOSED, Cause.FLOODED) else step
