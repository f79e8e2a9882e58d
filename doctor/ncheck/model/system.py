"""What nodes have, as values for programs: counts, versions, rates and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncheck.lazy_dataclass import dataclass

OF_A_WHEEL = "/nvidia/cudnn/lib/"  # what a path of cuDNN holds where pip installed it


@dataclass(frozen=True)
class SystemGpus:
    """The GPUs of a node.

    count: Number of GPUs.
    models: Number of GPUs by model name.
    driver: Version of the driver, such as 550.54.15.
    cuda: The newest CUDA version that the driver supports.
    memory: Memory of all GPUs together in bytes; null if unknown.
    rocm: Version of ROCm, with AMD's GPUs; else empty.
    """

    count: int
    models: Mapping[str, int]
    driver: str
    cuda: str
    memory: int | None  # bytes, of all together
    rocm: str = ""


@dataclass(frozen=True)
class SystemPort:
    """One port of an HCA, as mlx5_0:1.

    name: The HCA and its port, such as mlx5_0:1.
    state: Active, Down, Initializing or Armed.
    physical: The physical state, such as LinkUp or Polling.
    rate: Gb/s; null if unknown.
    link_layer: InfiniBand, Ethernet, OmniPath or EFA.
    model: The model of the HCA, such as ConnectX-7 (MT4129); empty where it is not shown.
    firmware: Its firmware, such as 28.39.1002; empty where it is not shown.
    """

    name: str
    state: str
    physical: str
    rate: float | None
    link_layer: str
    model: str = ""
    firmware: str = ""


@dataclass(frozen=True)
class SystemInterface:
    """One network interface that could carry a job's data. For its addresses see NodeSummary.

    name: The name, such as eno1.
    kind: What it is: physical, cloud, infiniband, bond, vlan, bridge or macvlan.
    running: Whether it has a carrier.
    mtu: Bytes of the largest packet.
    speed: Gb/s; null if the driver does not report it.
    network: The network of its first address, such as 10.1.0.0/24; empty if a job cannot use the interface.
    driver: Its driver, such as bnxt_en.
    firmware: The firmware of the card; empty where the driver does not report it.
    """

    name: str
    kind: str
    running: bool
    mtu: int
    speed: float | None
    network: str = ""
    driver: str = ""
    firmware: str = ""


@dataclass(frozen=True)
class SystemMachine:
    """The machine. Empty text and None: the system does not show it. See facts/machine.py.

    kernel: The kernel's release, such as 5.15.0-105-generic.
    architecture: What uname -m prints, such as x86_64.
    product: What the manufacturer calls the machine; empty where it says nothing.
    cpu: The model of its processors.
    sockets: Number of sockets.
    cores: Number of cores.
    threads: Number of processors that the kernel runs.
    numa_nodes: Number of NUMA nodes with processors.
    memory: Bytes of memory.
    """

    kernel: str
    architecture: str
    product: str
    cpu: str | None
    sockets: int | None
    cores: int | None
    threads: int | None
    numa_nodes: int | None
    memory: int | None


@dataclass(frozen=True)
class SystemDisk:
    """The file system of a folder, named "home" or "root".

    name: The folder: home or root.
    kind: The file system, such as ext4 or nfs4.
    size: Its size in bytes.
    error: Why it could not be read; empty if it was.
    """

    name: str
    kind: str | None
    size: int | None
    error: str = ""


@dataclass(frozen=True)
class Hardware:
    """What identifies a node and its parts, and what they have counted.

    node: Its name.
    host_name: What the node calls itself.
    boot_id: Another one after each boot.
    serial: Serial number of the machine, which only root can read; empty otherwise.
    gpus: UUID of each GPU by its PCI address.
    gpu_serials: The number of each GPU's board by its PCI address, where it says one.
    vbios: Versions of the GPUs' VBIOS.
    hcas: GUID of each HCA by its name.
    counters: Errors since the driver was loaded, by port or card and name, without those that are 0.
    """

    node: str
    host_name: str = ""
    boot_id: str = ""
    serial: str = ""
    gpus: Mapping[str, str] = field(default_factory=dict)
    gpu_serials: Mapping[str, str] = field(default_factory=dict)
    vbios: tuple[str, ...] = ()
    hcas: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """What was read on these nodes, which are alike. None: `absent` or `unknown` says why, or no check needed
    it.

    nodes: The nodes that have all of this.
    gpus: The GPUs; null if there are none or they are unknown.
    cuda_toolkit: Version of the CUDA toolkit that the job would compile with, such as 12.4.1; empty where no file says
        it.
    cuda_toolkit_path: Its path.
    cudnn: Version of the cuDNN that the job's framework loads, such as 9.1.0.70; empty where no file says it, or if it
        loads none.
    cudnn_path: Its path; empty if it loads none.
    system_cudnn: Versions of cuDNN that are installed for all programs.
    nccl: Version of the NCCL that the job's interpreter loads, such as 2.21.5.
    nccl_path: Its path.
    net_plugin: The network plug-in that this NCCL loads, such as aws-ofi-nccl 1.16.3; empty for none.
    mpi: Open MPI, MPICH, Intel MPI or Spectrum MPI.
    mpi_version: Its version, such as 4.1.6.
    horovod: Version of Horovod.
    python: Path of the Python interpreter of the job.
    python_version: Its version.
    frameworks: Versions of the frameworks installed in it, such as torch, by name.
    commit: Git commit of the job's code, if --workdir was given and nothing was changed since.
    ports: The ports of InfiniBand and RoCE adapters.
    interfaces: Network interfaces that could carry a job's data, up or not.
    machine: The machine: kernel, processors, memory, model.
    os: The name of the distribution, such as Ubuntu 22.04.4 LTS.
    container: What the job's container is run by, such as docker; empty for none.
    image: The image of that container, or NVIDIA's that it was made from; empty where it is not shown.
    container_toolkit: Release of the NVIDIA container toolkit, such as 1.16.2; installed where it does not say it,
        empty where none is seen.
    disks: The file systems of the home folder and of /.
    topology: How the GPUs are connected, in a line: 8 GPUs, NV18 all to all, one NIC PIX each.
    absent: What the node does not have (gpus, nccl, mpi and other members of this record), with the reason.
    unknown: What should have been readable and was not, with the reason.
    """

    nodes: tuple[str, ...] = ()
    gpus: SystemGpus | None = None
    cuda_toolkit: str | None = None
    cuda_toolkit_path: str | None = None
    cudnn: str | None = None
    cudnn_path: str | None = None
    system_cudnn: tuple[str, ...] | None = None
    nccl: str | None = None
    nccl_path: str | None = None
    net_plugin: str | None = None
    mpi: str | None = None
    mpi_version: str | None = None
    horovod: str | None = None
    python: str | None = None
    python_version: str | None = None
    frameworks: Mapping[str, str] | None = None
    commit: str | None = None
    ports: tuple[SystemPort, ...] | None = None
    interfaces: tuple[SystemInterface, ...] | None = None
    machine: SystemMachine | None = None
    os: str | None = None
    container: str | None = None  # "" for none
    image: str | None = None
    container_toolkit: str | None = None
    disks: tuple[SystemDisk, ...] | None = None
    topology: str | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
