"""amd-smi and rocm-smi, in the forms of their releases."""

from __future__ import annotations

import pytest
from ncheck.parse.amd_smi import parse_amd
from ncheck.read.text import read_any, read_as

LIST = """AMDSMI Tool: 24.5.1+c5106a9 | AMDSMI Library version: 24.5.2.0 | ROCm version: 6.1.2
GPU: 0
    BDF: 0000:11:00.0
    UUID: d4ff74a1-0000-1000-80b1-dbb1e6a69543
"""

TABLE = """+------------------------------------------------------------------------------+
| AMD-SMI 26.2.0+021c61fc      amdgpu version: 6.16.6   ROCm version: 7.1.1    |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:ff:00.0 AMD Instinct MI300X VF | 0 %      37 °C   2           141/750 W |
|   0       0       2        SPX/NPS1 | 0 %        N/A           285/196288 MB |
+-------------------------------------+----------------------------------------+
"""

TOPO = """============================ ROCm System Management Interface ============================
================================= Hops between two GPUs ==================================
       GPU0         GPU1         GPU2
GPU0   0            1            1
=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         PCIE
GPU1   XGMI         0            XGMI
GPU2   PCIE         XGMI         0

======================================= Numa Nodes =======================================
GPU[0]\t\t: (Topology) Numa Node: 0
"""


def test_versions_and_list() -> None:
    assert read_as("amd-smi", LIST).facts == {
        "driver": None, "rocm": "6.1.2", "amd_smi": "24.5.1+c5106a9", "library": "24.5.2.0", "gpus": 1, "names": [],
        "gpu0": None, "pairs": {}, "error": None,
        "devices": [{"index": 0, "pci": "0000:11:00.0", "uuid": "d4ff74a1-0000-1000-80b1-dbb1e6a69543"}],
    }  # fmt: skip


def test_the_table_and_its_uncorrected_errors() -> None:
    reading = read_as("amd-smi", TABLE)
    assert reading.facts["devices"] == [{
        "index": 0, "pci": "0000:ff:00.0", "name": "AMD Instinct MI300X VF", "ecc_uncorrected": 2,
        "memory_used_mb": 285, "memory_total_mb": 196288,
    }]  # fmt: skip
    assert (reading.facts["driver"], reading.facts["rocm"]) == ("6.16.6", "7.1.1")
    assert "GPU 0: 2 uncorrected errors: reset the GPU" in [remark.text for remark in reading.remarks]


def test_the_link_types_of_rocm_smi() -> None:
    reading = read_as("rocm-smi", TOPO)
    assert reading.facts["pairs"] == {
        "GPU0-GPU1": "XGMI", "GPU0-GPU2": "PCIE", "GPU1-GPU0": "XGMI", "GPU1-GPU2": "XGMI", "GPU2-GPU0": "PCIE",
        "GPU2-GPU1": "XGMI",
    }  # fmt: skip
    assert (reading.facts["gpus"], reading.facts["devices"]) == (3, [{"index": 0, "numa": "0"}])
    assert [remark.text for remark in reading.remarks] == ["over PCIe while other GPUs have XGMI: GPU0-GPU2"]


CONCISE = """
========================================= ROCm System Management Interface =========================================
=================================================== Concise Info ===================================================
Device  [Model : Revision]    Temp        Power     Partitions      SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
        Name (20 chars)       (Junction)  (Socket)  (Mem, Compute)
====================================================================================================================
0       [0x74a1 : 0x00]       47.0°C      139.0W    NPS1, SPX       132Mhz  900Mhz  0%   auto  750.0W   97%   0%
        AMD Instinct MI300X
1       [0x0b0c : 0x00]       43.0°C      N/A       N/A, N/A        800Mhz  1600Mhz  0%   auto  0.0W      0%   0%
        AMD INSTINCT MI200 (
====================================================================================================================
=============================================== End of ROCm SMI Log ================================================
"""


def test_the_layout_of_rocm_smi_with_the_name_on_a_second_line() -> None:
    assert read_as("rocm-smi", CONCISE).facts["devices"] == [
        {"index": 0, "name": "AMD Instinct MI300X"}, {"index": 1, "name": "AMD INSTINCT MI200 ("},
    ]  # fmt: skip


def test_json_of_both_tools() -> None:
    listed = read_as("amd-smi", '[{"gpu": 0, "bdf": "0000:11:00.0", "uuid": "a"}]').facts
    assert listed["devices"] == [{"index": 0, "pci": "0000:11:00.0", "uuid": "a"}]
    text = '{"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI"},'
    text += '"card0": {"(Topology) Numa Node": "0"}, "card1": {"(Topology) Numa Node": "1"}}'
    assert read_as("rocm-smi", text).facts["pairs"] == {"GPU0-GPU1": "XGMI", "GPU1-GPU0": "XGMI"}


@pytest.mark.parametrize("text", [LIST, TABLE, TOPO, "$ rocm-smi\nbash: rocm-smi: command not found\n"])
def test_the_text_shows_the_tool(text: str) -> None:
    assert (read_any(text)[0].kind, read_any(text)[0].tool) == ("amd-smi", "amd-smi")


def test_json_of_static_and_topology() -> None:
    one = '{"gpu": 0, "asic": {"market_name": "MI300X"}, "bus": {"bdf": "0000:05:00.0"}, "driver": {"version": "6.1"}}'
    devices = [{"index": 0, "pci": "0000:05:00.0", "name": "MI300X"}]
    for text in (f"[{one}]", f'{{"gpu_data": [{one}]}}', f"WARNING: no group render\n\n[{one}]\n"):
        facts = read_as("amd-smi", text).facts
        assert (facts["devices"], facts["driver"], facts["gpu0"]) == (devices, "6.1", "MI300X")
    links = '"links": [{"gpu": 0, "link_type": "SELF"}, {"gpu": 1, "link_type": "XGMI"}]'
    newer = f'[{{"gpu": 0, "bdf": "0000:05:00.0", {links}}}, {{"gpu": 1, "bdf": "0000:26:00.0", "links": []}}]'
    older = '[{"gpu": 0, "link_type": {"gpu_0": "SELF", "gpu_1": "XGMI"}}, {"gpu": 1, "link_type": {}}]'
    assert [read_as("amd-smi", text).facts["pairs"] for text in (newer, older)] == [{"GPU0-GPU1": "XGMI"}] * 2


@pytest.mark.parametrize("text", [
    '[{"gpu": -1, "bdf": "x"}]', '[{"gpu": true, "bdf": "x"}]', '[{"gpu": 0, "bdf": 7}]', '{"gpu_data": 7, "bdf": 1}',
    '[{"gpu": 99999999, "bdf": "0000:05:00.0"}]', '{"card0": 7, "card1": []}', '"bdf"' + "[" * 100_000,
    '[{"gpu": 1' + "0" * 5000 + ', "bdf": "x"}]', '"bdf"\n' + "[1\n" * 10_000,
])  # fmt: skip
def test_json_of_another_form_is_no_gpu(text: str) -> None:
    assert getattr(parse_amd(text), "devices", ()) == ()
