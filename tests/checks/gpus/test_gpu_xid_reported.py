"""NC506: Xids that call for a reset, a restart or a technician are errors."""

from __future__ import annotations

from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.facts.login import ListingFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_xid_reported import gpu_xid_reported

from .health import h100

LISTED = ListingFacts(("nodes.txt:1",))
OFF_THE_BUS = (
    "Mar 02 09:14:55 n1 kernel: NVRM: Xid (PCI:0000:91:00): 79, pid=1234, name=python, GPU has fallen off the bus."
)
DOUBLE_BIT = "NVRM: Xid (PCI:0000:3b:00): 48, pid=77, An uncorrectable double bit error (DBE) has been detected"


def log(*events: tuple[str, int, str], health: object = None) -> dict[str, Facts]:
    xids = tuple(XidEvent(*event) for event in events)
    return {
        "n1": {
            KernelLogFacts: KernelLogFacts(xids, "dmesg"),
            GpuHealthFacts: health or Unread("no NVML"),
            ListingFacts: LISTED,
        }
    }


def test_each_gpu_is_named_with_what_was_reported_and_what_to_do() -> None:
    nodes = log(("0000:91:00", 79, OFF_THE_BUS), ("0000:3b:00", 48, DOUBLE_BIT), ("0000:3b:00", 48, DOUBLE_BIT))
    assert judge([gpu_xid_reported], nodes).findings == [
        Finding("NC506", "gpu-xid-reported", Severity.ERROR, ("n1",),
                "the driver reported Xid 79 for the GPU at 0000:91:00 (79: the GPU has fallen off the bus); NVIDIA's "
                "advice: reboot the node; last at Mar 02 09:14:55", (OFF_THE_BUS,),
                "sudo systemctl reboot", summary="Xid 79 of a GPU"),
        Finding("NC506", "gpu-xid-reported", Severity.ERROR, ("n1",),
                "the driver reported Xid 48 (2 times) for the GPU at 0000:3b:00 (48: an uncorrectable (double bit) "
                "memory error); NVIDIA's advice: stop the programs on it and reset the GPU; replace it if the error "
                "returns", (DOUBLE_BIT,),
                "sudo nvidia-smi --gpu-reset -i 0000:3b:00", summary="Xid 48 (2 times) of a GPU"),
    ]  # fmt: skip


def test_it_is_silent_about_programs_and_about_what_needs_nothing() -> None:
    assert judge([gpu_xid_reported], log(("0000:91:00", 13, "..."), ("0000:91:00", 63, "..."))).findings == []


def test_it_is_silent_and_skipped_where_only_root_may_read_the_log() -> None:
    unread = Unread("dmesg: permission denied", needs_root=True)
    nodes: dict[str, Facts] = {"n1": {**log()["n1"], KernelLogFacts: unread}}
    assert [(v.outcome, v.needs_root) for v in judge([gpu_xid_reported], nodes).verdicts] == [(Outcome.SKIPPED, True)]


def test_on_this_machine_the_fix_needs_no_ssh() -> None:
    nodes = {"n1": {**log(("0000:91:00", 79, OFF_THE_BUS))["n1"], ListingFacts: ListingFacts(("local",))}}
    assert [found.fix for found in judge([gpu_xid_reported], nodes).findings] == ["sudo systemctl reboot"]


RESET_ASKED = "NVRM: Xid (PCI:0000:0f:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
REBOOT_ASKED = RESET_ASKED.replace("0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)")
NOTHING_ASKED = RESET_ASKED.replace("0x0 (None) to 0x1 (GPU Reset Required)", "0x1 (GPU Reset Required) to 0x0 (None)")


def fixes(*events: tuple[str, int, str], health: object = None) -> list[str]:
    return [one.fix for one in judge([gpu_xid_reported], log(*events, health=health)).findings]


def test_of_154_the_line_says_what_the_driver_asks_for() -> None:
    gpu = "0000:0f:00.0"
    assert fixes((gpu, 154, RESET_ASKED)) == [f"sudo nvidia-smi --gpu-reset -i {gpu}"]
    assert fixes((gpu, 154, REBOOT_ASKED)) == ["sudo systemctl reboot"]
    assert fixes((gpu, 154, NOTHING_ASKED)) == []


