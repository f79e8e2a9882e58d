"""What every run promises, whatever the nodes are like: it ends in time, and leaves nothing behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from .command import Run, begin, listing, ncheck
from .hosts import Lab
from .layers import ROOT, User
from .node import Node

T = TypeVar("T")

# Where all that is asked answers, these only end a hang: two cores that are all five hosts may be busy with others.
PATIENT = ("--connect-timeout", "60", "--command-timeout", "60", "--deadline", "240")
# Sooner than the defaults, for tests of what never answers; late enough for what does. Who is left alone by its head
# goes on until the deadline: nothing that is still there when it has settled is taken for nothing.
QUICK = ("--connect-timeout", "10", "--command-timeout", "10", "--deadline", "60")
SLACK = 10  # seconds that start-up and the report may take beyond the deadline, on a machine that does other things
SETTLED = 40  # seconds, less than what is left of QUICK's deadline
HANGS = 300  # seconds after which a run of ncheck is taken to hang


def examined(
    lab: Lab,
    *argv: str,
    user: User = ROOT,
    nodes: tuple[str, ...] = (),
    waits: tuple[str, ...] = PATIENT,
) -> Run:
    """Run ncheck; it ends inside its deadline and leaves every node's processes and files as they were."""
    with nothing_left(lab):
        run = ncheck(lab, *waits, *argv, user=user, nodes=nodes, hard_limit=HANGS)
        assert run.report["seconds"] <= float(waits[-1]) + SLACK
    return run


@contextmanager
def nothing_left(lab: Lab, settle: float = SETTLED, but: str = "no process") -> Iterator[None]:
    """Hold the hosts, the head too, to what they were before the block: no process more (but those so called), no
    file changed.
    """
    hosts: tuple[Lab | Node, ...] = (*lab.nodes, lab)
    trees = {host.name: host.tree() for host in hosts}
    processes = {host.name: Counter(host.processes().values()) for host in hosts}
    yield
    none: Counter[str] = Counter()
    for host in hosts:
        left = eventually(partial(_more, host, processes[host.name], but), none, settle)
        assert left == none, f"left on {host.name}: {left}"
        changed = set(host.tree().items()) ^ set(trees[host.name].items())
        assert not changed, f"changed on {host.name}: {changed}"


def _more(host: Lab | Node, than: Counter[str], but: str) -> Counter[str]:
    return Counter(line for line in host.processes().values() if not line.startswith(but)) - than


def eventually(look: Callable[[], T], wanted: T, seconds: float) -> T:
    """Look until what is wanted is seen, or the time is over; return what was seen last."""
    begun = time.monotonic()
    while (seen := look()) != wanted and (waited := time.monotonic() - begun) < seconds:
        time.sleep(min(0.02 + waited / 20, 0.5))  # a look at all processes of a host costs the others time
    return seen


def others_whole(run: Run, healthy: Run, *hurt: str, but: str = "") -> None:
    """Hold the verdicts of all other nodes to those of the healthy run, as far as the run asked for them, but for some
    codes ("NC132 NC317"), and but for how long logins take: only one library measures it.
    """
    others = [node for node in {node for _, node in healthy.verdicts()} if node not in hurt]
    asked = {code for code, _ in run.verdicts()}
    now = run.verdicts(*others)
    then = {key: outcome for key, outcome in healthy.verdicts(*others).items() if key[0] in asked}
    pairs = {key: (then.get(key), now.get(key)) for key in {**now, **then} if key[0] not in (*but.split(), "NC140")}
    changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    assert not changed, f"(healthy, now): {changed}"


def plan(
    lab: Lab,
    *argv: str,
    user: User = ROOT,
    nodes: tuple[str, ...] = (),
    slots: int = 1,
    waits: tuple[str, ...] = PATIENT,
) -> Run:
    """Run ncheck plan for so many ranks on each node, to the same promises."""
    with nothing_left(lab):
        listing(lab, [f"{name} slots={slots}" for name in nodes or lab.names], user)
        return begin(lab, "plan", "nodes.txt", *waits, *argv, user=user).wait(HANGS)


def plan_from(lab: Lab, recording: str, *argv: str) -> Run:
    """Run ncheck plan on what an earlier run recorded on the head: no node is asked again."""
    return begin(lab, "plan", "--from", recording, *argv).wait(HANGS)


def planned(lab: Lab, *argv: str, user: User = ROOT, nodes: tuple[str, ...] = ()) -> Run:
    """Run ncheck plan where there is a plan; what it printed is in stdout."""
    run = plan(lab, *argv, user=user, nodes=nodes)
    assert run.exit_code == 0, f"{run.stdout}{run.stderr}"
    return run
