from __future__ import annotations

import pytest
from ncheck.parse.read import KINDS, UnknownKindError, read_text

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
NOT_IN_IT = {"fan_gpu0": None, "links_per_gpu": None, "link_speed": None, "error": None}


def test_nvidia_smis_table() -> None:
    assert read_text("smi", SMI) == {
        **NOT_IN_IT, "driver": "555.42.06", "cuda": "12.5", "nvidia_smi": "555.42.06", "gpus": 2,
        "names": ["NVIDIA L40S", "NVIDIA L40S"], "gpu0": "NVIDIA L40S", "persistence_gpu0": "On", "fan_gpu0": "N/A",
    }  # fmt: skip


def test_nvidia_smi_q_and_a_windows_driver() -> None:
    text = """Driver Version                            : 572.16
CUDA Version                              : 12.8

Attached GPUs                             : 3
GPU 00000000:17:00.0
    Product Name                          : NVIDIA RTX 6000 Ada
    Persistence Mode                      : Enabled
"""
    assert read_text("smi", text) == {
        **NOT_IN_IT, "driver": "572.16", "cuda": "12.8", "nvidia_smi": None, "gpus": 3,
        "names": ["NVIDIA RTX 6000 Ada"], "gpu0": "NVIDIA RTX 6000 Ada", "persistence_gpu0": "Enabled",
    }  # fmt: skip


def test_nvlink_status() -> None:
    text = "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
    assert read_text("smi", text) == {
        **NOT_IN_IT, "driver": None, "cuda": None, "nvidia_smi": None, "gpus": 1, "names": ["NVIDIA H20"],
        "gpu0": "NVIDIA H20", "persistence_gpu0": None, "links_per_gpu": 2, "link_speed": "26.562 GB/s",
    }  # fmt: skip


def test_a_query_that_kept_its_heading() -> None:
    text = "name, driver_version, memory.total [MiB]\n" + "NVIDIA H20, 550.127.08, 97871 MiB\n" * 2
    said = read_text("smi", text)
    assert (said["driver"], said["gpus"], said["names"]) == ("550.127.08", 2, ["NVIDIA H20", "NVIDIA H20"])


def test_an_nvidia_smi_that_failed_says_no_count_of_gpus() -> None:
    said = read_text("smi", "Failed to initialize NVML: Driver/library version mismatch\nNVML library: 555.42\n")
    assert (said["gpus"], said["error"]) == (None, "Failed to initialize NVML: Driver/library version mismatch")


def test_a_matrix_that_is_none_gives_an_error_and_no_pairs() -> None:
    assert read_text("topo", "No devices were found\n") == {
        "error": "no matrix of `nvidia-smi topo -m`: no row of X, NV#, PIX, PXB, PHB, NODE or SYS",
        "gpus": None, "nics": [], "pairs": {}, "nic_legend": {}, "legend_unreadable": [], "closest_nics_gpu0": [],
        "closest_level_gpu0": None, "cpu_affinity_gpu0": None, "numa_affinity_gpu0": None,
        "has_gpu_numa_id_column": None, "gpu_numa_id_gpu0": None,
    }  # fmt: skip


def test_ibstatus() -> None:
    text = """Infiniband device 'mlx5_3' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:b8ce:f603:00aa:0001
\tbase lid:\t 0x2f
\tsm lid:\t\t 0x1
\tstate:\t\t 2: INIT
\tphys state:\t 5: LinkUp
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t InfiniBand
"""
    assert read_text("ibstatus", text) == {"tool": "ibstatus", "ports": [{
        "ca": "mlx5_3", "port": 1, "default_gid": "fe80:0000:0000:0000:b8ce:f603:00aa:0001", "base_lid": "0x2f",
        "sm_lid": "0x1", "state": "INIT", "state_num": 2, "physical_state": "LinkUp", "physical_state_num": 5,
        "rate": 100, "rate_text": "100 Gb/sec (4X EDR)", "link_layer": "InfiniBand",
    }], "error": None}  # fmt: skip