def test_of_nvlink_since_blackwell_the_line_says_whether_it_is_fatal() -> None:
    fatal = "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"
    assert fixes(("0018:01:00.0", 149, fatal)) == ["sudo nvidia-smi --gpu-reset -i 0018:01:00.0"]
    assert fixes(("0018:01:00.0", 149, fatal.replace("Fatal", "Nonfatal"))) == []


def test_a_gpu_of_which_the_driver_says_that_it_needs_nothing_is_not_damned_for_ever() -> None:
    event = ("0000:0f:00.0", 119, "NVRM: Xid (PCI:0000:0f:00): 119, Timeout after 6s of waiting for RPC response")
    assert fixes(event, health=GpuHealthFacts((h100(0, action=0),))) == []
    assert len(fixes(event, health=GpuHealthFacts((h100(0, action=None),)))) == 1  # a driver that cannot say it
    assert len(fixes(event, health=GpuHealthFacts((h100(1, action=0),)))) == 1  # another GPU
    assert len(fixes(event, health=Unread("NVML did not start in time"))) == 1


def test_what_was_before_the_driver_was_loaded_again_is_over() -> None:
    old = XidEvent("0000:0f:00.0", 79, OFF_THE_BUS, earlier=True)
    nodes: dict[str, Facts] = {"n1": {**log()["n1"], KernelLogFacts: KernelLogFacts((old,), "dmesg", failed=(old,))}}
    assert judge([gpu_xid_reported], nodes).findings == []


def test_a_gpu_that_the_driver_could_not_initialize_is_named_unless_it_answers_now() -> None:
    line = "[   12.5] NVRM: GPU 0000:0f:00.0: RmInitAdapter failed! (0x62:0x55:1860)"
    facts = KernelLogFacts((), "dmesg", failed=(XidEvent("0000:0f:00.0", 0, line),) * 2)
    nodes: dict[str, Facts] = {"n1": {**log()["n1"], KernelLogFacts: facts}}
    assert judge([gpu_xid_reported], nodes).findings == [
        Finding("NC506", "gpu-xid-reported", Severity.ERROR, ("n1",),
                "the driver could not initialize the GPU at 0000:0f:00.0 (RmInitAdapter failed); last at [   12.5]",
                (line,), "sudo systemctl reboot", summary="a GPU was not initialized"),
    ]  # fmt: skip
    healed: dict[str, Facts] = {"n1": {**nodes["n1"], GpuHealthFacts: GpuHealthFacts((h100(0),))}}
    assert judge([gpu_xid_reported], healed).findings == []


LOOSE = ("[449410.332316] NVRM: Xid (PCI:0000:0f:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error "
         "detected on link 14(0x100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)")  # fmt: skip


def messages(*events: tuple[str, int, str], health: object = None) -> list[str]:
    return [one.message for one in judge([gpu_xid_reported], log(*events, health=health)).findings]


def test_the_registers_of_a_hopper_say_what_is_wrong_with_its_nvlink() -> None:
    event, hopper = ("0000:0f:00.0", 74, LOOSE), GpuHealthFacts((h100(0, action=None),))
    of_gpu = "the driver reported Xid 74 for the GPU at 0000:0f:00.0 (74: an error of an NVLink"
    last = "; last at [449410.332316]"
    seat = "check the cables and seats of the NVLink, then reset the GPU"
    assert messages(event, health=hopper) == [f"{of_gpu} (NVLink 14: hardware)); NVIDIA's advice: {seat}{last}"]
    plain = f"{of_gpu}); NVIDIA's advice: check its NVLinks (nvidia-smi nvlink -s), then reset the GPU{last}"
    ampere = GpuHealthFacts((h100(0, action=None, name="NVIDIA A100-SXM4-80GB"),))
    assert messages(event, health=ampere) == messages(event) == [plain]  # other GPUs have other registers
    assert messages((*event[:2], LOOSE.replace("0x100", "0x800000")), health=hopper) == []  # can be ignored


def test_a_link_that_failed_because_of_its_other_end_says_so() -> None:
    line = "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000)"
    of_gpu = (
        "the driver reported Xid 149 for the GPU at 0018:01:00.0 (149: an error of an NVLink (NVLink 0: hardware or"
    )
    assert messages(("0018:01:00.0", 149, line)) == [
        f"{of_gpu} software)); NVIDIA's advice: look for the error at the other end of the NVLink, then reset the GPU"
    ]
