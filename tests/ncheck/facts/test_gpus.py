from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.agent.answers.gpus import kernel_address
from ncheck.facts.gpu_health import gpu_address
from ncheck.facts.gpus import DEVICES, NVML, SMI, SMI_QUERY, GpuFacts, gpus
from ncheck.facts.learning import facts_of
from ncheck.facts.topology import TOPO, TopologyFacts, topology
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.parse.nvidia_smi import Gpu, pci_address

Answered = Callable[[Mapping[Any, Reply]], Evidence]

MISSING = Reply(Status.MISSING, reason="no nvidia-smi on the PATH")
NO_DEVICE = Reply(Status.MISSING, reason="no NVIDIA device on PCI")
EMPTY_BUS = Reply(Status.OK, value={})
ONE_GPU = Reply(
    Status.OK,
    value={
        "/sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de\n",
        "/sys/bus/pci/devices/0000:17:00.0/class": "0x030200\n",
        "/sys/bus/pci/devices/0000:18:00.0/vendor": "0x15b3\n",
        "/sys/bus/pci/devices/0000:18:00.0/class": "0x020700\n",
    },
)
HEADER = "| NVIDIA-SMI 555.42.06              Driver Version: 555.42.06      CUDA Version: 12.5     |\n"
HUNG = Reply(Status.TIMEOUT, seconds=10.0)


def said(text: str, exit_status: int = 0) -> Reply:
    return Reply(Status.OK, exit_status=exit_status, stdout=text)


def test_the_gpus_are_read_from_nvml(answered: Answered) -> None:
    one = {"index": 0, "name": "NVIDIA L40S", "uuid": "GPU-1", "pci": "0000:17:00.0", "memory_total": 48 << 30,
           "memory_used": 0}  # fmt: skip
    value = {"driver": "555.42.06", "cuda": "12.5", "gpus": [one], "errors": {}, "devices": 1}
    reply = Reply(Status.OK, value=value)  # type: ignore[arg-type]
    assert gpus(answered({NVML: reply})) == GpuFacts(
        (Gpu(0, "NVIDIA L40S", "GPU-1", "0000:17:00.0", 48 << 30, 0),), "555.42.06", "12.5", "nvml"
    )


def test_a_gpu_with_a_process_on_it_fits_the_declared_answer(answered: Answered) -> None:
    one = {"index": 0, "name": "NVIDIA L40S", "processes": [[4711, 1 << 30], [4712, None]]}
    value = {"driver": "555.42.06", "cuda": "12.5", "gpus": [one], "errors": {}, "devices": 1}
    replies = {NVML: Reply(Status.OK, value=value)}  # type: ignore[arg-type]
    facts = facts_of(answered(replies), [GpuFacts])[GpuFacts]
    assert isinstance(facts, GpuFacts)
    assert facts.gpus[0].processes == {4711: 1 << 30, 4712: None}


def test_the_gpus_are_read_from_nvidia_smi_if_nvml_fails(answered: Answered) -> None:
    row = "0, NVIDIA L40S, GPU-1, 00000000:17:00.0, 46068, [N/A], 555.42.06\n"
    replies = {NVML: Reply(Status.FAILED, reason="nvmlInit: no library"), SMI_QUERY: said(row), SMI: said(HEADER)}
    assert gpus(answered({**replies, DEVICES: ONE_GPU})) == GpuFacts(
        (Gpu(0, "NVIDIA L40S", "GPU-1", "0000:17:00.0", 46068 << 20, None),), "555.42.06", "12.5", "nvidia-smi"
    )


def test_a_node_that_shows_no_device_anywhere_has_no_gpu(answered: Answered) -> None:
    replies = {NVML: NO_DEVICE, SMI_QUERY: MISSING, SMI: MISSING, DEVICES: EMPTY_BUS, TOPO: MISSING}
    assert (gpus(answered(replies)), topology(answered(replies))) == (Absent("no NVIDIA GPU"), Absent("no NVIDIA GPU"))


