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

# Sooner than the defaults, for tests of what never answers; late enough for two busy cores that are all five hosts.
QUICK = ("--connect-timeout", "6", "--command-timeout", "5", "--deadline", "25")
SLACK = 1.5  # seconds that start-up and the report may take beyond the deadline, on a machine that does other things


def examined(
    lab: Lab,
    *argv: str,
    user: User = ROOT,
    nodes: tuple[str, ...] = (),
    deadline: float = 25,
    settle: float = 5,
) -> Run:
    """Run ncheck; it ends inside its deadline and leaves every node's processes and files as they were."""
    with nothing_left(lab, settle):
        run = ncheck(lab, *QUICK, "--deadline", str(deadline), *argv, user=user, nodes=nodes, hard_limit=deadline + 20)
        assert run.report["seconds"] <= deadline + SLACK
    return run


@contextmanager
def nothing_left(lab: Lab, settle: float = 5, but: str = "no process") -> Iterator[None]:
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
    end = time.monotonic() + seconds
    while (seen := look()) != wanted and time.monotonic() < end:
        time.sleep(0.02)
    return seen


def others_whole(run: Run, healthy: Run, *hurt: str, but: str = "") -> None:
    """Hold the verdicts of all other nodes to those of the healthy run, but for one code."""
    others = [node for node in {node for _, node in healthy.verdicts()} if node not in hurt]
    now, then = run.verdicts(*others), healthy.verdicts(*others)
    pairs = {key: (then.get(key), now.get(key)) for key in {**now, **then} if key[0] != but}
    changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    assert not changed, f"(healthy, now): {changed}"


def plan(
    lab: Lab, *argv: str, user: User = ROOT, nodes: tuple[str, ...] = (), slots: int = 1, deadline: float = 25
) -> Run:
    """Run ncheck plan for so many ranks on each node, to the same promises."""
    with nothing_left(lab):
        listing(lab, [f"{name} slots={slots}" for name in nodes or lab.names], user)
        asked = ("plan", "nodes.txt", *QUICK, "--deadline", str(deadline), *argv)
        return begin(lab, *asked, user=user).wait(deadline + 20)


def planned(lab: Lab, *argv: str, user: User = ROOT, nodes: tuple[str, ...] = ()) -> Run:
    """Run ncheck plan where there is a plan; what it printed is in stdout."""
    run = plan(lab, *argv, user=user, nodes=nodes)
    assert run.exit_code == 0, f"{run.stdout}{run.stderr}"
    return run
