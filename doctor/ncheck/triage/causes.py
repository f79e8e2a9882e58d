"""The causes that triage knows, a closed list: one cause is one repair. What each means, and what to type for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """`meaning` reads after "the job failed:"; `fix` is one line to type, where the line found has none of its own."""

    meaning: str
    fix: str


_PLAN = "ncheck plan nodes.txt --for env"


_CHECK = "ncheck nodes.txt"


CAUSES: Mapping[str, Cause] = {
    # addresses, names, routes
    "wrong_nic": Cause("a network interface was taken that does not lead to the other nodes", _PLAN),
    "no_interface": Cause("no network interface with an address fits the names that were set", _PLAN),
    "nic_names_differ": Cause("the same network has other interface names on other nodes", _PLAN),
    "routing": Cause("the kernel has no way to the other node, or another one than that of the answers", _CHECK),
    "firewall": Cause("something between the nodes lets their connections not through", "sudo nft list ruleset"),
    "container_isolation": Cause(
        "the container hides the network or the devices from the job", "docker run --network=host --ipc=host --help"
    ),
    "mtu_mismatch": Cause("small messages pass and large ones get lost: the MTU is not the same on the way", _CHECK),
    "hostname_loopback": Cause(
        "a node's own name stands for a loopback address, and the others were given that", 'getent hosts "$(hostname)"'
    ),
    "gloo_bad_address": Cause("gloo was given an address that is not this node's", "ip -br address"),
    "dns_failure": Cause("the name of a node does not resolve", "getent hosts NODE"),
    "same_hostname": Cause("two nodes look like one machine: they have one host name", _CHECK),
    # launch and rendezvous
    "port_in_use": Cause("another process has the port", "sudo ss -lptn"),
    "rendezvous_misconfig": Cause(
        "the ranks do not agree about rank, world size or the address to meet at",
        'echo "$RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT"',
    ),
    "launcher_mismatch": Cause("the launcher that ran is not the one that the command is for", "mpirun --version"),
    "ssh_auth": Cause("ssh to a node fails", "ncheck nodes.txt --mesh all"),
    "mpi_daemon_missing": Cause("mpirun's daemon is not found on a node", "ncheck plan nodes.txt --for mpirun"),
    "clock_skew": Cause("the clocks of the nodes are too far apart", "timedatectl status"),
    # software
    "version_mismatch": Cause("the ranks do not run one and the same version of a library", _CHECK),
    "driver_insufficient": Cause("the NVIDIA driver is missing or too old for this build of CUDA", "nvidia-smi"),
    "arch_unsupported": Cause(
        "the library was built without code for this GPU", "nvidia-smi --query-gpu=name,compute_cap --format=csv"
    ),
    "net_plugin": Cause("NCCL's network plug-in is broken, or not there on all nodes", "export NCCL_NET_PLUGIN=none"),
    "software_bug": Cause("a bug of the library, mended in another version", _CHECK),
    # InfiniBand and RoCE
    "ib_fabric": Cause("the InfiniBand or RoCE network does not carry the data: port, cable, switch", "ibstat"),
    "roce_gid": Cause("the GID that was taken leads nowhere from here: wrong index or RoCE version", "ibv_devinfo -v"),
    "ib_wrong_hca": Cause("an HCA is used that is no part of the job's network", _PLAN),
    "ibverbs_missing": Cause(
        "the InfiniBand libraries cannot be loaded", "sudo apt-get install libibverbs1 ibverbs-providers"
    ),
    "memlock_limit": Cause("the limit of locked memory is too low for InfiniBand", "ulimit -l unlimited"),
    "gpudirect_rdma": Cause("GPU and HCA cannot reach each other's memory", "sudo modprobe nvidia-peermem"),
    # inside one node
    "shm_too_small": Cause("the node's shared memory, /dev/shm, is too small for its ranks", "df -h /dev/shm"),
    "p2p_acs_iommu": Cause("PCIe ACS or the IOMMU breaks what GPUs send each other", "export NCCL_P2P_DISABLE=1"),
    "p2p_unsupported": Cause("these GPUs cannot reach each other's memory", "export NCCL_P2P_DISABLE=1"),
    "peer_limit": Cause("one process uses more GPUs than CUDA lets see each other", _PLAN),
    "gpu_mapping": Cause("two ranks use one GPU, or a rank asks for one that is not there", "nvidia-smi -L"),
    "gpu_fault": Cause("a GPU is broken", "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER"),
    "fabric_manager": Cause(
        "the fabric manager does not run, or not in the driver's version",
        "sudo systemctl restart nvidia-fabricmanager",
    ),
    "nvls_failure": Cause("NVLink SHARP cannot be set up", "export NCCL_NVLS_ENABLE=0"),
    "gpu_oom": Cause("a GPU's memory is full", "nvidia-smi"),
    # the program
    "collective_mismatch": Cause(
        "the ranks call different collectives, or with different sizes", "export TORCH_DISTRIBUTED_DEBUG=DETAIL"
    ),
    "rank_crashed": Cause("a rank died, and the others only lost it", "sudo journalctl -k -g 'oom|segfault|Xid'"),
    "slow_rank_timeout": Cause("a rank came later than the others wait for it", "py-spy dump --pid PID"),
    "nofile_limit": Cause("a process may not open more files", "ulimit -n 131072"),
    "healthy": Cause("no line tells of a failure", "export NCCL_DEBUG=INFO"),
}


SYMPTOM = Cause("the ranks failed, and no line says why", "export NCCL_DEBUG=INFO")


def cause_of(name: str) -> Cause:
    """Return a cause by its name; a symptom's words for ""."""
    return CAUSES[name] if name else SYMPTOM
