"""NC660: reservations of Slurm for maintenance."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import IdentityFacts
from ncheck.facts.maintenance import Reservation, ReservationFacts, SlurmJob
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.reservation_ahead import reservation_ahead

NOW = 1764166800.0  # 2025-11-26 14:20 UTC
HOUR = 3600.0
DEC = Reservation("maint dec", frozenset(("node1", "node2")), NOW + 2 * HOUR, NOW + 4 * HOUR, open_to_us=True)
ACTIVE = Reservation("repair", frozenset(("node2",)), NOW - HOUR, NOW + HOUR, open_to_us=False)


def found(*reservations: Reservation, job: SlurmJob | None = None) -> list[Finding]:
    facts = ReservationFacts(reservations, NOW, job)
    nodes: dict[str, Facts] = {
        "node1.lab": {ReservationFacts: facts, IdentityFacts: Unread("no greeting")},
        "10.0.0.2": {ReservationFacts: facts, IdentityFacts: IdentityFacts("node2.lab", "", "", 0)},
        "10.0.0.4": {ReservationFacts: facts, IdentityFacts: IdentityFacts("node4", "", "", 0)},
    }
    return judge([reservation_ahead], nodes).findings


def said(*reservations: Reservation, job: SlurmJob | None = None) -> list[tuple[Severity, str]]:
    return [(one.severity, one.message.partition(" until ")[0]) for one in found(*reservations, job=job)]


def test_its_nodes_are_found_by_their_names_and_host_names() -> None:
    assert found(DEC) == [
        Finding("NC660", "reservation-ahead", Severity.ERROR, ("node1.lab", "10.0.0.2"),
                "Slurm reserves it for maintenance from 2025-11-26 16:20 UTC, in 2 h, until 2025-11-26 18:20 UTC:"
                " maint dec",
                (), "scontrol show 'reservation=maint dec'", where="here", kind="look",
                summary="Slurm has a reservation for maintenance"),
    ]  # fmt: skip


def test_how_grave_it_is_depends_on_when_it_begins_and_who_may_use_it() -> None:
    weekly = Reservation("weekly", frozenset(("node1",)), NOW + 72 * HOUR, NOW + 73 * HOUR, open_to_us=False)
    tonight = replace(weekly, begins=NOW + 20 * HOUR, ends=NOW + 21 * HOUR)
    account = Reservation("account", frozenset(("node2",)), NOW - HOUR, NOW + HOUR, open_to_us=None)
    since = "Slurm reserves it for maintenance since 2025-11-26 13:20 UTC"
    assert said(weekly) == [(Severity.INFO, "Slurm reserves it for maintenance from 2025-11-29 14:20 UTC, in 3 days,")]
    assert said(tonight) == [
        (Severity.WARNING, "Slurm reserves it for maintenance from 2025-11-27 10:20 UTC, in 20 h,")
    ]
    assert said(tonight, job=SlurmJob(NOW + 22 * HOUR))[0][0] is Severity.ERROR
    assert said(account) == [(Severity.WARNING, since)]
    assert said(ACTIVE) == [(Severity.ERROR, since)]


def test_it_is_silent_about_other_nodes_past_times_and_administrators_in_the_reservation() -> None:
    others = Reservation("others", frozenset(("node3", "10")), NOW + HOUR, NOW + 2 * HOUR, open_to_us=False)
    over = Reservation("over", frozenset(("node1",)), NOW - 2 * HOUR, NOW, open_to_us=False)
    ours = Reservation("ours", frozenset(("node1",)), NOW - HOUR, NOW + HOUR, open_to_us=True)
    assert found(others, over, ours) == []


def test_slurm_keeps_its_own_jobs_out_of_a_reservation() -> None:
    assert found(DEC, ACTIVE, job=SlurmJob()) == []  # it does not say when the job ends
    assert found(DEC, job=SlurmJob(NOW + HOUR)) == []
    assert found(ACTIVE, job=SlurmJob(NOW + HOUR, "repair")) == []
    reaches = said(DEC, ACTIVE, job=SlurmJob(NOW + 3 * HOUR))  # as where it was made with IGNORE_JOBS
    assert [severity for severity, _ in reaches] == [Severity.ERROR, Severity.ERROR]