def test_ibv_devinfo_with_and_without_its_indentation() -> None:
    text = """hca_id:\tmlx5_3
\tfw_ver:\t\t\t\t20.43.1014
\tnode_guid:\t\t\tb8ce:f603:00aa:0001
\tvendor_part_id:\t\t\t4123
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tlink_layer:\t\tInfiniBand
"""
    port = {"port": 1, "state": "PORT_ACTIVE", "state_num": 4, "active_mtu": 4096, "link_layer": "InfiniBand",
            "physical_state": None}  # fmt: skip
    hca = {"hca": "mlx5_3", "firmware": "20.43.1014", "node_guid": "b8ce:f603:00aa:0001", "vendor_part_id": 4123}
    told = {"tool": "ibv_devinfo", "hcas": [{**hca, "ports": [port]}], "software_device": False, "error": None}
    assert read_text("ibv_devinfo", text) == told
    assert read_text("ibv_devinfo", "\n".join(line.strip() for line in text.splitlines())) == told


def test_the_short_infiniband_tools() -> None:
    assert read_text("ibdev2netdev", "# ibdev2netdev\nmlx5_3 port 1 ==> ibs4 (Down)\n") == {
        "tool": "ibdev2netdev", "map": {"mlx5_3": ["ibs4", "Down"]}, "error": None,
    }  # fmt: skip
    verbose = "0000:16:00.0 mlx5_4 (MT4129 - X) ConnectX-7 fw 28.43.2026 port 1 (ACTIVE) ==> ens9 (Up)\n"
    assert read_text("ibdev2netdev", verbose)["map"] == {"mlx5_4": ["ens9", "Up"]}
    assert read_text("ibstat", "link mlx5_4/1 state ACTIVE physical_state LINK_UP netdev ens9\n") == {
        "tool": "rdma link",
        "ports": [{"ca": "mlx5_4", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "ens9"}],
        "error": None,
    }
    older = "2/1: mlx5_7/1: state DOWN physical_state DISABLED netdev ens9\n"
    assert read_text("ibstat", older)["ports"] == [
        {"ca": "mlx5_7", "port": 1, "state": "DOWN", "physical_state": "DISABLED", "netdev": "ens9"}
    ]
    assert read_text("ibv_devices", "    device          \t   node GUID\n    ------\n")["devices"] == {}
    assert read_text("ibv_devices", "    device          \t   node GUID\n    efa_0     0000000000000001\n") == {
        "tool": "ibv_devices", "devices": {"efa_0": "0000000000000001"}, "error": None,
    }  # fmt: skip


def test_the_device_on_which_ibstat_gave_up_is_missing() -> None:
    said = read_text("ibstat", "CA 'mlx5_3'\n\tPort 1:\nibpanic: [9] main: stat of IB device 'mlx5_4' failed: Busy\n")
    assert (said["devices_missing"], said["error"]) == (
        ["mlx5_4"], "ibpanic: stat of IB device 'mlx5_4' failed: Busy",
    )  # fmt: skip


def test_an_ibstat_that_is_cut_off_says_what_it_holds_and_no_more() -> None:
    said = read_text("ibstat", "CA 'mlx5_3'\n\tCA type: MT4123\n\tNumber of ports: 1\nCA 'mlx5_4'\n\tCA type: MT4123\n")
    adapter: dict[str, object] = {"ca_type": "MT4123", "firmware": None, "node_guid": None, "ports": []}
    assert said["cas"] == [
        {"ca": "mlx5_3", "number_of_ports": 1, **adapter},
        {"ca": "mlx5_4", "number_of_ports": None, **adapter, "truncated": True},
    ]