@pytest.mark.parametrize("words", ["No devices were found", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."])  # fmt: skip  # noqa: E501
def test_tools_on_a_machine_without_a_gpu_mean_no_gpu(answered: Answered, words: str) -> None:
    replies = {NVML: NO_DEVICE, SMI_QUERY: said(words, 9), DEVICES: EMPTY_BUS}
    assert isinstance(gpus(answered(replies)), Absent)


def test_a_gpu_on_pci_and_silent_tools_are_unread(answered: Answered) -> None:
    replies = {NVML: Reply(Status.FAILED, reason="nvmlInit: Driver Not Loaded"), SMI_QUERY: MISSING, DEVICES: ONE_GPU}
    assert gpus(answered(replies)) == Unread(
        "1 NVIDIA GPU(s) on PCI (0000:17:00.0), but nvidia-smi was not found", fix="which nvidia-smi"
    )


def test_a_driver_that_does_not_fit_its_library_is_unread_in_its_own_words(answered: Answered) -> None:
    words = "Failed to initialize NVML: Driver/library version mismatch"
    replies = {NVML: Reply(Status.FAILED, reason=words), SMI_QUERY: said(words, 18), DEVICES: ONE_GPU}
    fact = gpus(answered(replies))
    assert isinstance(fact, Unread)
    assert fact.reason.endswith(f"ended with exit status 18: {words}")


@pytest.mark.parametrize("row", [
    "0, NVIDIA L40S, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], 555.42.06",
    "0, ERR!, GPU-1, 00000000:17:00.0, 46068, 0, 555.42.06",
])  # fmt: skip
def test_a_gpu_that_was_lost_is_not_one_gpu_less(answered: Answered, row: str) -> None:
    replies = {NVML: HUNG, SMI_QUERY: said(row), SMI: said(HEADER), DEVICES: ONE_GPU}
    assert gpus(answered(replies)) == Unread(f"nvidia-smi says: {row}", fix="nvidia-smi")


def test_a_gpu_that_nvml_cannot_open_leaves_them_all_unread(answered: Answered) -> None:
    errors = {"nvmlDeviceGetHandleByIndex": "GPU is lost"}
    value = {"driver": "1", "cuda": "1", "gpus": [], "errors": errors, "devices": 8}
    reply = Reply(Status.OK, value=value)  # type: ignore[arg-type]
    assert gpus(answered({NVML: reply, SMI_QUERY: said("x")})) == Unread(
        "NVML cannot read every GPU: nvmlDeviceGetHandleByIndex: GPU is lost", fix="nvidia-smi"
    )


def test_an_nvidia_smi_that_hangs_is_named(answered: Answered) -> None:
    replies = {NVML: HUNG, SMI_QUERY: HUNG, SMI: HUNG, TOPO: HUNG, DEVICES: ONE_GPU}
    asked, matrix = gpus(answered(replies)), topology(answered(replies))
    assert isinstance(asked, Unread)
    assert isinstance(matrix, Unread)
    assert (asked.hung, matrix.hung) == (" ".join(SMI_QUERY.argv), "nvidia-smi topo -m")


def test_the_matrix_is_read_and_what_is_no_matrix_is_unread(answered: Answered) -> None:
    matrix = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-15\t0\nGPU1\tNV4\t X \t0-15\t0\n"
    fact = topology(answered({TOPO: said(matrix), DEVICES: ONE_GPU}))
    assert isinstance(fact, TopologyFacts)
    assert fact.pairs["GPU0", "GPU1"] == "NV4"
    assert isinstance(topology(answered({TOPO: said("usage: nvidia-smi topo"), DEVICES: ONE_GPU})), Unread)
    assert isinstance(topology(answered({TOPO: said(""), DEVICES: ONE_GPU})), Unread)


WHOLE = """\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tPIX\t0-15\t0
GPU1\tNV4\t X \tSYS\t0-15\t0
NIC0\tPIX\tSYS\t X

NIC Legend:

  NIC0: mlx5_0
"""


@pytest.mark.parametrize("lines", [2, 3, 5, 6])
def test_a_matrix_that_was_cut_off_is_unread(answered: Answered, lines: int) -> None:
    assert isinstance(topology(answered({TOPO: said(WHOLE), DEVICES: ONE_GPU})), TopologyFacts)
    cut = "".join(WHOLE.splitlines(keepends=True)[:lines])
    fact = topology(answered({TOPO: said(cut), DEVICES: ONE_GPU}))
    assert isinstance(fact, Unread)
    assert "truncated" in fact.reason


def test_an_nvidia_smi_that_hangs_is_noted_although_nvml_answers(answered: Answered) -> None:
    nvml = Reply(Status.OK, value={"driver": "555.42.06", "cuda": "12.5", "gpus": [{"index": 0, "name": "H100"}]})
    well = gpus(answered({NVML: nvml, SMI_QUERY: said("0, H100\n"), SMI: said(HEADER), DEVICES: ONE_GPU}))
    sick = gpus(answered({NVML: nvml, SMI_QUERY: HUNG, SMI: HUNG, DEVICES: ONE_GPU}))
    assert isinstance(well, GpuFacts)
    assert well.hung == ""
    assert isinstance(sick, GpuFacts)
    assert sick.hung == f"{' '.join(SMI_QUERY.argv)} did not end within 10 s and was killed"


def test_a_pci_domain_beyond_four_digits_is_kept_whole() -> None:
    """Intel's VMD makes such domains. NVML has eight digits, the kernel at least four."""
    written = {"00000000:0F:00.0": "0000:0f:00.0", "00010000:0F:00.0": "10000:0f:00.0", "000A:01:00.0": "000a:01:00.0"}
    for text, place in written.items():
        assert (pci_address(text), kernel_address(text)) == (place, place)
        assert gpu_address(text) == place
