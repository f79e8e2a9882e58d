"""AMD's GPUs from amd-smi, rocm-smi and the kernel's counters, in the formats of several releases."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.amd import COUNTS, LINKS, LISTING, ROCM, AmdErrorFacts, AmdErrors
from ncheck.facts.gpus import DEVICES, NVML, SMI, SMI_QUERY, GpuFacts
from ncheck.facts.learning import facts_of
from ncheck.facts.topology import NVLINKS, TOPO, TopologyFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.parse.nvidia_smi import Gpu

from tests.recorded.amd import BUSES, MI300X, amd_replies, counts, no_amd

Answered = Callable[[Mapping[Any, Reply]], Evidence]

NO_NVIDIA = {source: Reply(Status.MISSING) for source in (NVML, SMI, SMI_QUERY, TOPO, NVLINKS)}
MEMORY = 196592 << 20


def bus(*devices: tuple[str, str]) -> Reply:
    """Return a PCI bus with AMD's devices, each by address and class."""
    tree: dict[str, JsonValue] = {}
    for address, kind in devices:
        tree[f"/sys/bus/pci/devices/{address}/vendor"] = "0x1002\n"
        tree[f"/sys/bus/pci/devices/{address}/class"] = f"{kind}\n"
    return Reply(Status.OK, value=tree)


EIGHT = bus(*((f"0000:{one}:00.0", "0x120000") for one in BUSES))
LAPTOP = bus(("0000:c1:00.0", "0x030000"), ("0000:03:00.0", "0x038000"))


def read(answered: Answered, replies: Mapping[str, Reply], pci: Reply = EIGHT) -> tuple[object, object]:
    evidence = answered({**NO_NVIDIA, DEVICES: pci})
    evidence = Evidence("n", evidence.login, replies={**evidence.replies, **replies})
    facts = facts_of(evidence, [GpuFacts, TopologyFacts])
    return facts[GpuFacts], facts[TopologyFacts]


def printed(text: str, exit_status: int = 0, stderr: str = "") -> Reply:
    return Reply(Status.OK, exit_status=exit_status, stdout=text, stderr=stderr)


def test_the_gpus_and_links_of_a_node(answered: Answered) -> None:
    gpus, topology = read(answered, amd_replies())
    assert gpus == GpuFacts(
        tuple(Gpu(index, MI300X, "", f"0000:{one}:00.0", MEMORY) for index, one in enumerate(BUSES)),
        "6.16.6", "", "amd-smi", vendor="AMD", rocm="7.1.1-38",
    )  # fmt: skip
    assert isinstance(topology, TopologyFacts)
    assert topology.gpus == tuple(f"GPU{index}" for index in range(8))
    assert (set(topology.pairs.values()), len(topology.pairs), topology.nics) == ({"XGMI"}, 56, ())


def test_the_list_of_rocm_6_and_the_links_of_6_1_are_read(answered: Answered) -> None:
    one = {"gpu": 0, "asic": {"market_name": "MI210"}, "bus": {"bdf": "0000:2F:00.0"},
           "driver": {"driver_name": "amdgpu", "driver_version": "6.7.0"}, "vram": {"vram_size_mb": 65520}}  # fmt: skip
    other = {**one, "gpu": 1, "bus": {"bdf": "0000:30:00.0"}}
    rows = [{"gpu": 0, "link_type": {"gpu_0": "SELF", "gpu_1": "PCIE"}},
            {"gpu": 1, "link_type": {"gpu_0": "PCIE", "gpu_1": "SELF"}}]  # fmt: skip
    warned = "WARNING: User is missing the following required groups: render.\n"
    replies = {LISTING.key: printed(warned + json.dumps([one, other])), LINKS.key: printed(json.dumps(rows))}
    gpus, topology = read(answered, replies)
    assert gpus == GpuFacts(
        (Gpu(0, "MI210", "", "0000:2f:00.0", 65520 << 20), Gpu(1, "MI210", "", "0000:30:00.0", 65520 << 20)),
        "6.7.0", "", "amd-smi", vendor="AMD",
    )  # fmt: skip
    pairs = {("GPU0", "GPU1"): "PCIE", ("GPU1", "GPU0"): "PCIE"}
    assert topology == TopologyFacts(("GPU0", "GPU1"), (), pairs, {}, {}, {}, source="amd-smi")


@pytest.mark.parametrize(("series", "link"), [("Card Series", "(Topology) Link"), ("Card series", "(Topology) link")])
def test_rocm_smi_answers_where_amd_smi_does_not(answered: Answered, series: str, link: str) -> None:
    card = {series: "AMD Instinct MI250X", "PCI Bus": "0000:C1:00.0", "VRAM Total Memory (B)": "68702699520",
            "VRAM Total Used Memory (B)": "10960896"}  # fmt: skip
    cards = {"card0": card, "card1": {**card, "PCI Bus": "0000:C6:00.0"}, "system": {"Driver version": "6.3.6"}}
    links = {"system": {f"{link} type between DRM devices 0 and 1": "XGMI"}, "card0": {}, "card1": {}}
    failed = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'amdsmi'\n"
    gpus, topology = read(answered, {
        LISTING.key: printed(json.dumps(cards), stderr=failed), LINKS.key: printed(json.dumps(links), stderr=failed),
    })  # fmt: skip
    assert gpus == GpuFacts(
        (Gpu(0, "AMD Instinct MI250X", "", "0000:c1:00.0", 65520 << 20, 10 << 20),
         Gpu(1, "AMD Instinct MI250X", "", "0000:c6:00.0", 65520 << 20, 10 << 20)),
        "6.3.6", "", "amd-smi", vendor="AMD",
    )  # fmt: skip
    assert isinstance(topology, TopologyFacts)
    assert topology.pairs == {("GPU0", "GPU1"): "XGMI", ("GPU1", "GPU0"): "XGMI"}