@pytest.mark.parametrize(("text", "mpi", "version"), [
    ("mpirun (Open MPI) 3.1.6\n", "Open MPI", "3.1.6"),
    ("mpirun.real (OpenRTE) 4.0.3\n", "Open MPI", "4.0.3"),
    ("$ mpirun --version\nmpirun (Open MPI) 5.0.0rc12\n", "Open MPI", "5.0.0rc12"),
    ("mpirun (IBM Spectrum MPI) 10.4.0.06rtm4\n", "Spectrum MPI", "10.4.0.06rtm4"),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240701 (id: 179630d)\n", "Intel MPI", "2021.13"),
    ("HYDRA build details:\n    Version:                                 4.2.3\n", "MPICH", "4.2.3"),
    ("package:Open MPI root@b Distribution\nompi:version:full:4.1.6\n", "Open MPI", "4.1.6"),
    ("Intel(R) MPI Library for Linux* OS, 64-bit applications, Version 5.1  Build 20150717\n", "Intel MPI", "5.1"),
    ("`mpiexec (OpenRTE) 2.0.4.`\n", "Open MPI", "2.0.4"),
    ("[1,2]<stdout>:HYDRA build details:\n[1,2]<stdout>:    Version:      3.4.3\n", "MPICH", "3.4.3"),
    ("MPICH2 Version:     1.5\nMPICH2 Release date: Mon Oct  8 14:00:48 CDT 2012\n", "MPICH", "1.5"),
    ("MVAPICH2 2.3.7 Wed March 02 22:00:00 EST 2022 ch3:mrail\n", "MVAPICH2", "2.3.7"),
    ("MPI VERSION    : CRAY MPICH version 8.1.29.8 (ANL base 3.4a2)\n", "Cray MPICH", "8.1.29.8"),
    ("Microsoft MPI Startup Program [Version 10.1.12498.52]\n", "Microsoft MPI", "10.1.12498.52"),
    ("bash: mpirun: command not found\n", None, None),
    ("bash: horovodrun: command not found\n", None, None),
])  # fmt: skip
def test_which_mpi_it_is(text: str, mpi: str | None, version: str | None) -> None:
    said = read_text("versions", text)
    assert (said["mpi"], said["version"], bool(said["error"])) == (mpi, version, mpi is None)


def test_horovods_build() -> None:
    text = "Horovod v0.27.0:\n\nAvailable Frameworks:\n    [X] PyTorch\n\nAvailable Controllers:\n    [ ] MPI\n\n"
    text += "Available Tensor Operations:\n    [X] NCCL\n    [ ] CCL\n"
    assert read_text("versions", text) == {
        "format": "horovod_check_build", "horovod": "0.27.0", "frameworks": {"PyTorch": True},
        "controllers": {"MPI": False}, "operations": {"NCCL": True, "CCL": False}, "error": None,
    }  # fmt: skip


def test_nccls_versions_in_a_log_and_in_a_package_list() -> None:
    log = "g1:9:9 [0] NCCL INFO cudaDriverVersion 12060\nNCCL version 2.25.1+cuda12.8\nNCCL version 2.25.1+cuda12.8\n"
    assert read_text("versions", log) == {"format": "nccl_log", "nccl": ["2.25.1+cuda12.8"], "cuda_driver": "12060"}
    packages = "ii  libnccl2:amd64  2.25.1-1+cuda12.8  amd64  NCCL Runtime\nii  libvncserver1:amd64  0.9.14  amd64\n"
    assert read_text("versions", packages) == {
        "format": "dpkg", "libnccl2": "2.25.1-1+cuda12.8", "libnccl_dev": None, "nccl": "2.25.1", "cuda": "12.8",
        "not_nccl": ["libvncserver1:amd64"],
    }  # fmt: skip


def test_the_reports_of_frameworks() -> None:
    vllm = "PyTorch version              : 2.7.0+cu126\nCUDA used to build PyTorch   : 12.6\n"
    vllm += "Nvidia driver version        : 570.86.10\n"
    assert [read_text("versions", vllm)[key] for key in ("pytorch", "driver")] == ["2.7.0+cu126", "570.86.10"]
    torch = "PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\nROCM used to build PyTorch: N/A\n\n"
    torch += "OS: Debian GNU/Linux 12 (x86_64)\nPython version: 3.11.2 (64-bit runtime)\nIs CUDA available: True\n"
    torch += "CUDA runtime version: Could not collect\nNvidia driver version: 550.90.12\n"
    assert read_text("versions", torch) == {
        "format": "torch_collect_env", "pytorch": "2.6.0+cu124", "cuda_build": "12.4", "rocm_build": "N/A",
        "cuda_runtime": "Could not collect", "driver": "550.90.12", "os": "Debian GNU/Linux 12 (x86_64)",
        "python": "3.11.2 (64-bit runtime)", "is_cuda_available": "True",
    }  # fmt: skip
    deepspeed = "fused_adam ............. [NO] ....... [OKAY]\ntorch version .................... 2.6.0+cu124\n"
    deepspeed += "deepspeed info ................... 0.16.4, unknown, unknown\n"
    deepspeed += "torch cuda version ............... 12.4\n"
    deepspeed += "torch hip version ................ None\nnvcc version ..................... 12.2\n"
    deepspeed += "deepspeed wheel compiled w. ...... torch 2.6, cuda 12.4\n"
    assert read_text("versions", deepspeed) == {
        "format": "ds_report", "torch": "2.6.0+cu124", "deepspeed": "0.16.4", "torch_cuda": "12.4", "nvcc": "12.2",
        "hip": None, "wheel": "torch 2.6, cuda 12.4", "npu": None, "cann": None, "shm_gb": None,
        "ops": {"fused_adam": ["NO", "OKAY"]}, "mismatch": "nvcc 12.2 vs torch cuda 12.4",
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["", "\x00\xff\x1b[31m", "lorem ipsum\n" * 3, "{" * 1000, "GPU0\n", "CA '", "1: ", '[{"ifindex":' * 9999]
)
def test_nonsense_is_an_error_of_ours_and_never_a_crash(kind: str, text: str) -> None:
    said = read_text(kind, text)
    assert said.get("error") or said.get("cas")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["topo", "ibstat", "nics", "versions", "smi", "log"])
