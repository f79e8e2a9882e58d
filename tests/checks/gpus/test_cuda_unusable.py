"""NC540: CUDA that does not start in the job's environment, or cannot use one of its GPUs, is an error."""

from __future__ import annotations

import pytest
from ncheck.facts.cuda_init import TRY, CudaDevice, CudaFailure, CudaInitFacts, CudaStop
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.fabric_manager import FabricManagerFacts
from ncheck.facts.gpu_health import Fabric, Failure, GpuHealth, NvidiaDriverFacts
from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.cuda_unusable import cuda_unusable
from ncheck_checks.gpus.fabric_not_ready import fabric_not_ready
from ncheck_checks.gpus.gpu_unusable import gpu_unusable
from ncheck_checks.gpus.gpu_xid_reported import gpu_xid_reported
from ncheck_checks.gpus.nvidia_driver_mismatched import nvidia_driver_mismatched
from ncheck_checks.gpus.nvidia_smi_hangs import nvidia_smi_hangs
from ncheck_checks.host.gpu_device_missing import gpu_device_missing

from .health import h100
from .health import node as health

LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"
COMPAT = "/usr/local/cuda-12.8/compat/libcuda.so.570.86.10"
LOG = "sudo journalctl -k -g NVRM"
CONTAINER = "start the container again with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"
FABRIC = "sudo systemctl status nvidia-fabricmanager"
LIBRARIES = "ldconfig -p | grep libcuda.so"
LATE = "the fabric manager has not set up the NVSwitches, or confidential computing is not set ready"


def device(index: int, code: int | None = None, words: str = "no", **more: object) -> CudaDevice:
    failed = None if code is None else CudaFailure("cuDevicePrimaryCtxRetain", code, words)
    return CudaDevice(index, f"0000:{15 + index:02x}:00.0", failed, **more)  # type: ignore[arg-type]


HEALTHY = CudaInitFacts(LIBRARY, "12.4", (device(0), device(1)))


def node(cuda: object, *gpus: GpuHealth, container: str = "", module: str = "550.54.15", **variables: str) -> Facts:
    shown = gpus or (h100(0), h100(1))
    listed = tuple(Gpu(gpu.index, gpu.name, f"GPU-{gpu.index}", gpu.pci) for gpu in shown)
    return {
        **health(*shown),
        GpuFacts: GpuFacts(listed, "550.54.15", "12.4", "nvml"),
        NvidiaDriverFacts: NvidiaDriverFacts(module, "550.54.15"),
        EnvironmentFacts: EnvironmentFacts(variables, {}),
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.10.12", "python3 on PATH", {}, container),
        CudaInitFacts: cuda,
        FabricManagerFacts: Absent("no systemd here"),
    }


def failing(code: int | None, words: str, *, library: str = LIBRARY, uvm: str = "") -> CudaInitFacts:
    function = "dlopen" if code is None else "cuInit"
    return CudaInitFacts(
        library if code else "", "12.4" if code else "", failed=CudaFailure(function, code, words), uvm=uvm
    )


def said(facts: Facts) -> list[tuple[str, str, str]]:
    return [(one.message, one.fix, one.kind) for one in judge([cuda_unusable], {"n1": facts}).findings]


def outcome(facts: Facts) -> tuple[Outcome, str]:
    judgement = judge([cuda_unusable], {"n1": facts})
    assert judgement.findings == []
    (verdict,) = judgement.verdicts
    return verdict.outcome, verdict.reason


def test_cuda_is_not_ready_yet_while_the_fabric_manager_sets_the_switches_up() -> None:
    for state, services in ((2, "active"), (1, "activating")):
        waiting = node(failing(802, "a"), h100(0, fabric=Fabric(state)))
        starting = FabricManagerFacts(services, "not installed")
        cause = f"not ready yet: the fabric manager is {services} and sets the NVSwitches up"
        assert said({**waiting, FabricManagerFacts: starting}) == [
            (f"CUDA does not start: cuInit: error 802, a; {cause}", FABRIC, "look")
        ]


def test_a_forward_compatibility_package_on_a_gpu_that_does_not_support_it_is_named_with_its_path() -> None:
    words = "forward compatibility was attempted on non supported HW"
    facts = node(failing(804, words, library=COMPAT), LD_LIBRARY_PATH="/usr/local/cuda/compat")
    assert judge([cuda_unusable], {"n1": facts}).findings == [
        Finding("NC540", "cuda-unusable", Severity.ERROR, ("n1",),
                f"CUDA does not start: cuInit: error 804, {words}; it loads {COMPAT}; LD_LIBRARY_PATH may lead to it",
                (f"libcuda: {COMPAT} (CUDA 12.4)", "LD_LIBRARY_PATH=/usr/local/cuda/compat"),
                f"env -u LD_LIBRARY_PATH {TRY}", kind="look", summary="CUDA does not start"),
    ]  # fmt: skip


STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"
NOT_FOUND = "libcuda.so.1: cannot open shared object file: No such file or directory"
SHORT = "/usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short"


@pytest.mark.parametrize(("facts", "behind", "fix", "kind"), [
    (node(failing(None, NOT_FOUND)), NOT_FOUND, LIBRARIES, "look"),
    (node(failing(None, NOT_FOUND), container="docker"), NOT_FOUND, CONTAINER, "do"),
    (node(failing(None, SHORT), container="docker"), f"{SHORT}; the driver's library is empty", CONTAINER, "do"),
    (node(failing(34, "", library=STUB)), f"cuInit: error 34; it loads {STUB}", LIBRARIES, "look"),
    (node(failing(802, "a")),
     f"cuInit: error 802, a; {LATE}", FABRIC, "look"),
    (node(failing(803, "a"), module="550.90.07"),
     f"cuInit: error 803, a; it loads {LIBRARY}, and the kernel module is 550.90.07", "sudo systemctl reboot", "fix"),
    (node(failing(803, "a"), container="docker"), f"cuInit: error 803, a; it loads {LIBRARY}", CONTAINER, "do"),
    (node(failing(805, "a"), CUDA_MPS_PIPE_DIRECTORY="/run/my mps"),
     "cuInit: error 805, a; it asks MPS, whose pipes are in /run/my mps",
     "echo get_server_list | CUDA_MPS_PIPE_DIRECTORY='/run/my mps' nvidia-cuda-mps-control", "look"),
    (node(failing(807, "a")), "cuInit: error 807, a; it asks MPS, whose pipes are in /tmp/nvidia-mps",
     "echo get_server_list | nvidia-cuda-mps-control", "look"),
    (node(failing(999, "a", uvm="No such file or directory")),
     "cuInit: error 999, a; /dev/nvidia-uvm does not open: No such file or directory", "sudo nvidia-modprobe -u -c 0",
     "fix"),
    (node(failing(999, "a")), "cuInit: error 999, a", LOG, "look"),
    (node(failing(100, "a")), "cuInit: error 100, a", "nvidia-smi -L", "look"),
])  # fmt: skip
def test_each_cause_has_its_own_words_and_command(facts: Facts, behind: str, fix: str, kind: str) -> None:
    assert said(facts) == [(f"CUDA does not start: {behind}", fix, kind)]


def test_a_gpu_that_fails_is_named_by_its_number_and_address_and_those_that_fail_alike_are_one_finding() -> None:
    cuda = CudaInitFacts(LIBRARY, "12.4", (device(0, 719), device(1, 719), device(2), device(3, 46)))
    lost = "CUDA cannot use device 0 (0000:0f:00.0), device 1 (0000:10:00.0): cuDevicePrimaryCtxRetain: error 719, no"
    busy = (
        "CUDA cannot use device 3 (0000:12:00.0): cuDevicePrimaryCtxRetain: error 46, no, although its compute mode "
        "lets several programs in"
    )
    assert said(node(cuda, *map(h100, range(4)))) == [(lost, LOG, "look"), (busy, LOG, "look")]


def test_where_it_hangs_or_ends_its_process_the_step_is_named() -> None:
    hung = CudaStop("cuDevicePrimaryCtxRetain", 1, "0000:10:00.0", seconds=17.2)
    assert said(node(CudaInitFacts(LIBRARY, "12.4", (device(0),), stopped=hung))) == [
        ("CUDA hangs: cuDevicePrimaryCtxRetain on device 1 (0000:10:00.0) did not return within 17 s", LOG, "look")
    ]
    crashed = CudaInitFacts(LIBRARY, "12.4", stopped=CudaStop("cuInit", signal=11))
    assert said(node(crashed)) == [("CUDA ends the process that asks it: SIGSEGV in cuInit", TRY, "look")]


def test_fewer_gpus_than_the_job_should_see_are_named() -> None:
    fix = "nvidia-smi --query-gpu=index,pci.bus_id,name,compute_mode --format=csv"
    one = CudaInitFacts(LIBRARY, "12.4", (device(0),))
    assert said(node(one)) == [("CUDA lists 1 of 2 GPUs: not 0000:10:00.0", fix, "look")]
    three = (h100(0), h100(1), h100(2))
    assert said(node(one, *three, CUDA_VISIBLE_DEVICES="0,2")) == [("CUDA lists 1 of 2 GPUs", fix, "look")]


