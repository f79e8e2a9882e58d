"""What nodes have, as values for programs: counts, versions, rates and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncheck.lazy_dataclass import dataclass

OF_A_WHEEL = "/nvidia/cudnn/lib/"  # what a path of cuDNN holds where pip installed it


@dataclass(frozen=True)
class SystemGpus:
    """`models` maps each model name to the number of its GPUs; `cuda` is the newest CUDA that the driver supports.

    Of AMD's GPUs, `cuda` is "", and `rocm` the version of ROCm.
    """

    count: int
    models: Mapping[str, int]
    driver: str
    cuda: str
    memory: int | None  # bytes, of all together
    rocm: str = ""


@dataclass(frozen=True)
class SystemPort:
    """One port of an HCA, as mlx5_0:1; `rate` in Gb/s. `state` and `physical` as ibstat prints them.

    `model` and `firmware` are those of the HCA, such as "ConnectX-7 (MT4129)" and "28.39.1002"; "" where not shown.
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
    """One network interface that could carry a job's data; `speed` in Gb/s. For its addresses see NodeSummary.

    `network` is that of its first address where a job can use it ("10.1.0.0/24"), "" for an interface that no job can.
    `driver` and `firmware` as `ethtool -i` shows them, "" where it does not.
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
    """The machine: `memory` in bytes; "" and None are not shown by the system. See facts/machine.py."""

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
    """The file system of a folder, named "home" or "root"; `size` in bytes. `error`: why it could not be read."""

    name: str
    kind: str | None
    size: int | None
    error: str = ""


@dataclass(frozen=True)
class Hardware:
    """What identifies a node and its parts, and what they have counted. `boot_id` is another after each boot.

    `serial`: that of the machine, which only root can read, "" otherwise. `gpus`: UUIDs by PCI address; `gpu_serials`:
    the numbers on their boards, where they say them; `vbios`: the versions that they have. `hcas`: GUIDs by name.
    `counters`: errors since the driver was loaded, by port or card and name ("mlx5_0:1 symbol_error"), without those
    that are 0.
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
    """What was read on these nodes, which are alike. None: `absent` or `unknown` says why, or no check needed it.

    `commit` is that of the job's code (--workdir), where git says that nothing was changed since. `cudnn` is what the
    job's framework loads, `system_cudnn` what is installed for all programs: see facts/cuda.py. `container_toolkit` is
    the release of NVIDIA's, "installed" where it does not say it, "" where there is none. `net_plugin` is that of NCCL
    with its version, "" for none.
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