@pytest.mark.parametrize("text", ["a", " ", "\n", "12:", "GPU0\n"])
def test_a_flood_of_anything_is_read_in_the_time_that_its_length_takes(kind: str, text: str) -> None:
    """Quadratic searches would take half a minute here each; a deadline would be a timed test, and a hang is plain."""
    assert read_text(kind, text * 20000)


def test_a_kind_that_nobody_reads_says_which_there_are() -> None:
    with pytest.raises(UnknownKindError, match="topo, ibstat"):
        read_text("lspci", "")


def test_an_empty_log_is_called_empty_and_no_healthy_one() -> None:
    said = read_text("log", " \n")
    assert (said["cause"], said["error"]) == (None, "the log is empty")


def test_a_gpu_that_is_lost_is_counted_and_told_of() -> None:
    lost = "|   2  ERR!                    ERR! |   00000000:4B:00.0 ERR! |                 ERR! |\n"
    lost += "|ERR!  ERR!  ERR!             ERR! / ERR! |      GPU is lost      |    ERR!         ERR! |\n"
    said = read_text("smi", SMI + lost)
    assert (said["gpus"], said["error"]) == (3, "GPU is lost")


def test_a_query_for_no_name_still_counts_gpus() -> None:
    said = read_text("smi", "index, uuid, pci.bus_id\n0, GPU-1, 00000000:17:00.0\n1, GPU-2, 00000000:31:00.0\n")
    assert (said["gpus"], said["names"], said["gpu0"]) == (2, [], None)


def test_a_link_that_is_down_has_no_speed_to_differ() -> None:
    said = read_text("smi", "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n")
    assert (said["links_per_gpu"], said["link_speed"]) == (2, "26.562 GB/s")


def test_an_op_report_of_deepspeed_that_lacks_the_versions_still_tells_the_ops() -> None:
    text = "DeepSpeed C++/CUDA extension op report\nninja .................. [OKAY]\n"
    text += "transformer_inference .. [NO] ....... [OKAY]\n"
    said = read_text("versions", text)
    assert (said["format"], said["deepspeed"], said["ops"]) == (
        "ds_report", None, {"transformer_inference": ["NO", "OKAY"]},
    )  # fmt: skip


def test_the_version_of_nvidia_smi_tells_no_count_of_gpus() -> None:
    said = read_text("smi", "NVIDIA-SMI version  : 565.57.01\nDRIVER version      : 565.57.01\nCUDA Version : 12.7\n")
    assert (said["driver"], said["cuda"], said["gpus"], said["error"]) == ("565.57.01", "12.7", None, None)


def test_nccl_tests_table() -> None:
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    row = "  8388608  2097152  float  sum  -1  250.0  33.55  33.55  0  250.0  33.55  33.55  N/A\n"
    said = read_text("nccl-tests", head + row + "# Out of bounds values : 0 OK\n")
    both = {"size": 8388608, "seconds": pytest.approx(250e-6), "algbw": 33.55, "busbw": 33.55}
    assert said == {
        "collective": None, "nccl_tests": None, "nccl": None, "ranks": [], "tables": 1, "out_of_bounds": 0,
        "rows": [{**both, "in_place": False, "wrong": 0}, {**both, "in_place": True, "wrong": None}],
        "average_busbw": None, "whole": True, "error": None,
    }  # fmt: skip
