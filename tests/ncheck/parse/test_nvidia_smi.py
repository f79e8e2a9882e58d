"""nvidia-smi: its table, -q, -L, nvlink --status and queries with a heading, through `ncheck read smi`."""

from __future__ import annotations

import pytest
from ncheck.read.text import read_any, read_as, read_text

SMI = """Tue Mar  3 09:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 555.42.06              Driver Version: 555.42.06      CUDA Version: 12.5     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA L40S                    On  |   00000000:17:00.0 Off |                    0 |
| N/A   31C    P8             36W /  350W |      14MiB /  46068MiB |      0%      Default |
|   1  NVIDIA L40S                    On  |   00000000:31:00.0 Off |                    0 |
|ERR!   31C    P8             36W /  350W |      14MiB /  46068MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
MISSING = {"fan_gpu0": None, "links_per_gpu": None, "link_speed": None, "error": None}


def facts(text: str) -> dict[str, object]:
    """Return the facts of the whole text: those of each GPU have tests of their own."""
    return {key: value for key, value in read_text("smi", text).items() if key not in ("devices", "processes")}


def test_the_table() -> None:
    assert facts(SMI) == {
        **MISSING, "driver": "555.42.06", "cuda": "12.5", "nvidia_smi": "555.42.06", "gpus": 2,
        "names": ["NVIDIA L40S", "NVIDIA L40S"], "gpu0": "NVIDIA L40S", "persistence_gpu0": "On", "fan_gpu0": "N/A",
    }  # fmt: skip


def test_the_q_form_and_a_windows_driver() -> None:
    text = """Driver Version                            : 572.16
CUDA Version                              : 12.8

Attached GPUs                             : 3
GPU 00000000:17:00.0
    Product Name                          : NVIDIA RTX 6000 Ada
    Persistence Mode                      : Enabled
"""
    assert facts(text) == {
        **MISSING, "driver": "572.16", "cuda": "12.8", "nvidia_smi": None, "gpus": 3,
        "names": ["NVIDIA RTX 6000 Ada"], "gpu0": "NVIDIA RTX 6000 Ada", "persistence_gpu0": "Enabled",
    }  # fmt: skip


def test_nvlink_status() -> None:
    text = "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
    assert facts(text) == {
        **MISSING, "driver": None, "cuda": None, "nvidia_smi": None, "gpus": 1, "names": ["NVIDIA H20"],
        "gpu0": "NVIDIA H20", "persistence_gpu0": None, "links_per_gpu": 2, "link_speed": "26.562 GB/s",
    }  # fmt: skip


def test_a_link_that_is_down_has_no_speed_to_differ() -> None:
    record = read_text("smi", "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n")
    assert (record["links_per_gpu"], record["link_speed"]) == (2, "26.562 GB/s")


def test_a_query_with_its_heading() -> None:
    text = "name, driver_version, memory.total [MiB]\n" + "NVIDIA H20, 550.127.08, 97871 MiB\n" * 2
    record = read_text("smi", text)
    assert (record["driver"], record["gpus"], record["names"]) == ("550.127.08", 2, ["NVIDIA H20", "NVIDIA H20"])


def test_a_query_without_names_still_counts_gpus() -> None:
    record = read_text("smi", "index, uuid, pci.bus_id\n0, GPU-1, 00000000:17:00.0\n1, GPU-2, 00000000:31:00.0\n")
    assert (record["gpus"], record["names"], record["gpu0"]) == (2, [], None)


def test_an_nvidia_smi_that_failed_gives_no_count_of_gpus() -> None:
    record = read_text("smi", "Failed to initialize NVML: Driver/library version mismatch\nNVML library: 555.42\n")
    assert (record["gpus"], record["error"]) == (None, "Failed to initialize NVML: Driver/library version mismatch")


def test_a_lost_gpu_is_counted_and_is_an_error() -> None:
    lost = "|   2  ERR!                    ERR! |   00000000:4B:00.0 ERR! |                 ERR! |\n"
    lost += "|ERR!  ERR!  ERR!             ERR! / ERR! |      GPU is lost      |    ERR!         ERR! |\n"
    record = read_text("smi", SMI + lost)
    assert (record["gpus"], record["error"]) == (3, "GPU is lost")


def test_the_version_of_nvidia_smi_gives_no_count_of_gpus() -> None:
    record = read_text("smi", "NVIDIA-SMI version  : 565.57.01\nDRIVER version      : 565.57.01\nCUDA Version : 12.7\n")
    assert (record["driver"], record["cuda"], record["gpus"], record["error"]) == ("565.57.01", "12.7", None, None)


def test_each_gpu_of_the_table_with_its_processes() -> None:
    text = (
        SMI
        + """
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    1   N/A  N/A            4711      C   /opt/venv/bin/python                  10240MiB |
+-----------------------------------------------------------------------------------------+
"""
    )
    both: dict[str, object] = {
        "name": "NVIDIA L40S", "persistence": "On", "ecc_uncorrected": 0, "temperature_c": 31, "perf": "P8",
        "power_w": 36, "power_cap_w": 350, "memory_used_mib": 14, "memory_total_mib": 46068, "utilization_percent": 0,
        "compute_mode": "Default",
    }  # fmt: skip
    record = read_text("smi", text)
    assert record["devices"] == [
        {"index": 0, "pci": "0000:17:00.0", "fan": None, **both},
        {"index": 1, "pci": "0000:31:00.0", "fan": "ERR!", "broken": "ERR!", **both},
    ]
    assert record["processes"] == [
        {"gpu": 1, "pid": 4711, "type": "C", "name": "/opt/venv/bin/python", "memory_mib": 10240}
    ]


Q = """Driver Version                            : 570.86.15
CUDA Version                              : 12.8
Attached GPUs                             : 1
GPU 00000000:17:00.0
    Product Name                          : NVIDIA H200
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
    FB Memory Usage
        Total                             : 143771 MiB
        Used                              : 512 MiB
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 3
            DRAM Uncorrectable            : 0
        Aggregate
            SRAM Uncorrectable            : 9
    Remapped Rows
        Uncorrectable Error               : 2
        Pending                           : Yes
    Fabric
        State                             : In Progress
