"""NC505: a driver that does not answer is named with the command that hung."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import DEVICES, NVML, SMI, SMI_QUERY, GpuFacts
from ncheck.facts.gpus import gpus as read_gpus
from ncheck.facts.run import UnreadFacts
from ncheck.facts.topology import NVLINKS, TOPO, TopologyFacts
from ncheck.facts.topology import topology as read_topology
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Evidence, Login, Reply, Source, Status
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvidia_smi_hangs import nvidia_smi_hangs
from ncheck_checks.ncheck.fact_unread import fact_unread

GPUS = GpuFacts((Gpu(0, "Tesla V100-SXM2-16GB"),), "550.54", "12.4", "nvml")
MATRIX = TopologyFacts(("GPU0",), (), {("GPU0", "GPU0"): "X"}, {}, {}, {})
HUNG = Unread("nvidia-smi topo -m did not end within 10 s and was killed", hung="nvidia-smi topo -m")


def node(gpus: object, topology: object) -> dict[str, Facts]:
    return {"n1": {GpuFacts: gpus, TopologyFacts: topology}}


def outcome(gpus: object, topology: object) -> Outcome:
    return judge([nvidia_smi_hangs], node(gpus, topology)).verdicts[0].outcome


def test_a_command_that_hung_is_named() -> None:
    assert judge([nvidia_smi_hangs], node(GPUS, HUNG)).findings == [
        Finding("NC505", "nvidia-smi-hangs", Severity.ERROR, ("n1",),
                "nvidia-smi hangs", (HUNG.reason,), "sudo journalctl -k -g NVRM",
                kind="look", summary="nvidia-smi hangs"),
    ]  # fmt: skip


def test_a_node_of_which_nothing_was_read_is_unknown() -> None:
    unreached = Unread("not reached (refused)")
    assert outcome(unreached, unreached) is Outcome.UNKNOWN


def test_it_is_silent_where_all_was_answered() -> None:
    assert outcome(GPUS, MATRIX) is Outcome.PASSED


def test_it_is_silent_about_a_failure_that_came_in_time() -> None:
    assert outcome(GPUS, Unread("nvidia-smi topo -m ended with exit status 6")) is Outcome.PASSED


def test_it_is_silent_and_skipped_without_a_driver() -> None:
    assert outcome(Absent("no NVIDIA GPU"), Absent("nvidia-smi: not there")) is Outcome.SKIPPED


def test_an_answer_that_the_end_of_the_run_cut_off_is_no_pass() -> None:
    cut_off = Unread("nvidia-smi topo -m: deadline: the run's deadline came", unanswered=True)
    assert outcome(GPUS, cut_off) is Outcome.UNKNOWN


def test_a_hang_is_named_even_if_the_matrix_came_from_another_source() -> None:
    found = judge([nvidia_smi_hangs], node(GPUS, replace(MATRIX, hung=HUNG.reason))).findings
    assert [(one.message, one.evidence) for one in found] == [("nvidia-smi hangs", (HUNG.reason,))]


def test_what_else_could_not_be_read_of_the_driver_follows_from_it() -> None:
    other = Unread("/etc/hosts: Input/output error", fix="cat /etc/hosts")
    unread = UnreadFacts({"GpuFacts": HUNG, "TopologyFacts": HUNG, "NamesFacts": other})
    known: Facts = {GpuFacts: HUNG, TopologyFacts: HUNG, UnreadFacts: unread}
    found = judge([nvidia_smi_hangs, fact_unread], {"n1": known}).findings
    assert [(one.message, one.see) for one in found] == [
        ("nvidia-smi hangs, and no GPU could be listed", ()),
        (f"Gpu, Topology could not be read: {HUNG.reason}", ("NC505",)),
        (f"Names could not be read: {other.reason}", ()),
    ]


def test_a_command_that_hung_is_named_even_if_another_source_lists_the_gpus() -> None:
    hung = "nvidia-smi did not end within 10 s and was ended"
    assert judge([nvidia_smi_hangs], node(replace(GPUS, hung=hung), MATRIX)).findings == [
        Finding(
            "NC505",
            "nvidia-smi-hangs",
            Severity.ERROR,
            ("n1",),
            "nvidia-smi hangs",
            (hung,),
            "sudo journalctl -k -g NVRM",
            kind="look",
            summary="nvidia-smi hangs",
        ),
    ]


def test_where_the_driver_may_wake_the_gpus_it_is_unknown_and_no_reboot_is_proposed() -> None:
    asleep = "it did not end within 10 s, and NVML did not answer: the driver wakes the GPUs, or hangs"
    replies: dict[Source, Reply] = {one: Reply(Status.UNANSWERED, asleep) for one in (SMI, SMI_QUERY, TOPO)}
    replies.update({one: Reply(Status.TIMEOUT, seconds=33.0) for one in (NVML, NVLINKS)})
    replies[DEVICES] = Reply(Status.OK, value={
        "/sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de", "/sys/bus/pci/devices/0000:17:00.0/class": "0x030200",
    })  # fmt: skip
    evidence = Evidence("n1", Login(reached=True), replies={one.key: reply for one, reply in replies.items()})
    judged = judge([nvidia_smi_hangs], node(read_gpus(evidence), read_topology(evidence)))
    assert judged.findings == []
    (verdict,) = judged.verdicts
    assert (verdict.outcome, verdict.reason.partition(": ")[2]) == (Outcome.UNKNOWN, asleep)
