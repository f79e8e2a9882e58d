"""How the ranks of a job meet and get one verdict: the first rank is the hub, every rank is a link to it.

`meet` runs in the job's own process. It starts no thread, changes nothing of the process, and leaves nothing behind:
no socket, no child, however it ends.
"""

from __future__ import annotations

import os
import resource
import selectors
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ncheck.hook.meeting.attendance import Attendance, Member, NotMet, Outcome, Told, Trouble
from ncheck.hook.meeting.hub import Hub
from ncheck.hook.meeting.link import Link
from ncheck.hook.meeting.ports import place_of
from ncheck.hook.meeting.wire import job_token
from ncheck.hook.neighbours import inherited_from, living
from ncheck.text import printable
from ncheck.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ncheck.hook.meeting.hub import StartExaminer
    from ncheck.hook.meeting.link import StartNodePart
    from ncheck.rank_variables import Rank

_PLENTY = 1 << 20
_USUAL = 64  # open files of a process
_STRANGERS = 320  # files for those who have not yet proved who they are, and for the hub itself

__all__ = ["Attendance", "Member", "NotMet", "Outcome", "Told", "Trouble", "job_token", "meet"]


def meet(  # noqa: PLR0913  the words of one call
    rank: Rank,
    token: bytes,
    *,
    timeout: float,
    start_node_part: StartNodePart,
    start_examiner: StartExaminer,
    rendezvous: str = "",
    show: Callable[[Mapping[str, Any]], None] = lambda _: None,
    patience: float = 0.0,
) -> Outcome:
    """Meet the other ranks, and return the verdict on the job: the same one on every rank, within `timeout` seconds.

    It waits longer, up to `patience` seconds, for ranks that have a process on a node from which others came: they are
    slow, and the job would wait for them too; and up to 75 s for ranks that may still start: see rules.py.
    `show({"note": ...})` says so every 30 s. A process that a rank has started waits for nobody longer, and who
    does not come is no error there: the others may have met, with that rank.

    `token` comes from `job_token`. `rendezvous` is NCHECK_RENDEZVOUS: HOST or HOST:PORT; SettingsError if it is not.

    `start_node_part(socket)` is called on the lowest rank of each node, `start_examiner(attendance, sockets, seconds)`
    on rank 0; the sockets, by `Member.machine`, are the other ends. Both start a child with `start_new_session=True`
    and `pass_fds`, and leave the sockets to the caller. The examiner has its standard output on a pipe and writes one
    line of JSON, an object; if it also has its standard error on a pipe, the last line of that explains a crash.

    `show(verdict)` is called on rank 0 before a rank gets the verdict: as soon as the first rank has ended, mpirun ends
    the others.
    """
    place = place_of(rank, token, rendezvous)
    if rank.rank != 0 and not place.hosts:
        return NotMet("no-master", "the launcher's variables do not say where rank 0 is: set MASTER_ADDR")
    own = _own_member(rank)
    inherited = bool(inherited_from(rank))
    patience = 0.0 if inherited else patience
    with ExitStack() as stack:
        stack.callback(_close_all, _hold_standard_files())
        selector = stack.enter_context(selectors.DefaultSelector())
        link = Link(own, selector, timeout, start_node_part, lambda numbers: living(rank, numbers), show, patience)
        stack.callback(link.close)
        if rank.rank != 0:
            link.search(rank, token, place)
            return _run(selector, link, None)
        room = _room_for(rank.size, stack)
        hub = Hub(
            rank, own, token=token, place=place, selector=selector, timeout=timeout, room=room,
            start_examiner=start_examiner, show=show, patience=patience, inherited=inherited,
        )  # fmt: skip
        stack.callback(hub.close)
        link.call(_pair_with(hub), token, lambda: _pair_with(hub))
        return _run(selector, link, hub)


def _run(selector: selectors.BaseSelector, link: Link, hub: Hub | None) -> Outcome:
    try:
        while True:
            link.tick()
            if hub:
                hub.tick()
            if link.outcome is not None:
                if hub is None or hub.done:
                    return link.outcome
                link.hang_up()  # the hub waits for the other ranks only
            wake = min(link.wake, hub.wake) if hub else link.wake
            for key, events in selector.select(max(0.0, wake - time.monotonic())):
                key.data(events)
    except Exception as error:
        link.leave("crashed")
        if hub:
            hub.break_off(NotMet("crashed", printable(f"ncheck failed on rank 0: {error!r}", 300)))
        raise


def _room_for(ranks: int, stack: ExitStack) -> int:
    """Return how many more files this process may open: if need be more, up to its hard limit, until the stack ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _PLENTY
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else _USUAL  # noqa: PTH112, PTH208
    wanted = used + ranks + _STRANGERS
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft, most) - used


def _pair_with(hub: Hub) -> socket.socket:
    """Connect this process to its own hub, with no port and no network."""
    ours, its = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003
    hub.accept(its)
    return ours


def _own_member(rank: Rank) -> Member:
    host_name = socket.gethostname()
    return Member(
        rank.rank, rank.size, rank.local_rank, host_name, rank.node_name, _machine(host_name), os.getpid(), "",
        __version__,
    )  # fmt: skip


def _machine(host_name: str) -> str:
    """Return what tells this machine, and this network namespace on it, from any other."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123  pathlib costs 5 ms
            boot_id = file.read().strip()
        return f"{boot_id} {os.readlink('/proc/self/ns/net')}"  # noqa: PTH115
    except OSError:
        return host_name


def _hold_standard_files() -> list[int]:
    """Hold what of 0, 1 and 2 is closed: else a socket would get the number, and with it what the job prints."""
    held = []
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004
        held.append(number)
    os.close(number)
    return held


def _close_all(numbers: list[int]) -> None:
    for number in numbers:
        os.close(number)
