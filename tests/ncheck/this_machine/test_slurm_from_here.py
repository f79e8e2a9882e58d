"""Slurm's reservations, asked once from this machine: whom the answer is for, and when nobody is asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.login import LoginFacts
from ncheck.facts.maintenance import RESERVATIONS, ReservationFacts, SlurmJob
from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Evidence, Login
from ncheck.model.fact import Absent
from ncheck.model.node import Node
from ncheck.settings import RunContext, Settings
from ncheck.this_machine import slurm_from_here
from ncheck.this_machine.slurm_from_here import Slurm

STANDIN = Path(__file__).parents[2] / "standins" / "slurm" / "slurm.py"
MAINT = (
    "ReservationName=dec StartTime=2026-11-26T19:47:46 EndTime=2026-11-26T21:47:46 Nodes=n[1-2] Flags=MAINT"
    " Users=root Groups=(null) Accounts=(null) State=INACTIVE"
)


class Head:
    """The stand-in for scontrol, and the only program on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.what: dict[str, object] = {"reservations": [], "log": str(folder / "log")}
        self.environ = {"PATH": str(folder), "STANDIN_SLURM": str(folder / "what.json"), "TZ": "Asia/Tokyo"}
        (folder / "scontrol").write_text(f"#!{sys.executable}\n{STANDIN.read_text()}")
        (folder / "scontrol").chmod(0o755)

    def evidence(self, settings: Settings | None = None, places: tuple[str, ...] = ()) -> dict[str, Evidence]:
        (self.folder / "what.json").write_text(json.dumps(self.what))
        logins = {name: Login(reached=name != "n3", transport="paramiko") for name in ("n1", "n2", "n3")}
        known: dict[str, Facts] = {name: {LoginFacts: LoginFacts(login)} for name, login in logins.items()}
        cluster = Cluster(tuple(Node(name, places=places) for name in known), known)
        with Slurm(cluster.nodes, settings or Settings(), self.environ) as slurm:
            evidence = {one.node: one for one in slurm.evidence(cluster)}
        assert slurm.process is None or slurm.process.returncode is not None
        return evidence

    def fact(self, settings: Settings | None = None, places: tuple[str, ...] = ()) -> object:
        return facts_of(self.evidence(settings, places)["n1"], [ReservationFacts])[ReservationFacts]


@pytest.fixture
def slurm(tmp_path: Path) -> Head:
    return Head(tmp_path)


def test_slurm_is_asked_once_for_all_nodes_that_were_reached(slurm: Head) -> None:
    slurm.what["reservations"] = ["ReservationName=course Flags=SPEC_NODES", MAINT]
    slurm.environ |= {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1795722466"}
    evidence = slurm.evidence()
    assert evidence.keys() == {"n1", "n2"}
    assert evidence["n1"].reply(RESERVATIONS) is evidence["n2"].reply(RESERVATIONS)
    value = evidence["n1"].reply(RESERVATIONS).value
    assert isinstance(value, dict)
    assert value["lines"] == [MAINT]
    fact = facts_of(evidence["n1"], [ReservationFacts])[ReservationFacts]
    assert isinstance(fact, ReservationFacts)
    assert fact.reservations[0].nodes == frozenset(("n1", "n2"))
    assert fact.job == SlurmJob(1795722466.0)
    asked = [json.loads(line) for line in (slurm.folder / "log").read_text().splitlines()]
    assert asked == [["scontrol", "-o", "show", "reservation", "UTC0", "standard"]]


def test_a_slurm_that_does_not_answer_is_no_trouble_of_the_nodes(slurm: Head) -> None:
    fact = slurm.fact()
    assert isinstance(fact, ReservationFacts)
    assert (fact.reservations, fact.job) == ((), None)
    slurm.what["controller"] = "slurm_load_reservations error: Unable to contact slurm controller (connect failure)"
    reason = f"scontrol on this machine: {slurm.what['controller']}"
    assert slurm.fact() == Absent(reason)
    slurm.environ["SLURM_JOB_ID"] = "7"
    assert slurm.fact() == Absent(reason)
    (slurm.folder / "scontrol").unlink()
    assert slurm.fact() == Absent("no scontrol on this machine")


def test_a_slurm_that_hangs_is_ended_and_no_trouble_of_the_nodes(slurm: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_from_here, "PATIENCE", 0.0)
    slurm.what["hangs"] = True
    assert slurm.fact() == Absent("scontrol on this machine: no answer")


def test_what_may_run_on_thousands_of_nodes_at_the_same_time_does_not_ask(slurm: Head) -> None:
    ranks = {"n1": RanksFacts(1, (0,))}
    assert slurm.fact(Settings(run=RunContext(ranks=ranks))) == Absent("the job has been started already")
    assert slurm.fact(places=("local",)) == Absent("Slurm is not asked where a machine examines itself")
    assert slurm.fact(Settings(run=RunContext(rehearsal=True))) == Absent("a rehearsal asks no Slurm")
    assert not (slurm.folder / "log").exists()
