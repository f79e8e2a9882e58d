"""Announced maintenance: a shutdown that systemd has scheduled on a node, and maintenance reservations of Slurm."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from ncheck.decode import Seconds
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import ON_THIS_MACHINE, Fact, no_answer
from ncheck.hostlist import unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent
from ncheck.text import printable


@dataclass(frozen=True)
class Shutdown:
    """A scheduled shutdown. `at`: seconds since 1970, `left`: seconds until then, both by the node's clock. `mode`:
    "poweroff", "reboot", "halt", "kexec" and the like; `message`: the one to the users, "" for none.
    """

    at: float
    left: float
    mode: str
    message: str = ""


@dataclass(frozen=True)
class ShutdownFacts:
    """The shutdown that systemd has scheduled on the node. `scheduled`: None for none."""

    scheduled: Shutdown | None


@dataclass(frozen=True)
class Reservation:
    """A reservation of Slurm for maintenance. `begins` and `ends`: seconds since 1970. `nodes` as Slurm names them.
    `open_to_us`: whether the user who runs ncheck may use it, None where that depends on an account or a group.
    """

    name: str
    nodes: frozenset[str]
    begins: float
    ends: float
    open_to_us: bool | None


@dataclass(frozen=True)
class SlurmJob:
    """The job that ncheck runs in. `ends`: seconds since 1970, None where Slurm does not say it; `reservation`: that
    it was submitted to, "" for none.
    """

    ends: float | None = None
    reservation: str = ""


@dataclass(frozen=True)
class ReservationFacts:
    """The maintenance reservations that Slurm showed on the machine that runs ncheck, the same on every node. `asked`:
    seconds since 1970. `job`: None outside of a job.
    """

    reservations: tuple[Reservation, ...]
    asked: float
    job: SlurmJob | None = None


@dataclass(frozen=True)
class ShutdownAnswer:
    """The text of systemd's file, null without one; `now`: seconds since 1970, null without that text."""

    systemd: bool
    scheduled: str | None
    now: Seconds | None


@dataclass(frozen=True)
class ReservationsAnswer:
    """`lines` as scontrol prints them, with times in UTC; `now`: seconds since 1970."""

    lines: tuple[str, ...]
    now: Seconds
    user: str
    job: SlurmJob | None


SHUTDOWN = Answer("shutdown", shape=ShutdownAnswer)
RESERVATIONS = Answer("slurm-reservations", shape=ReservationsAnswer)  # this machine answers it

# the line USEC=1764166800000000
_TIME = expression(r"^USEC=(\d{1,20})$", re.MULTILINE)

# the line MODE=poweroff
_MODE = expression(r"^MODE=([a-z-]{1,30})$", re.MULTILINE)

# the line WALL_MESSAGE=kernel update
_MESSAGE = expression(r"^WALL_MESSAGE=(.{1,4096})$", re.MULTILINE)

_NEVER = 2**63 // 10**6  # seconds: systemd writes 2**64 - 1 microseconds for no time at all
_MICROSECONDS = 1e6


@reading(SHUTDOWN)
def shutdown(answer: ShutdownAnswer) -> ShutdownFacts | Absent:
    """Read systemd's file. A shutdown that only warns the users ("shutdown -k") is none."""
    if not answer.systemd:
        return Absent("systemd does not run here, so no scheduled shutdown can be seen")
    text = answer.scheduled
    if text is None or "DRY_RUN=1" in text.splitlines():
        return ShutdownFacts(None)
    time, mode, message = _TIME.search(text), _MODE.search(text), _MESSAGE.search(text)
    if time is None or answer.now is None:
        raise ValueError("the scheduled shutdown has no time")
    at = int(time[1]) / _MICROSECONDS
    if at > _NEVER:
        return ShutdownFacts(None)
    return ShutdownFacts(
        Shutdown(at, at - answer.now, mode[1] if mode else "", printable(message[1]) if message else "")
    )


@reading(RESERVATIONS, no_answer)
def reservations(answer: ReservationsAnswer) -> ReservationFacts:
    """Read the reservations for maintenance, without those that always begin some time from now (TIME_FLOAT)."""
    read = []
    for line in answer.lines:
        name, _, rest = line.removeprefix("ReservationName=").partition(" StartTime=")  # a name may have spaces
        fields: dict[str, str] = {}
        for word in f"StartTime={rest}".split():
            key, equals, value = word.partition("=")
            if equals:  # the first counts: a comment comes last, and may hold anything
                fields.setdefault(key, "" if value == "(null)" else value)
        flags = fields["Flags"].split(",")
        if "MAINT" in flags and "TIME_FLOAT" not in flags and fields["Nodes"]:
            read.append(
                Reservation(
                    printable(name),
                    frozenset(unfold(fields["Nodes"])),
                    _seconds(fields["StartTime"]),
                    _seconds(fields["EndTime"]),
                    _open_to(answer.user, fields),
                )
            )
    return ReservationFacts(tuple(read), answer.now, answer.job)


def _seconds(text: str) -> float:
    """Return a time of scontrol, 2026-11-26T19:47:46, in seconds since 1970."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()


def _open_to(user: str, fields: dict[str, str]) -> bool | None:
    """Tell whether a user may use it. Users=-bob is open to all others; root may do what it likes."""
    users = fields["Users"].split(",") if fields["Users"] else []
    if user == "root" or user in users:
        return True
    if f"-{user}" in users:
        return False
    if fields["Accounts"] or fields.get("Groups"):
        return None
    return all(name.startswith("-") for name in users)


FACTS = (
    Fact(ShutdownFacts, (SHUTDOWN,), shutdown),
    Fact(
        ReservationFacts,
        (RESERVATIONS,),
        reservations,
        ON_THIS_MACHINE,
    ),
)
