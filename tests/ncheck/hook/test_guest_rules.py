"""The rules of a meeting on every rank, as tables: whom it calls, and why it did not meet. No process, no socket."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ncheck.hook.meeting import guest
from ncheck.hook.meeting.guest import Action, Calls, Guest, LookForHost, Resolve, Step, Target
from ncheck.hook.meeting.messages import (
    ENDED,
    FILTERED,
    FOREIGN,
    LOST,
    REFUSED,
    UNREACHABLE,
    Came,
    Leave,
    Look,
    Member,
    Message,
    NotMet,
    Open,
    Told,
    Wait,
    Welcome,
)  # fmt: skip
from ncheck.hook.meeting.ports import HubAddress, Place
from ncheck.hook.meeting.rules import Show
from ncheck.rank_variables import Rank

PORTS, MASTER = (20001, 20002, 20003), 29500
HOST = HubAddress(socket.AF_INET, ("10.0.0.1", 0))
LOOPBACK = HubAddress(socket.AF_INET, ("127.0.1.1", 0))
OWN = Member(1, 2, None, "host1", "", "machine 1", 1001, "", "0.1.0")
ZERO = Member(0, 2, None, "host0", "", "machine 0", 1000, "", "0.1.0")
PLACE = Place(("n0",), PORTS, MASTER, "MASTER_ADDR")
OPEN, WAITING = "open", "waiting"  # no reason: the call has not ended, and somebody has accepted it or nobody

Event = Callable[[Guest], Step]


def begun(timeout: float = 1.5, place: Place | None = PLACE, **fields: Any) -> Guest:
    words = {"rank": Rank(1, 2), "own": OWN, "begun": 0.0, "deadline": timeout, "addresses": (HOST,), **fields}
    return Guest(place=place, timeout=timeout, **words)


def play(now: Guest, *events: Event) -> tuple[Guest, list[Action]]:
    """Let this happen, and return what was done."""
    done = list[Action]()
    for event in events:
        now, actions = event(now)
        done += actions
    return now, done


def tick(at: float, *connected: Target) -> Event:
    return lambda now: guest.tick(now, at, connected)


def found(at: float = 1.0, *, sure: bool = True) -> Event:
    return lambda now: guest.found(now, at, sure=sure)


def heard(message: Message) -> Event:
    return lambda now: guest.heard(now, message)


def at(port: int) -> Target:
    return HOST, port


def test_rank_0_is_called_at_all_ports_and_again_at_the_first_which_it_nearly_always_has() -> None:
    now, done = play(begun(9.0, addresses=(), resolved=-9.0), tick(0.0))
    assert done == [Resolve(("n0",))]
    first = tuple(map(at, PORTS))
    now, done = play(now, lambda now: guest.resolved(now, (HOST, HOST), "", 0.0, 0.01))
    assert (done, now.wake) == ([Calls((), first)], 0.1)
    for port in PORTS:
        now, _ = guest.call_ended(now, at(port), REFUSED)
    assert play(now, tick(0.05))[1] == []
    now, done = play(now, tick(0.1))
    assert (done, round(now.wake, 3)) == ([Calls((), first[:1])], 0.25)
    now, done = play(now, tick(0.3), tick(0.6))
    assert done == []  # the call of the second try is under way
    now, _ = guest.call_ended(now, at(20001), REFUSED)
    assert play(now, tick(1.0))[1] == [Calls((), (*first, at(MASTER)))]  # the fifth try
    assert play(now, tick(0.95))[1] == [Calls((), first)]  # the job's own store is left alone for a second
    now, _ = play(now, tick(1.0))
    now, done = play(now, tick(3.0, at(20002)))
    assert done == [Calls((at(20001), at(20003), at(MASTER)), (at(20001), at(MASTER)))]  # nobody answers there
    assert now.last == {at(20001): FILTERED, at(20002): REFUSED, at(20003): FILTERED, at(MASTER): FILTERED}


def test_a_name_is_looked_up_again_now_and_then_unless_that_is_slow_or_there_is_no_time() -> None:
    assert play(begun(30.0), tick(4.9))[1] == [Calls((), (*map(at, PORTS), at(MASTER)))]
    assert play(begun(30.0), tick(5.0))[1] == [Resolve(("n0",))]
    assert Resolve(("n0",)) not in play(begun(30.0, took=0.6), tick(5.0))[1]
    assert play(begun(30.0, took=0.6, addresses=()), tick(5.0))[1] == [Resolve(("n0",))]
    assert play(begun(5.5, took=0.6, addresses=()), tick(5.0))[1] == []
    now, _ = guest.resolved(begun(30.0), (), "Name or service not known", 5.0, 0.1)
    assert (now.addresses, now.problem) == ((HOST,), "Name or service not known")


HERE = replace(PLACE, hosts=("10.0.0.1",))
GUESSED = replace(PLACE, given="SLURM_STEP_NODELIST")
WITHOUT = replace(PLACE, master_port=None)
WAITED = "rank 0 was not found at MASTER_ADDR=n0 (10.0.0.1) within 1.5 s: "
FIREWALL = "no answer from its ports (20001 and 2 others), perhaps because of a firewall"


@pytest.mark.parametrize(
    ("place", "own", "master", "outcome"),
    [
        (PLACE, [REFUSED], REFUSED, NotMet(
            "refused", f"{WAITED}it refuses the connections, and nothing listens on MASTER_PORT 29500 either",
            is_error=True,
        )),
        (HERE, [REFUSED], OPEN, NotMet(
            "refused", "rank 0 was not found at MASTER_ADDR=10.0.0.1 within 1.5 s: it refuses the connections",
        )),
        (GUESSED, [REFUSED], REFUSED, NotMet(
            "refused", "rank 0 was not found at n0 (10.0.0.1) within 1.5 s: it refuses the connections",
        )),
        (WITHOUT, [REFUSED], None, NotMet("refused", f"{WAITED}it refuses the connections")),
        (PLACE, [REFUSED], None, NotMet("refused", f"{WAITED}it refuses the connections")),  # there was no time
        (PLACE, [REFUSED], FILTERED, NotMet("refused", f"{WAITED}it refuses the connections")),
        (PLACE, [f"{ENDED} {REFUSED}"], REFUSED, NotMet("refused", f"{WAITED}it refuses the connections")),
        (PLACE, [FOREIGN, REFUSED], REFUSED, NotMet(
            "refused", f"{WAITED}it refuses the connections, and nothing listens on MASTER_PORT 29500 either",
            is_error=True,
        )),
        (PLACE, [OPEN], REFUSED, NotMet(
            "foreign", f"{WAITED}other programs answer on its ports (20001 and 2 others)",
        )),  # it may be rank 0 under load
        (WITHOUT, [FILTERED], None, NotMet("filtered", f"{WAITED}{FIREWALL}")),
        (replace(WITHOUT, ports=(20001,)), [FILTERED], None, NotMet(
            "filtered", f"{WAITED}{FIREWALL.replace(' and 2 others', '')}",
        )),
        (PLACE, [FILTERED], FILTERED, NotMet(
            "filtered", f"{WAITED}{FIREWALL.replace(', per', ' and from MASTER_PORT 29500, per')}", is_error=True,
        )),
        (PLACE, [FILTERED], REFUSED, NotMet("filtered", f"{WAITED}{FIREWALL}")),
        (PLACE, [FILTERED], WAITING, NotMet("filtered", f"{WAITED}{FIREWALL}")),  # not for long enough
        (PLACE, [REFUSED], f"{FOREIGN} {REFUSED}", NotMet("refused", f"{WAITED}it refuses the connections")),
        (PLACE, [UNREACHABLE], UNREACHABLE, NotMet("unreachable", f"{WAITED}there is no route to it", is_error=True)),
        (WITHOUT, [UNREACHABLE], None, NotMet("unreachable", f"{WAITED}there is no route to it")),
        (PLACE, [LOST], LOST, NotMet("unreachable", f"{WAITED}the connections to it fail")),
        (PLACE, [], None, NotMet("unreachable", f"{WAITED}there is no route to it")),
    ],
    ids=["refused", "store", "guessed", "no master port", "no time", "master silent", "was there", "one foreign",
         "silent", "filtered", "one port", "firewall", "store refuses", "store waits", "store was there",
         "no route", "no route for us", "lost",
         "nothing"],
)  # fmt: skip
def test_why_rank_0_was_not_found_is_an_error_only_where_the_job_could_not_meet_either(
    place: Place, own: list[str], master: str | None, outcome: NotMet
) -> None:
    now = begun(place=place)
    ends = [(at(PORTS[index]), reason) for index, reason in enumerate(own)]
    ends += [(at(MASTER), master)] if master else []
    for target, reason in ends:
        for word in reason.split() if reason not in {OPEN, WAITING} else ():
            now, _ = guest.call_ended(now, target, word)
    still = {target: reason for target, reason in ends if reason in {OPEN, WAITING}}
    connected = [target for target, reason in still.items() if reason == OPEN]
    now, done = play(replace(now, calls=dict.fromkeys(still, 1.0)), tick(1.5, *connected))
    assert (now.outcome, done) == (outcome, [])


@pytest.mark.parametrize(
    ("place", "rank", "addresses", "outcome"),
    [
        (PLACE, Rank(1, 2), (), NotMet(
            "unresolved", "MASTER_ADDR=n0 does not resolve on this host: Name or service not known", is_error=True,
        )),
        (GUESSED, Rank(1, 2), (), NotMet("unresolved", "n0 does not resolve on this host: Name or service not known")),
        (replace(PLACE, given="NCHECK_RENDEZVOUS"), Rank(1, 2), (), NotMet(
            "unresolved", "NCHECK_RENDEZVOUS=n0 does not resolve on this host: Name or service not known",
        )),
        (PLACE, Rank(1, 2, node=1), (LOOPBACK,), NotMet(
            "loopback", "MASTER_ADDR=n0 is 127.0.1.1 on this host, but rank 0 is on another one", is_error=True,
        )),
        (GUESSED, Rank(1, 2, node=1), (LOOPBACK,), NotMet(
            "loopback", "n0 is 127.0.1.1 on this host, but rank 0 is on another one",
        )),
        (PLACE, Rank(1, 2, hosts=("n1", "n1"), layout=(0, 1), node_name="n1"), (LOOPBACK,), NotMet(
            "unreachable", "rank 0 was not found at MASTER_ADDR=n0 (127.0.1.1) within 1.5 s: there is no route to it",
        )),  # no proof that it is on another machine
    ],
    ids=["no address", "guessed", "given", "loopback", "guessed loopback", "same machine"],
)  # fmt: skip
def test_a_name_that_leads_nowhere_is_an_error_if_the_job_uses_it(
    place: Place, rank: Rank, addresses: tuple[HubAddress, ...], outcome: NotMet
) -> None:
    now = begun(place=place, rank=rank, addresses=addresses, problem="Name or service not known")
    assert play(now, tick(1.5))[0].outcome == outcome


def test_a_rank_0_that_is_found_ends_the_search_and_one_that_turns_us_away_is_called_again() -> None:
    now, done = play(begun(9.0, calls={at(20002): 0.5}), found())
    assert done == [Calls((at(20002),)), Came(OWN, 8.0)]
    assert (now.searching, now.wake) == (False, 9.0)
    now, _ = guest.host_left(now, ENDED)
    assert (now.searching, now.outcome) == (True, None)
    assert play(now, tick(1.1))[1] == [Calls((), (*map(at, PORTS), at(MASTER)))]


TOLD = Told({"stop": False}, (ZERO,))
IS_ENDED = NotMet("ended", "rank 0 ended", is_error=True)


@pytest.mark.parametrize(
    ("sure", "last", "outcome"),
    [
        (True, heard(TOLD), TOLD),
        (False, heard(TOLD), Told(TOLD.verdict)),  # a stranger stops nothing by what ended
        (True, heard(IS_ENDED), IS_ENDED),
        (False, heard(IS_ENDED), replace(IS_ENDED, is_error=False)),
        (True, lambda now: guest.host_left(now, ENDED),
         NotMet("ended", "rank 0 (pid 1000 on host0) ended before there was a verdict", is_error=True)),
        (False, lambda now: guest.host_left(now, ENDED),
         NotMet("ended", "rank 0 (pid 1000 on host0) ended before there was a verdict")),
        (True, lambda now: guest.host_left(now, LOST), NotMet("lost", "the connection to rank 0 broke")),
        (True, lambda now: guest.host_left(now, FOREIGN), NotMet("lost", "the connection to rank 0 broke")),
        (True, tick(9.0), NotMet("overran", "rank 0 sent no verdict within 9 s")),
    ],
    ids=["verdict", "verdict of a stranger", "no verdict", "no verdict of a stranger", "ended", "stranger ended",
         "lost", "nonsense", "overran"],
)  # fmt: skip
def test_how_a_meeting_ends(last: Event, outcome: Told | NotMet, *, sure: bool) -> None:
    now, done = play(begun(9.0), found(sure=sure), heard(Welcome(ZERO)), last)
    assert now.outcome == outcome
    assert done[2:] == ([Leave("overran")] if getattr(outcome, "kind", "") == "overran" else [])
    assert play(now, tick(99.0), lambda now: guest.host_left(now, ENDED)) == (now, [])


def test_what_rank_0_wants_is_done() -> None:
    now, done = play(begun(9.0, patient_until=60.0), found(), heard(Look((3, 4))), heard(Open("00ff")))
    assert done[2:] == [Look((3, 4)), Open("00ff")]
    assert play(now, heard(Wait()))[0].deadline == 39.0
    assert play(now, *[heard(Wait())] * 9)[0].deadline == 69.0
    assert guest.heard(now, None) == (now, ())  # a kind that this version does not know


def test_in_the_process_of_rank_0_nobody_is_searched_for() -> None:
    now = begun(9.0, place=None)
    assert (now.wake, play(now, tick(1.0))[1]) == (9.0, [])
    assert play(now, found(), lambda now: guest.host_left(now, ENDED))[0].outcome == NotMet(
        "ended", "rank 0 ended before there was a verdict", is_error=True
    )
    assert play(now, tick(9.0))[0].outcome == NotMet("overran", "no verdict within 9 s")


REFUSING = {at(20001): REFUSED, at(MASTER): REFUSED}


@pytest.mark.parametrize(
    ("last", "lives", "now", "note"),
    [
        (REFUSING, True, 1.5, ", which has a process on this host"),
        (REFUSING, False, 1.5, ""),  # the job would be stopped, and it may still start
        (REFUSING, False, 75.0, None),
        ({at(20001): FILTERED}, True, 75.0, ", which has a process on this host"),
        ({at(20001): FILTERED}, False, 1.5, None),
    ],
)
def test_a_rank_0_that_may_still_come_is_waited_for_longer(
    last: dict[Target, str], now: float, note: str | None, *, lives: bool
) -> None:
    late, done = play(begun(patient_until=600.0, last=last), tick(1.5), lambda old: guest.looked(old, now, lives=lives))
    text = f"still waiting for rank 0{note}: NCHECK_TIMEOUT=SECONDS limits this"
    assert done == [LookForHost(), *([] if note is None else [Show({"note": text})])]
    assert (late.deadline, late.outcome is None) == ((1.5, False) if note is None else (31.5, True))


def test_nobody_is_waited_for_longer_than_the_patience() -> None:
    now, done = play(begun(patient_until=1.5, last=REFUSING), tick(1.5))
    assert (now.outcome is not None, done) == (True, [])
