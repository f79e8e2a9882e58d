"""nvidia-smi: its table, -q, -L, nvlink --status and queries with a heading, through `ncheck read smi`."""

from __future__ import annotations

from ncheck.parse.read import read_text

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


def test_the_table() -> None:
    assert read_text("smi", SMI) == {
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
    assert read_text("smi", text) == {
        **MISSING, "driver": "572.16", "cuda": "12.8", "nvidia_smi": None, "gpus": 3,
        "names": ["NVIDIA RTX 6000 Ada"], "gpu0": "NVIDIA RTX 6000 Ada", "persistence_gpu0": "Enabled",
    }  # fmt: skip


def test_nvlink_status() -> None:
    text = "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
    assert read_text("smi", text) == {
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
