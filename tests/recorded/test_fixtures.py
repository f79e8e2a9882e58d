"""The recorded clusters: each is what its description says, and each is judged as it should be, whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.demo import recorded_cluster, recorded_clusters
from ncheck.facts.learning import sources_for
from ncheck.model.evidence import Status
from ncheck.model.finding import Outcome
from ncheck.probe.facts import GIVEN, TOPOLOGY
from ncheck.triage.facts.pulse import PULSE
from ncheck.triage.live import facts_read

from tests.every_fact import every_fact

from .clusters import CLUSTERS, FOUR
from .make import files
from .replayed import FIXTURES, replayed

# Cluster: what its report says, as {code: nodes}, and nothing else.
FINDINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "healthy-4x8-h100": {},
    "slow-node-and-rail": {"NC402": ("gpu02",), "NC710": ("gpu03",), "NC712": FOUR, "NC721": FOUR},
    "mixed-nccl": {"NC201": ("gpu03",)},
    "one-node-down": {"NC001": ("gpu03",), "NC111": ("gpu03",)},
    "port-polling": {"NC402": ("gpu02",)},
    "docker0-and-veth": {"NC304": FOUR, "NC356": FOUR},
    "veth-without-infiniband": {"NC337": ("gpu01", "gpu02")},
    "efa-without-plug-in": {"NC236": ("gpu01", "gpu02")},
    "names-that-differ": {"NC302": FOUR},
    "one-way-and-hole": {"NC313": ("gpu02", "gpu04"), "NC314": ("gpu03",)},
    "all-refused": {"NC001": FOUR, "NC111": FOUR},
    "fresh-containers": {
        "NC001": ("gpu09", "gpu10", "gpu11"),
        "NC117": ("gpu09", "gpu10"),
        "NC118": ("gpu11",),
        "NC132": ("gpu08",),
        "NC204": ("gpu05",),
        "NC205": ("gpu05",),
        "NC209": ("gpu07",),
        "NC220": ("gpu06",),
        "NC316": ("gpu01",),
        "NC360": ("gpu08",),
        "NC540": ("gpu12",),
        "NC602": ("gpu03",),
        "NC604": ("gpu04",),
        "NC730": ("gpu02",),
    },
    "demo": {
        "NC001": ("gpu06",),
        "NC111": ("gpu06",),
        "NC130": ("gpu05",),
        "NC201": ("gpu03",),
        "NC304": ("gpu01", "gpu02", "gpu03", "gpu04", "gpu05"),
        "NC356": ("gpu01", "gpu02", "gpu03", "gpu04", "gpu05"),
        "NC402": ("gpu04",),
    },
}
TOLD_ONLY = {"NC356"}  # for information: a node of which it is told is healthy all the same


@pytest.mark.slow
def test_the_files_are_what_the_descriptions_say() -> None:
    there = {str(path.relative_to(FIXTURES)): path.read_text() for path in FIXTURES.glob("*/*")}
    made = files()
    assert sorted(there) == sorted(made)
    assert [path for path in made if made[path] != there[path]] == [], "type: python -m tests.recorded"


def test_the_clusters_come_from_beside_the_code_as_well() -> None:
    assert recorded_clusters() == tuple(sorted(CLUSTERS))
    for name, hosts in CLUSTERS.items():
        assert [node.node for node in recorded_cluster(name)] == [host.name for host in hosts]


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_node_that_was_reached_answers_all_that_any_reader_asks(name: str) -> None:
    not_asked = {*sources_for(facts_read()), PULSE, GIVEN, TOPOLOGY}  # by triage alone, or where all are slow together
    wanted = [source for source in sources_for(every_fact()) if source not in not_asked]
    for node in recorded_cluster(name):
        untold = [source for source in wanted if node.reply(source).status is Status.UNANSWERED]
        silent = [source.key for source in untold if not node.rounds(source)]
        assert (node.node, silent) == (node.node, [] if node.login.reached else [source.key for source in wanted])


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERS)
def test_each_cluster_is_judged_as_it_is_and_nothing_else_is_said(name: str) -> None:
    report = replayed(name)
    found: dict[str, tuple[str, ...]] = {}
    for finding in report.findings:
        found[finding.code] = tuple(sorted((*found.get(finding.code, ()), *finding.nodes)))
    assert found == FINDINGS[name]


NEED_ROOT = {
    "NC358", "NC431", "NC436", "NC506", "NC507", "NC538", "NC539", "NC648", "NC649", "NC650", "NC656", "NC657",
}  # fmt: skip
# No network plug-in, no EFA; no data over TCP, no ssh from node to node in the launch, nothing that hides GPUs, no plan
# to be tried, no interface named by hand, no GID index and no list of HCAs set, no RoCE, one NIC a subnet, no bond;
# nothing measured on CPUs, nothing without an expectation, no perftest, and an NCCL without diagnostics; no Slurm; no
# --storage-probe, --workdir, --packages all or --gpu-test; no control group with a limit, no container; no times of
# logins.
NOTHING_THERE = {
    *(f"NC75{last}" for last in range(9)),
    "NC560",
    "NC561",
    "NC131",
    "NC139",
    "NC140",
    "NC211",
    "NC217",
    "NC218",
    "NC220",
    "NC223",
    "NC227",
    *(f"NC23{last}" for last in range(2, 7)),
    "NC324",
    "NC330",
    "NC336",
    "NC352",
    "NC359",
    "NC430",
    "NC416",
    "NC417",
    "NC422",
    "NC617",
    "NC627",
    "NC628",
    "NC651",
    "NC652",
    "NC713",
    "NC722",
    "NC740",
    "NC741",
    "NC742",
    "NC743",
}


def test_a_healthy_cluster_ends_in_0_and_every_check_has_passed_that_has_something_to_judge() -> None:
    report = replayed("healthy-4x8-h100")
    assert report.exit_code == 0
    assert report.recorded
    assert {v.outcome for v in report.verdicts} == {Outcome.PASSED, Outcome.SKIPPED}
    skipped = {(v.code, v.needs_root) for v in report.verdicts if v.outcome is Outcome.SKIPPED}
    assert skipped == {*((code, True) for code in NEED_ROOT), *((code, False) for code in NOTHING_THERE)}


@pytest.mark.slow
def test_no_healthy_node_of_a_sick_cluster_is_unknown_or_failed() -> None:
    for name, findings in FINDINGS.items():
        report = replayed(name)
        sick = {node for code, nodes in findings.items() if code not in TOLD_ONLY for node in nodes}
        others = [v for v in report.verdicts if v.code not in TOLD_ONLY and v.outcome not in FINE]
        assert (name, [(v.code, v.nodes) for v in others if not sick.issuperset(v.nodes)]) == (name, [])


FINE = (Outcome.PASSED, Outcome.SKIPPED)


def test_a_node_that_was_not_reached_is_unknown_to_every_check_that_needs_it() -> None:
    report = replayed("one-node-down")
    failed = {v.code for v in report.verdicts if "gpu03" in v.nodes and v.outcome is Outcome.FAILED}
    assert failed == {"NC001", "NC111"}
    assert report.exit_code == 1


def test_no_recording_names_a_machine_of_anybodys() -> None:
    text = "".join(path.read_text() for path in FIXTURES.glob("*/*.json"))
    assert str(Path(__file__).parents[2]) not in text
    assert "redacted" not in text
