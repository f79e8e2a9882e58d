"""Whatever a node of a healthy cluster does not answer, the run is no longer clean, unless another source tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts import amd
from ncheck.facts.fabric_manager import SERVICES
from ncheck.facts.firewall import IPTABLES
from ncheck.facts.isolation import ACS
from ncheck.facts.learning import facts_of, sources_for
from ncheck.facts.links import CONNECT
from ncheck.facts.mounts import MOUNTS
from ncheck.fleet.recording import load
from ncheck.model.evidence import ROUND, Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.settings import Settings
from ncheck.steps.judge import facts_wanted
from ncheck.steps.registry import load_checks

from tests import turns
from tests.every_fact import every_fact

pytestmark = pytest.mark.slow

HEALTHY = load(Path(__file__).parents[2] / "fixtures" / "healthy-4x8-h100")

TREES = ("tree:/sys/", "tree:/etc/openmpi")  # ibstat and NVML tell what the first show; the second may be empty
QUERY = "index,name,uuid,pci.bus_id,memory.total,memory.used,driver_version --format=csv,noheader,nounits"
UNENDED = {"timeout"}  # a program that hangs is a sickness, whoever else tells the same
UNASKED = {"timeout", "failed", "unanswered"}
UNREADABLE = {*UNASKED, "denied"}
WHOLE = "unanswered"  # the loss after which all checks judge, too: for every fourth answer, and the next ones tomorrow

# What a clean run can do without, why, and which loss of it is missed all the same. All else is always missed.
TOLD_OTHERWISE: dict[str, tuple[str, set[str]]] = {
    "answer:clock": ("the clock's offset stands in the evidence itself", set()),
    "command:mpiexec --version": ("asked only where there is no mpirun", set()),
    'command:sh -c found=$(command -v mpirun || command -v mpiexec) && readlink -f "$found"': ("tells a path", set()),
    "command:nft -j list ruleset": ("this user is shown no rule anyway", UNASKED),
    IPTABLES.key: ("this user is shown no rule anyway", UNASKED),
    "command:journalctl -k -b --no-pager -o short": ("this user sees no kernel message anyway", UNASKED),
    "command:dmesg": ("this user sees no kernel message anyway", UNASKED),
    ACS.key: ("this user is shown no access control of bridges anyway", UNASKED),
    "file:/etc/os-release": ("only the wording of a fix depends on it", set()),
    "answer:gpus": ("nvidia-smi tells them, too", set()),
    "answer:meeting": ("that ranks met is told by their steps", set()),
    "answer:ssh-peers": ("the launch from this machine opens no ssh from node to node", set()),
    "answer:ssh-from-here": (
        "recordings of earlier releases lack it",
        {"timeout", "failed", "denied", "cut", "value None", "value []", "value 'x'", "value 7"},
    ),
    "answer:prompt": ("only adds why there is no framework, and recordings of earlier releases lack it", UNENDED),
    "answer:tools": ("tells what might have been measured besides", set()),
    "command:grep -m4 -E ^(vendor_id|cpu family|model) /proc/cpuinfo": ("NVLink's GPUs need no way by the CPU", set()),
    "file:~/.openmpi/mca-params.conf": ("most users have no such file", UNREADABLE),
    MOUNTS.key: ("a node without the mounts of the others has a warning of its own", {*UNREADABLE, "missing", "cut"}),
    SERVICES.key: ("the GPUs themselves say that the fabric is ready, and none is shared between nodes", set()),
    "command:nv-fabricmanager --version": ("only the wording of a finding depends on it", set()),
    "command:nvidia-smi": ("NVML tells them, too", UNENDED),
    amd.LISTING.key: ("these GPUs are NVIDIA's", set()),
    amd.LINKS.key: ("these GPUs are NVIDIA's", set()),
    amd.ROCM.key: ("these GPUs are NVIDIA's", set()),
    f"command:nvidia-smi --query-gpu={QUERY}": ("NVML tells them, too", UNENDED),
    "command:nvidia-smi topo -m": ("the PCI bus and NVML tell the same", UNENDED),
    "answer:nvlinks": ("nvidia-smi topo -m tells them, too", set()),
}

# A program that is not there, where another one answers for it, or where that is a warning of its own.
MAY_BE_MISSING = {
    "command:mpirun --version",
    "command:ibstat",
    "answer:interpreter",
    "answer:pci",  # a container may show none; NVML and /sys/class tell GPUs and NICs
    "command:systemctl is-active firewalld ufw",
}

LINKS = {"NC307", "NC310", "NC311", "NC312", "NC313", "NC314", "NC315", "NC319"}  # every check of links in the mesh

ANSWERED = [key for key, reply in HEALTHY[0].replies.items() if not key.startswith(TREES)]


def losses(reply: Reply) -> Iterator[tuple[str, Reply]]:
    """Yield the ways in which an answer can be lost. A program's half of an answer is each parser's own test."""
    for status in Status:
        if status not in (Status.OK, Status.NOT_ASKED):  # that one is the word of the head
            yield status.value, Reply(status, reason="lost", seconds=10.0, asked=reply.asked)
    yield "cut", replace(reply, truncated=True)
    if reply.exit_status is not None:
        yield "exit status 1", replace(reply, exit_status=1)
        yield "empty", replace(reply, stdout="", stderr="")
    if reply.value is not None:
        wrong: tuple[Any, ...] = (None, [], "x", 7)
        for value in wrong:
            yield f"value {value!r}", replace(reply, value=value)


# The sources of each check, but for the checks of ncheck itself: they hear of whatever the others could not read.
READ = {
    check.code: {source.key for source in sources_for(facts_wanted([check]))}
    for check in load_checks().checks
    if not check.code.startswith("NC0")
}


# The sources of each fact.
KEYS = {fact: {source.key for source in sources_for([fact])} for fact in every_fact()}


def readers(key: str) -> tuple[str, ...]:
    """Return what to select to judge all that a reply can change: a check is shown what it declares and no more."""
    return ("NC0", *(code for code, sources in READ.items() if source_of(key) in sources))


def source_of(key: str) -> str:
    return key.rpartition(ROUND)[0] or key


def read(node: Evidence, key: str) -> dict[type[object], object]:
    """Return the facts that a reply can change, but not the words why one is missing: no verdict rests on them."""
    facts = facts_of(node, [fact for fact in every_fact() if source_of(key) in KEYS[fact]])
    return {
        kind: replace(fact, reason="") if isinstance(fact, Unread | Absent) else fact for kind, fact in facts.items()
    }


def judged(nodes: tuple[Evidence, ...], select: tuple[str, ...] = ()) -> Report:
    return judge_again(nodes, Settings(select=select), Silent())


def test_the_cluster_is_healthy_to_begin_with() -> None:
    assert judged(HEALTHY).exit_code == 0


NOTHING: dict[str, Any] = {"reaches": [], "broken": [], "tried": []}
FEWER: dict[str, dict[str, Any]] = {
    "nothing": NOTHING,
    "no peer": {**NOTHING, "reaches": [{"subnet": "10.20.0.0/24", "source": "10.20.0.11", "tried": 3, "reached": 3}]},
    "no link": {**NOTHING, "tried": ["gpu02", "gpu03", "gpu04"]},
    "two of three": {
        **NOTHING,
        "reaches": [{"subnet": "10.20.0.0/24", "source": "10.20.0.11", "tried": 2, "reached": 2}],
        "tried": ["gpu02", "gpu03"],
    },
}


@pytest.mark.parametrize("answer", FEWER)
def test_fewer_links_than_were_asked_for_are_unknown(answer: str) -> None:
    first, *others = HEALTHY
    sick = replace(first, replies={**first.replies, CONNECT.key: Reply(Status.OK, value=FEWER[answer])})

    report = judged((sick, *others))

    links = (one for one in report.verdicts if one.code in LINKS)
    outcomes = {(one.code, node): one.outcome.value for one in links for node in one.nodes}
    assert {code for (code, node), outcome in outcomes.items() if (node, outcome) == ("gpu01", "unknown")} == LINKS
    assert "failed" not in outcomes.values()
    assert report.exit_code == 1


@pytest.mark.parametrize("key", ANSWERED)
def test_what_one_node_does_not_answer_is_missed(key: str) -> None:
    first, *others = HEALTHY
    missed = set()
    codes = [(read(first, key), 0)]  # losses that leave the same facts are judged once
    for loss, reply in losses(first.replies[key]):
        sick = replace(first, replies={**first.replies, key: reply})
        facts = read(sick, key)
        code = next((code for same, code in codes if same == facts), None)
        if code is None:
            report = judged((sick, *others), readers(key))
            assert not [verdict for verdict in report.verdicts if verdict.outcome.value == "crashed"]
            code = report.exit_code
            codes.append((facts, code))
        if loss == WHOLE and ANSWERED.index(key) % 4 == turns.TURN % 4:
            assert judged((sick, *others)).exit_code == code, turns.REPEAT
        missed |= {loss} if code else set()
    every = {loss for loss, _ in losses(first.replies[key])}
    must = TOLD_OTHERWISE[key][1] if key in TOLD_OTHERWISE else every
    assert missed >= (must - {"missing"} if key in MAY_BE_MISSING else must)


def test_every_source_that_is_told_otherwise_is_one_that_is_asked_for() -> None:
    assert {*TOLD_OTHERWISE, *MAY_BE_MISSING} <= HEALTHY[0].replies.keys()