def test_healthy_nodes_pass_and_what_was_not_tried_is_said() -> None:
    one = CudaInitFacts(LIBRARY, "12.4", (device(0),))
    for facts in (node(HEALTHY), node(one, CUDA_VISIBLE_DEVICES="1"), node(one, h100(0, mig=True), h100(1, mig=True))):
        assert outcome(facts) == (Outcome.PASSED, "")
    hidden = node(failing(100, "no CUDA-capable device is detected"), CUDA_VISIBLE_DEVICES="")
    assert outcome(hidden) == (Outcome.SKIPPED, "CUDA_VISIBLE_DEVICES shows no GPU to the job")
    assert outcome(node(Absent("no NVIDIA GPU"))) == (Outcome.SKIPPED, "no NVIDIA GPU")
    exclusive = CudaInitFacts(LIBRARY, "12.4", (device(0, untried="exclusive"), device(1)))
    assert outcome(node(exclusive)) == (
        Outcome.SKIPPED, "the compute mode of device 0 (0000:0f:00.0) lets one program in: no context was opened",
    )  # fmt: skip


def test_no_context_is_opened_on_a_full_gpu_and_that_is_no_fault() -> None:
    for full in (device(1, untried="full"), device(1, 2)):
        assert outcome(node(CudaInitFacts(LIBRARY, "12.4", (device(0), full))))[0] is Outcome.SKIPPED


def test_gpus_that_sleep_and_those_that_nobody_could_list_are_unknown() -> None:
    slow = CudaInitFacts(LIBRARY, "12.4", stopped=CudaStop("cuInit", seconds=20.0))
    assert outcome(node(slow, h100(0, persistence=0))) == (
        Outcome.UNKNOWN, "cuInit did not return within 20 s: without persistence mode, it wakes each GPU first",
    )  # fmt: skip
    assert said(node(slow))[0][0] == "CUDA hangs: cuInit did not return within 20 s"
    unlisted = {**node(failing(999, "unknown error")), GpuFacts: Unread("NVML: Driver Not Loaded")}
    assert outcome(unlisted)[0] is Outcome.UNKNOWN
    empty = {**node(failing(None, SHORT)), GpuFacts: Unread("NVML Shared Library Not Found")}
    assert said(empty)[0][0] == f"CUDA does not start: {SHORT}; the driver's library is empty"


def test_it_follows_from_what_another_check_found_on_the_same_node() -> None:
    def seen(facts: Facts, cause: object) -> tuple[str, ...]:
        findings = judge([cuda_unusable, cause], {"n1": facts}).findings  # type: ignore[list-item]
        assert len(findings) == 2
        return next(one.see for one in findings if one.code == "NC540")

    mixed = {**node(failing(803, "a")), NvidiaDriverFacts: NvidiaDriverFacts("550.90.07", "550.54.15")}
    assert seen(mixed, nvidia_driver_mismatched) == ("NC533",)
    late = node(failing(802, "a"), h100(0, fabric=Fabric(1)), h100(1))
    fabric: Facts = {
        **late,
        PciFacts: PciFacts(()),
        FabricManagerFacts: FabricManagerFacts("inactive", "not installed"),
    }
    assert seen(fabric, fabric_not_ready) == ("NC536",)
    lost = h100(1, errors={"ecc": Failure(15, "GPU is lost")})
    broken = CudaInitFacts(LIBRARY, "12.4", (device(0), device(1, 719)))
    assert seen(node(broken, h100(0), lost), gpu_unusable) == ("NC520",)
    log = KernelLogFacts((XidEvent("0000:10:00.0", 95, "NVRM: Xid"),), "dmesg")
    still = h100(1, action=1)
    assert seen({**node(broken, h100(0), still), KernelLogFacts: log}, gpu_xid_reported) == ("NC506",)
    gpus = node(failing(999, "a"))
    shown = tuple(Gpu(index, "NVIDIA H100 80GB HBM3") for index in range(2))
    hangs = Unread("nvidia-smi did not end within 10 s and was killed", hung="nvidia-smi")
    listed = GpuFacts(shown, "550.54.15", "12.4", "nvml", hung=hangs.reason)
    assert seen({**gpus, GpuFacts: listed, TopologyFacts: hangs}, nvidia_smi_hangs) == ("NC505",)
    on_bus = PciFacts((PciDevice("0000:0f:00.0", 0x0302, NVIDIA, 0x2330, driver="nvidia"),))
    bare: Facts = {
        **node(failing(None, SHORT), container="docker"),
        PciFacts: on_bus,
        HostSettingsFacts: HostSettingsFacts(8),
    }
    assert seen(bare, gpu_device_missing) == ("NC628",)
