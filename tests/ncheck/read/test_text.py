"""`ncheck read`: one JSON object for each kind of saved output."""

from __future__ import annotations

import pytest
from ncheck.read.text import KINDS, UnknownKindError, read_all, read_any, read_as, read_text, reader_of


def test_other_text_gives_an_error_and_no_matrix() -> None:
    assert read_text("topo", "No devices were found\n") == {
        "error": "not the output of `nvidia-smi topo -m`: no row of X, NV#, PIX, PXB, PHB, NODE or SYS",
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


def test_the_device_on_which_ibstat_failed_is_missing() -> None:
    record = read_text("ibstat", "CA 'mlx5_3'\n\tPort 1:\nibpanic: [9] main: stat of IB device 'mlx5_4' failed: Busy\n")
    assert (record["devices_missing"], record["error"]) == (
        ["mlx5_4"], "ibpanic: stat of IB device 'mlx5_4' failed: Busy",
    )  # fmt: skip


def test_a_truncated_ibstat_gives_only_what_it_holds() -> None:
    record = read_text(
        "ibstat", "CA 'mlx5_3'\n\tCA type: MT4123\n\tNumber of ports: 1\nCA 'mlx5_4'\n\tCA type: MT4123\n"
    )
    adapter: dict[str, object] = {"ca_type": "MT4123", "firmware": None, "node_guid": None, "ports": []}
    assert record["cas"] == [
        {"ca": "mlx5_3", "number_of_ports": 1, **adapter},
        {"ca": "mlx5_4", "number_of_ports": None, **adapter, "truncated": True},
    ]


def test_nccls_versions_in_a_log_and_in_a_package_list() -> None:
    log = "g1:9:9 [0] NCCL INFO cudaDriverVersion 12060\nNCCL version 2.25.1+cuda12.8\nNCCL version 2.25.1+cuda12.8\n"
    assert read_text("versions", log) == {"format": "nccl_log", "nccl": ["2.25.1+cuda12.8"], "cuda_driver": "12060"}
    packages = "ii  libnccl2:amd64  2.25.1-1+cuda12.8  amd64  NCCL Runtime\nii  libvncserver1:amd64  0.9.14  amd64\n"
    assert read_text("versions", packages) == {
        "format": "dpkg", "libnccl2": "2.25.1-1+cuda12.8", "libnccl_dev": None, "nccl": "2.25.1", "cuda": "12.8",
        "not_nccl": ["libvncserver1:amd64"],
    }  # fmt: skip


@pytest.mark.slow
def test_nonsense_is_an_error_and_never_a_crash() -> None:
    nonsense = (
        "", "\x00\xff\x1b[31m", "lorem ipsum\n" * 3, "{" * 1000, "GPU0\n", "CA '", "1: ", '[{"ifindex":' * 9999,
    )  # fmt: skip
    records = {(kind, text[:20]): read_text(kind, text) for kind in KINDS for text in nonsense}
    assert [found for found, record in records.items() if not record.get("error") and not record.get("cas")] == []


@pytest.mark.slow
def test_a_flood_of_anything_is_read_in_the_time_that_its_length_takes() -> None:
    """Quadratic searches would take half a minute here each; a deadline would be a timed test, and a hang is plain."""
    for kind in ("topo", "ibstat", "nics", "versions", "smi", "log"):
        for text in ("a", " ", "\n", "12:", "GPU0\n"):
            assert read_text(kind, text * 20000)


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(UnknownKindError, match=r"choose from: ras, .*ibstat, .*log"):
        read_text("lspci", "")


def test_an_empty_log_is_empty_and_not_healthy() -> None:
    record = read_text("log", " \n")
    assert (record["cause"], record["error"]) == (None, "the log is empty")


def test_a_log_without_an_end_or_progress_is_not_healthy() -> None:
    record = read_text("log", "starting\nloading data\n")
    assert (record["cause"], record["error"]) == (None, "no known failure message in the log")


def test_a_log_whose_progress_ends_in_trouble_is_not_healthy() -> None:
    record = read_text("log", "step 1 loss 0.3\nstep 2 loss 0.2\nNaN detected in loss, aborting\n")
    assert (record["cause"], record["evidence"]) == ("diverged", ["NaN detected in loss, aborting"])
    record = read_text("log", "step 1 loss 0.3\nstep 2 loss 0.2\nFATAL: the tape is full\n")
    error = "no known failure message in the log, but a line that sounds like one"
    assert (record["cause"], record["error"]) == (None, error)
    assert record["evidence"] == ["FATAL: the tape is full"]


def test_nccl_tests_table() -> None:
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    row = "  8388608  2097152  float  sum  -1  250.0  33.55  33.55  0  250.0  33.55  33.55  N/A\n"
    record = read_text("nccl-tests", head + row + "# Out of bounds values : 0 OK\n")
    both = {"size": 8388608, "seconds": pytest.approx(250e-6), "algbw": 33.55, "busbw": 33.55}
    assert record == {
        "collective": None, "nccl_tests": None, "nccl": None, "ranks": [], "tables": 1, "out_of_bounds": 0,
        "rows": [{**both, "in_place": False, "wrong": 0}, {**both, "in_place": True, "wrong": None}],
        "average_busbw": None, "whole": True, "error": None,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [
    ("nvidia-smi", "smi"), ("nvidia-smi -q", "smi"), ("nvidia-smi --query-gpu=name", "smi"), ("nvidia_smi", "smi"),
    ("nvidia-smi topo -m", "topo"), ("TOPO", "topo"), ("/usr/sbin/ibstat", "ibstat"), ("sudo -n ibstat -l", "ibstat"),
    ("horovodrun --check-build", "versions"), ("python -m torch.utils.collect_env", "versions"), ("ip-addr", "nics"),
    ("ip -br addr", "nics"), ("dpkg -l", "versions"), ("rocm-smi --showtopo", "amd-smi"), ("nccl_tests", "nccl-tests"),
])  # fmt: skip
def test_a_kind_is_a_tool_as_it_is_typed(name: str, kind: str) -> None:
    reader = reader_of(name)
    assert reader
    assert reader.kind == kind


@pytest.mark.parametrize("name", ["", "sudo", "lspci", "python", "-q", "cat topo"])
def test_other_commands_are_no_kind(name: str) -> None:
    assert reader_of(name) is None


SMI = "GPU 0: NVIDIA H20 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n"
TOPO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n"
HOROVOD = """Horovod v0.28.1:
Available Frameworks:
    [X] PyTorch
Available Controllers:
    [X] MPI
Available Tensor Operations:
    [ ] NCCL
    [X] MPI
"""
COLLECT_ENV = "PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\nIs CUDA available: True\n"


@pytest.mark.parametrize(("text", "found"), [
    (SMI, [("smi", "nvidia-smi nvlink")]),
    (TOPO, [("topo", "nvidia-smi topo -m")]),
    ("mpirun (Open MPI) 4.1.6\n", [("versions", "mpi")]),
    ("CA 'mlx5_0'\n\tCA type: MT4123\n", [("ibstat", "ibstat")]),
    ("2: ens3: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n    inet 10.0.0.4/24\n", [("nics", "ip_addr")]),
    ("h1:5:5 [0] NCCL INFO Bootstrap : Using ens3:10.1.1.1<0>\n", [("log", "nccl_log")]),
    ("step 1 loss 0.3\nNaN detected in loss, aborting\n", [("log", "log")]),
    ("bash: ibstat: command not found\n", [("ibstat", "ib_error")]),
    (COLLECT_ENV + TOPO, [("versions", "torch_collect_env"), ("topo", "nvidia-smi topo -m")]),
    ("$ nvidia-smi nvlink -s\n" + SMI + "$ nvidia-smi topo -m\n" + TOPO,
     [("smi", "nvidia-smi nvlink"), ("topo", "nvidia-smi topo -m")]),
    ("once upon a time\n", [("unknown", "")]),
    ("", [("unknown", "")]),
])  # fmt: skip
def test_the_text_shows_its_kind(text: str, found: list[tuple[str, str]]) -> None:
    assert [(reading.kind, reading.tool) for reading in read_any(text)] == found


@pytest.mark.parametrize(("text", "packages"), [
    ("bash: ibstat: command not found\n",
     "ibstat is not installed: sudo apt-get install infiniband-diags, or sudo dnf install infiniband-diags"),
    ("zsh: command not found: ibv_devinfo\n",
     "ibv_devinfo is not installed: sudo apt-get install ibverbs-utils, or sudo dnf install libibverbs-utils"),
])  # fmt: skip
def test_a_tool_of_infiniband_that_is_not_there_is_named_with_its_package(text: str, packages: str) -> None:
    (reading,) = read_any(text)
    assert [remark.text for remark in reading.remarks] == [packages]


def test_a_log_of_nccl_holds_its_versions_and_interfaces() -> None:
    facts = read_any("NCCL version 2.25.1+cuda12.8\nh1:5:5 [0] NCCL INFO Bootstrap : Using ens3:10.1.1.1<0>\n")[0].facts
    assert (facts["nccl"], facts["data_nic"], facts["cause"]) == (["2.25.1+cuda12.8"], "ens3", None)


def test_the_parts_of_several_nodes_keep_their_names() -> None:
    text = "===== gpu01 =====\n" + TOPO + "===== gpu02 =====\n" + TOPO.replace("NV4", "SYS")
    assert [(reading.part, reading.facts["pairs"]) for reading in read_any(text)] == [
        ("gpu01", {"GPU0-GPU1": "NV4", "GPU1-GPU0": "NV4"}), ("gpu02", {"GPU0-GPU1": "SYS", "GPU1-GPU0": "SYS"}),
    ]  # fmt: skip


def test_a_named_kind_is_read_in_every_part_that_holds_it() -> None:
    text = "===== gpu01 =====\n" + TOPO + "===== gpu02 =====\nno such host\n===== gpu03 =====\n" + TOPO
    assert [reading.part for reading in read_all("topo", text)] == ["gpu01", "gpu03"]
    assert [reading.part for reading in read_all("topo", TOPO)] == [""]


HOST = """docker0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 172.17.0.1  netmask 255.255.0.0  broadcast 172.17.255.255
        inet6 fe80::42:95ff:fe3e:1  prefixlen 64  scopeid 0x20<link>
enp4s0f0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 10.11.0.2  netmask 255.255.255.0  broadcast 10.11.0.255
        inet6 fe80::1  prefixlen 64  scopeid 0x20<link>
enp0s20f0u1u6: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 169.254.3.1  netmask 255.255.255.0  broadcast 169.254.3.255
br-0123456789ab: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 172.18.0.1  netmask 255.255.0.0  broadcast 172.18.255.255
veth9d1e8f2: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet6 fe80::60a8:1  prefixlen 64  scopeid 0x20<link>
"""
DEAD_ENDS = (
    "enp0s20f0u1u6 (the network of the management controller), br-0123456789ab (container, no network between nodes), "
    "veth9d1e8f2 (a link-local address)"
)
GOOD = "eno1 UP 10.7.0.21/22 fe80::1/64\n"
# The same veth as each tool prints it, with a good interface before it.
VETHS = {
    "ip -br": GOOD + "veth9@if2 UP fe80::2/64\n",
    "ip -o": "2: eno1    inet 10.7.0.21/22 scope global eno1\\ valid_lft forever\n"
    "9: veth9    inet6 fe80::2/64 scope link \\ valid_lft forever\n",
    "ip": "2: eno1: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n    inet 10.7.0.21/22 scope global eno1\n"
    "9: veth9@if8: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n    inet6 fe80::2/64 scope link\n",
    "ip -j": '[{"ifindex":2,"ifname":"eno1","operstate":"UP","addr_info":[{"family":"inet","local":"10.7.0.21",'
    '"prefixlen":22}]},{"ifindex":9,"ifname":"veth9","operstate":"UP","addr_info":[{"family":"inet6",'
    '"local":"fe80::2","prefixlen":64}]}]',
    "old ifconfig": "eno1      Link encap:Ethernet\n          inet addr:10.7.0.21  Mask:255.255.252.0\n"
    "          UP BROADCAST RUNNING MULTICAST  MTU:1500\nveth9     Link encap:Ethernet\n"
    "          inet6 addr: fe80::2/64 Scope:Link\n          UP BROADCAST RUNNING MULTICAST  MTU:1500\n",
    "NCCL": "g1:7:9 [0] NCCL INFO NET/Socket : Using [0]eno1:10.7.0.21<0> [1]veth9:fe80::2%veth9<0>\n",
}


def warnings(text: str) -> list[str]:
    return [each.text for each in read_as("nics", text).remarks if each.level != "info"]


@pytest.mark.parametrize("tool", VETHS)
def test_a_veth_that_nccl_uses_beside_the_card_is_named_whatever_lists_it(tool: str) -> None:
    text = "without InfiniBand NCCL would also send data over veth9 (a link-local address), and may hang"
    assert warnings(VETHS[tool]) == [f"{text}: name the interface"]


@pytest.mark.parametrize("text", [
    GOOD, "ib0 UP 10.8.0.21/22\n" + VETHS["ip -br"], GOOD + "br-0123456789ab DOWN 172.18.0.1/16\n",
    GOOD + "eno2 UP 10.9.0.21/22 fe80::3/64\n",
])  # fmt: skip
def test_what_nccl_does_not_use_or_leads_to_other_nodes_is_not_warned_of(text: str) -> None:
    assert warnings(text) == []


def test_a_veth_that_is_all_that_a_container_has_is_no_other_interface() -> None:
    pod = "2: eth0@if41: <BROADCAST,UP,LOWER_UP> mtu 1450 state UP\n    link/ether 0a:58:0a:f4:03:09 link-netnsid 0\n"
    pod += "    inet 10.244.3.9/24 scope global eth0\n    inet6 fe80::9/64 scope link\n"
    assert warnings(pod) == ["eth0 is container: no physical interface has an IPv4 address here"]


def test_the_network_of_a_management_controller_is_no_failure_of_dhcp() -> None:
    assert [each.level for each in read_as("nics", HOST).remarks] == ["info", "warning", "warning"]
    alone = "eno1 UP 10.7.0.21/22\neno2 UP 169.254.7.7/16\n"
    assert warnings(alone)[-1] == "eno2 has only the link-local address 169.254.7.7: DHCP did not answer"


@pytest.mark.parametrize(("text", "level", "remark"), [
    ("CA 'mlx5_0'\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n", "error",
     "mlx5_0 port 1 is down (physical state Polling: cable, transceiver or switch port)"),
    ("CA 'mlx5_0'\n\tPort 1:\n\t\tState: Initializing\n\t\tPhysical state: LinkUp\n", "error",
     "mlx5_0 port 1 is in state Initializing: the subnet manager has not set it up (sminfo; is opensm running?)"),
    ("    device          \t   node GUID\n    ------\n", "error",
     "no RDMA device: no driver is loaded, or the container has no /dev/infiniband"),
    ('[{"ifname": "mlx5_0", "port": 1, "state": "DOWN", "physical_state": "DISABLED"}]', "error",
     "mlx5_0 port 1 is down (physical state DISABLED: switched off)"),
    ("Settings for ens1:\n\tSpeed: Unknown!\n\tLink detected: no\n", "warning",
     "ens1 has no link: cable, transceiver or switch port"),
    (HOST, "warning",
     f"without InfiniBand NCCL would also send data over {DEAD_ENDS}, and may hang: name the interface"),
    (HOST, "warning", "docker0: not connected to other nodes; Gloo and Open MPI may choose one, so name the interface"),
    ("NCCL version 2.18.3+cuda12.1\nNCCL version 2.21.5+cuda12.4\n", "error",
     "several versions of NCCL in one job: 2.18.3, 2.21.5"),
    (HOROVOD, "error",
     "Horovod is built without NCCL: GPU tensors go over MPI or Gloo (HOROVOD_GPU_OPERATIONS=NCCL)"),
    ("PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\nNvidia driver version: 470.57.02\n", "error",
     "driver 470.57.02 is too old for CUDA 12.4: it needs 525.60.13 or later"),
    ("ii  libnccl2  2.20.5-1+cuda12.4  amd64\nii  libnccl-dev  2.18.3-1  amd64\n", "error",
     "libnccl2 2.20.5-1+cuda12.4 but libnccl-dev 2.18.3-1: programs are built for another NCCL than they load"),
    ("# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 4.1\n", "error",
     "wrong results: 3 rows; data was damaged, do not trust the bandwidth"),
])  # fmt: skip
def test_what_is_wrong_is_said(text: str, level: str, remark: str) -> None:
    kind = next(kind for kind in ("ibstat", "nics", "versions", "nccl-tests") if read_as(kind, text).tool)
    assert (level, remark) in [(each.level, each.text) for each in read_as(kind, text).remarks]


@pytest.mark.parametrize(("text", "facts"), [
    ("Cuda compilation tools, release 12.8, V12.8.93\nBuild cuda_12.8.r12.8/compiler.35583870_0\n",
     {"format": "cuda_toolkit", "cuda": "12.8", "nvcc": "12.8.93", "build": "cuda_12.8.r12.8/compiler.35583870_0",
      "built_on": None}),
    ("CUDA Version 10.2.89\n", {"format": "cuda_toolkit", "cuda": "10.2", "toolkit": "10.2.89"}),
    ('{"cuda": {"name": "CUDA SDK", "version": "12.4.20240227"}, "cuda_nvcc": {"version": "12.4.99"}}',
     {"format": "cuda_toolkit", "cuda": "12.4", "toolkit": "12.4.20240227", "nvcc": "12.4.99",
      "components": {"cuda": "12.4.20240227", "cuda_nvcc": "12.4.99"}}),
    ('#define NCCL_MAJOR 2\n#define NCCL_MINOR 19\n#define NCCL_PATCH 3\n#define NCCL_SUFFIX ""\n',
     {"format": "nccl_library", "nccl": "2.19.3", "nccl_suffix": None, "nccl_code": None}),
    ("libnccl.so.2 -> libnccl.so.2.18.3\n", {"format": "nccl_library", "nccl": "2.18.3"}),
    ("(2, 21, 5)\n", {"format": "nccl_library", "nccl": "2.21.5"}),
    ("Package    Version\n---------- -------\ntorch      2.6.0\nnumpy      1.26.4\nhorovod    0.28.1\n",
     {"format": "pip", "packages": {}, "nccl": None, "cuda": None, "not_nccl": [],
      "software": {"torch": "2.6.0", "horovod": "0.28.1"}}),
    ("libnccl-2.8.3-1+cuda10.1.x86_64\nnccl-repo-rhel7-2.8.3-ga-cuda10.1-1-1.x86_64\n",
     {"format": "rpm", "libnccl": "2.8.3-1+cuda10.1", "packages": {"libnccl": "2.8.3-1+cuda10.1"}, "nccl": "2.8.3",
      "cuda": "10.1", "not_nccl": ["nccl-repo-rhel7-2.8.3-ga-cuda10.1"]}),
])  # fmt: skip
def test_versions_of_cuda_and_nccl_and_lists_of_packages(text: str, facts: dict[str, object]) -> None:
    assert read_text("versions", text) == facts
    assert read_any(text)[0].facts == facts


def test_iblinkinfo() -> None:
    text = (
        'CA: node01 HCA-1:\n  0x0002c903000e0b73   1  1[  ] ==( 4X  10.0 Gbps Active/  LinkUp)==>   2  1[  ] "s" ( )\n'
    )
    assert read_text("iblinkinfo", text)["ports"] == [
        {"ca": "node01 HCA-1", "port": 1, "state": "Active", "physical_state": "LinkUp", "rate_text": "4X 10.0 Gbps"}
    ]
