"""What systemd and Slurm announce, as they write it."""

from __future__ import annotations

from ncheck.facts.learning import facts_of
from ncheck.facts.maintenance import (
    RESERVATIONS,
    SHUTDOWN,
    Reservation,
    ReservationFacts,
    Shutdown,
    ShutdownFacts,
    SlurmJob,
)
from ncheck.model.evidence import Answer, Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread

# As systemd 252 and 219 write it
SCHEDULED = "USEC=1764166800000000\nWARN_WALL=1\nMODE=reboot\nUID=0\nTTY=pts/0\nWALL_MESSAGE=kernel update\n"
ONLY_A_WARNING = "USEC=1764166800000000\nWARN_WALL=1\nMODE=poweroff\nDRY_RUN=1\n"
NOW = 1764164400.0

# As scontrol of Slurm 22.05 prints them, without the fields in the middle
LINES = """\
ReservationName=dec 24 StartTime=2026-11-26T19:47:46 EndTime=2026-11-26T21:47:46 Nodes=node[05-06,08] \
Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=16 Users=root Groups=(null) Accounts=(null) State=INACTIVE
ReservationName=floats StartTime=2026-11-26T18:47:46 EndTime=2026-11-26T19:47:46 Nodes=node16 \
Flags=MAINT,SPEC_NODES,TIME_FLOAT TRES=cpu=4 Users=root Groups=(null) Accounts=(null) State=INACTIVE
ReservationName=course StartTime=2026-11-26T19:47:46 EndTime=2026-11-26T21:47:46 Nodes=node05 \
Flags=SPEC_NODES TRES=cpu=16 Users=bob Groups=(null) Accounts=(null) State=INACTIVE Comment=Flags=MAINT
""".splitlines()
DEC = Reservation("dec 24", frozenset(("node05", "node06", "node08")), 1795722466.0, 1795729666.0, open_to_us=False)


def read(source: Answer, fact: type, value: JsonValue) -> object:
    evidence = Evidence("n1", Login(reached=True), replies={source.key: Reply(Status.OK, value=value)})
    return facts_of(evidence, [fact])[fact]


def shutdown(text: str | None, *, systemd: bool = True) -> object:
    now = None if text is None else NOW
    return read(SHUTDOWN, ShutdownFacts, {"systemd": systemd, "scheduled": text, "now": now})


def test_the_time_of_a_shutdown_is_compared_with_the_nodes_own_clock() -> None:
    expected = Shutdown(at=1764166800.0, left=2400.0, mode="reboot", message="kernel update")
    assert shutdown(SCHEDULED) == ShutdownFacts(expected)
    for none in (None, ONLY_A_WARNING, "USEC=18446744073709551615\nMODE=poweroff\n"):
        assert shutdown(none) == ShutdownFacts(None)
    assert shutdown(None, systemd=False) == Absent("systemd does not run here, so no scheduled shutdown can be seen")
    assert shutdown("MODE=reboot\n") == Unread("could not be parsed: ValueError: the scheduled shutdown has no time")


def reserved(*lines: str, user: str = "ada", job: JsonValue = None) -> object:
    return read(RESERVATIONS, ReservationFacts, {"lines": [*lines], "now": NOW, "user": user, "job": job})


def test_only_reservations_for_maintenance_that_have_a_time_of_their_own_are_read() -> None:
    assert reserved(*LINES) == ReservationFacts((DEC,), NOW)
    job: JsonValue = {"ends": NOW + 60, "reservation": "dec"}
    assert reserved(job=job) == ReservationFacts((), NOW, SlurmJob(NOW + 60, "dec"))
    garbled = reserved(LINES[0].replace("2026-11-26T19:47:46", "Unknown"))
    assert isinstance(garbled, Unread)


def test_who_may_use_a_reservation() -> None:
    def open_to(user: str, users: str, accounts: str = "Accounts=(null)") -> bool | None:
        line = LINES[0].replace("Users=root", f"Users={users}").replace("Accounts=(null)", accounts)
        facts = reserved(line, user=user)
        assert isinstance(facts, ReservationFacts)
        return facts.reservations[0].open_to_us

    assert [open_to(*case) for case in (
        ("ada", "root,ada"), ("root", "bob"), ("ada", "-bob"), ("ada", "(null)", "Accounts=-ops"),
    )] == [True, True, True, None]  # fmt: skip
    assert [open_to(*case) for case in (("ada", "bob"), ("bob", "-bob"), ("ada", "bob", "Accounts=ops"))] == [
        False, False, None,
    ]  # fmt: skip