def test_the_parts_of_a_partitioned_gpu_have_its_model(answered: Answered) -> None:
    parts = [{"gpu": index, "asic": {"market_name": name}, "bus": {"bdf": f"0000:05:00.{index}"}}
             for index, name in enumerate((MI300X, "N/A"))]  # fmt: skip
    gpus, _ = read(answered, {**amd_replies(), LISTING.key: printed(json.dumps(parts))})
    assert isinstance(gpus, GpuFacts)
    assert [gpu.name for gpu in gpus.gpus] == [MI300X, MI300X]


TIMEOUT = Reply(Status.TIMEOUT, seconds=10.0)
NO_TOOL = printed("", 127, "sh: 1: amd-smi: not found\nsh: 1: rocm-smi: not found\n")
BROKEN = printed("", 1, "AMDSMI_STATUS_DRIVER_NOT_LOADED\n")


@pytest.mark.parametrize(
    "reply", [no_amd()[LISTING.key], NO_TOOL, TIMEOUT, BROKEN, printed("[]"), Reply(Status.FAILED)]
)
@pytest.mark.parametrize("pci", [LAPTOP, bus()], ids=["laptop", "no AMD"])
def test_without_accelerators_nothing_is_unknown(answered: Answered, reply: Reply, pci: Reply) -> None:
    absent = Absent("no NVIDIA GPU")
    assert read(answered, {LISTING.key: reply, LINKS.key: reply}, pci) == (absent, absent)


@pytest.mark.parametrize(("reply", "why"), [
    (NO_TOOL, "neither amd-smi nor rocm-smi was found"),
    (no_amd()[LISTING.key], "amd-smi and rocm-smi list none: the driver amdgpu is not loaded"),
    (BROKEN, "amd-smi and rocm-smi list none: AMDSMI_STATUS_DRIVER_NOT_LOADED"),
    (printed("[]"), "amd-smi and rocm-smi list none: []"),
    (printed("", 1, "sh: 1: rocm-smi: not found\nModuleNotFoundError: amdsmi\n"),
     "amd-smi and rocm-smi list none: ModuleNotFoundError: amdsmi"),
])  # fmt: skip
def test_accelerators_that_no_tool_lists_are_unread(answered: Answered, reply: Reply, why: str) -> None:
    unread = Unread(f"8 AMD GPU(s) on PCI (0000:05:00.0), but {why}", fix="amd-smi list || rocm-smi")
    assert read(answered, {LISTING.key: reply, LINKS.key: reply}) == (unread, unread)


def test_a_tool_that_hangs_is_named(answered: Answered) -> None:
    gpus, _ = read(answered, {LISTING.key: TIMEOUT, LINKS.key: TIMEOUT})
    assert isinstance(gpus, Unread)
    assert gpus.hung == "amd-smi"
    assert gpus.reason.endswith(", but amd-smi did not end within 10 s and was killed")


def test_the_matrix_of_a_tool_that_was_cut_is_unread(answered: Answered) -> None:
    rows = [{"gpu": 0, "links": [{"gpu": 1, "link_type": "XGMI"}]}, {"gpu": 1, "links": []}]
    _, topology = read(answered, {**amd_replies(), LINKS.key: printed(json.dumps(rows))})
    assert isinstance(topology, Unread)


def test_the_version_of_rocm_is_one_word(answered: Answered) -> None:
    gpus, _ = read(answered, {**amd_replies(), ROCM.key: Reply(Status.OK, value="6.4.1\n; reboot")})
    assert isinstance(gpus, GpuFacts)
    assert gpus.rocm == ""


def errors(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({COUNTS: Reply(Status.OK, value=value)}), [AmdErrorFacts])[AmdErrorFacts]


RAS = "/sys/bus/pci/drivers/amdgpu/0000:05:00.0/ras"


def test_healthy_counters_are_all_zero(answered: Answered) -> None:
    fact = errors(answered, counts())
    assert fact == AmdErrorFacts({f"0000:{one}:00.0": AmdErrors() for one in BUSES})


def test_uncorrectable_errors_and_bad_pages_are_counted(answered: Answered) -> None:
    pages = "".join(f"0x0000000{page} : 0x00001000 : {flag}\n" for page, flag in enumerate("RPPF"))
    value = {f"{RAS}/umc_err_count": "ue: 3\nce: 0\n", f"{RAS}/aca_gfx": "ue: 1\nce: 0\nde: 0\n",
             f"{RAS}/sdma_err_count": {"error": "no such block"}, f"{RAS}/gpu_vram_bad_pages": pages}  # fmt: skip
    fact = errors(answered, value)  # type: ignore[arg-type]
    assert fact == AmdErrorFacts({"0000:05:00.0": AmdErrors({"umc": 3, "gfx": 1}, pending=2, kept=1)})


def test_a_node_without_counters_has_none_and_unreadable_ones_are_unread(answered: Answered) -> None:
    assert errors(answered, {}) == Absent("no AMD GPU counts errors")
    assert isinstance(errors(answered, {f"{RAS}/umc_err_count": {"error": "Permission denied"}}), Unread)