"""


@pytest.mark.parametrize("text", [Q, "\n".join(line.strip() for line in Q.splitlines())])
def test_each_gpu_of_the_q_form_also_without_its_indentation(text: str) -> None:
    assert read_text("smi", text)["devices"] == [{
        "index": 0, "pci": "0000:17:00.0", "name": "NVIDIA H200", "persistence": "Enabled", "mig": "Disabled",
        "pcie_gen_max": 5, "pcie_gen": 4, "pcie_width_max": 16, "pcie_width": 8, "throttled": ["HW Slowdown"],
        "memory_total_mib": 143771, "memory_used_mib": 512, "ecc_uncorrected": 3, "ecc_uncorrected_dram": 0,
        "ecc_uncorrected_aggregate": 9, "remapped_uncorrectable": 2, "remap_pending": "Yes",
        "fabric_state": "In Progress",
    }]  # fmt: skip


def test_what_is_wrong_with_a_gpu_is_said() -> None:
    said = [remark.text for remark in read_as("smi", Q).remarks if remark.level != "info"]
    assert said == [
        "GPU 0: 3 uncorrected ECC errors since the driver was loaded: restart the job without this GPU, reset it",
        "GPU 0: a row remap is pending: reset the GPU",
        "GPU 0: slowed down now: HW Slowdown",
        "GPU 0: PCIe x8 of x16",
        "GPU 0: NVLink fabric is In Progress: is nvidia-fabricmanager running?",
    ]


def test_a_healthy_table_is_only_described() -> None:
    healthy = SMI.replace("ERR!", " N/A")
    assert {remark.level for remark in read_as("smi", healthy).remarks} == {"info"}


def test_a_table_on_one_line_and_a_table_that_a_terminal_wrapped() -> None:
    whole = read_text("smi", SMI)
    assert read_text("smi", " ".join(SMI.splitlines())) == whole
    wrapped = "\n".join(part for line in SMI.splitlines() for part in (line[:80], line[80:]) if part)
    assert read_text("smi", wrapped) == whole


def test_the_oldest_drivers_have_no_column_for_persistence() -> None:
    text = "| NVIDIA-SMI 304.60   Driver Version: 304.60   |\n"
    text += "|   0  Tesla M2090              | 0000:02:00.0     Off |                  Off |\n"
    text += "| N/A   N/A    P0    77W / 225W |   1%   88MB / 5375MB |      0%      Default |\n"
    assert facts(text) == {
        **MISSING, "driver": "304.60", "cuda": None, "nvidia_smi": "304.60", "gpus": 1, "names": ["Tesla M2090"],
        "gpu0": "Tesla M2090", "persistence_gpu0": None, "fan_gpu0": "N/A",
    }  # fmt: skip


def test_nvlinks_that_are_down_or_have_errors_are_said() -> None:
    text = "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
    text += "GPU 1: NVIDIA H20 (UUID: GPU-2)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
    text += "\t Link 1: Replay Errors: 12\n\t Link 0: CRC Errors: 0\n"
    assert [remark.text for remark in read_as("smi", text).remarks if remark.level != "info"] == [
        "GPU 0: 1 of 2 NVLinks inactive",
        "GPU 1: NVLink link 1: 12 Replay Errors",
        "the GPUs differ in active NVLinks: 1 on GPU 0; 2 on GPU 1",
    ]


@pytest.mark.parametrize("line", [
    "Failed to initialize NVML: Driver/library version mismatch",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that ...",
    "No devices were found",
    "Unable to determine the device handle for GPU0000:4B:00.0: Unknown Error",
    "bash: nvidia-smi: command not found",
])  # fmt: skip
def test_a_failure_is_recognised_without_a_kind_and_explained(line: str) -> None:
    reading = read_any(f"user@gpu01:~$ nvidia-smi\n{line}\n")[0]
    assert (reading.kind, reading.tool, bool(reading.facts["error"])) == ("smi", "nvidia-smi", True)
    assert ": " in reading.remarks[0].text


def test_a_gpu_whose_handle_is_lost_fell_off_the_bus_and_a_container_without_devices_did_not() -> None:
    lost = "Unable to determine the device handle for GPU0000:A1:00.0: Unknown Error"
    old = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover"
    off = ": this GPU fell off the bus (Xid 79): sudo dmesg | grep -i xid; reboot the node"
    inside = "Failed to initialize NVML: Unknown Error"
    assert [read_any(f"$ nvidia-smi\n{line}\n")[0].remarks[0].text for line in (lost, old, inside)] == [
        lost + off, old + off, f"{inside}: in a container, its access to the devices was lost: restart the container",
    ]  # fmt: skip


def test_a_query_without_its_heading_gives_what_each_cell_shows_by_itself() -> None:
    rows = "".join(f"{gpu}, NVIDIA GeForce RTX 3090, 535.288.01, 24576 MiB, 1 MiB\n" for gpu in (0, 1))
    record = read_text("smi", rows)
    assert (record["driver"], record["gpus"], record["gpu0"]) == ("535.288.01", 2, "NVIDIA GeForce RTX 3090")


def test_the_version_of_the_kernel_module() -> None:
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.288.01  Mon Jan  6 2026\n"
    assert read_text("smi", text)["driver"] == "535.288.01"


def test_the_xml_form() -> None:
    text = '<?xml version="1.0" ?>\n<nvidia_smi_log>\n\t<driver_version>550.54.15</driver_version>\n'
    text += "\t<cuda_version>12.4</cuda_version>\n\t<attached_gpus>2</attached_gpus>\n"
    text += '\t<gpu id="00000000:01:00.0">\n\t\t<product_name>NVIDIA A100</product_name>\n\t</gpu>\n'
    assert facts(text) == {
        **MISSING, "driver": "550.54.15", "cuda": "12.4", "nvidia_smi": None, "gpus": 2, "names": ["NVIDIA A100"],
        "gpu0": "NVIDIA A100", "persistence_gpu0": None,
    }  # fmt: skip


def test_the_processes_of_a_query() -> None:
    reading = read_any("pid, process_name, used_gpu_memory [MiB]\n4711, python3, 1000 MiB\n")[0]
    assert reading.facts["processes"] == [
        {"gpu": None, "pid": 4711, "type": None, "name": "python3", "memory_mib": 1000}
    ]


def test_memory_without_a_process_is_said_only_where_the_list_of_processes_is_there() -> None:
    used = SMI.replace("ERR!", " N/A").replace("14MiB /", "9000MiB /", 1)
    said = "GPU 0: 9000 MiB in use and no process listed: look in other containers, or for one that is dying"
    listed = used + "| Processes:    |\n|  No running processes found   |\n"
    assert [remark.text for remark in read_as("smi", used).remarks if remark.level != "info"] == []
    assert [remark.text for remark in read_as("smi", listed).remarks if remark.level != "info"] == [
        f"{said} (sudo fuser -v /dev/nvidia*)"
    ]


def test_what_is_true_of_several_gpus_is_said_once() -> None:
    text = Q + Q.partition("Attached GPUs                             : 1\n")[2]
    assert "GPU 0, 1: PCIe x8 of x16" in [remark.text for remark in read_as("smi", text).remarks]
