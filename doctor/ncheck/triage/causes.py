"""The causes that triage knows: a closed list, in which one cause is one repair. What each means, and its fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """`meaning` follows "the job failed: "; `fix` is the command for it, unless the signature has one of its own."""

    meaning: str
    fix: str


_PLAN = "ncheck plan nodes.txt --for env"


_CHECK = "ncheck nodes.txt"


CAUSES: Mapping[str, Cause] = {
    # addresses, names, routes
    "wrong_nic": Cause("the job uses a network interface that does not lead to the other nodes", _PLAN),
    "no_interface": Cause("no network interface with an address matches the configured names", _PLAN),
    "nic_names_differ": Cause("interfaces of the same network have different names on the nodes", _PLAN),
    "routing": Cause("the kernel has no route to the other node, or replies take another route", _CHECK),
    "firewall": Cause(
        "something between the nodes, such as a firewall, blocks their connections", "sudo nft list ruleset"
    ),
    "container_isolation": Cause(
        "the container hides the network or the devices from the job", "docker run --network=host --ipc=host --help"
    ),
    "mtu_mismatch": Cause("small messages arrive and large ones are lost: the MTU differs along the path", _CHECK),
    "hostname_loopback": Cause(
        "a node's hostname resolves to a loopback address, and the other nodes were given that address",
        'getent hosts "$(hostname)"',
    ),
    "gloo_bad_address": Cause("gloo was given an address that this node does not have", "ip -br address"),
    "dns_failure": Cause("the name of a node does not resolve", "getent hosts NODE"),
    "same_hostname": Cause("two nodes have the same hostname and are taken for one machine", _CHECK),
    # launch and rendezvous
    "port_in_use": Cause("another process uses the port", "sudo ss -lptn"),
    "rendezvous_misconfig": Cause(
        "the ranks do not agree on rank, world size or rendezvous address",
        'echo "$RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT"',
    ),
    "launcher_mismatch": Cause(
        "the command was written for another launcher than the one that ran", "mpirun --version"
    ),
    "ssh_auth": Cause("ssh to a node fails", "ncheck nodes.txt --mesh all"),
    "mpi_daemon_missing": Cause("mpirun's daemon was not found on a node", "ncheck plan nodes.txt --for mpirun"),
    "clock_skew": Cause("the clocks of the nodes are too far apart", "timedatectl status"),
    # software
    "version_mismatch": Cause("the ranks use different versions of a library", _CHECK),
    "driver_insufficient": Cause("the NVIDIA driver is missing or too old for this build of CUDA", "nvidia-smi"),
    "arch_unsupported": Cause(
        "the library was built without code for this GPU", "nvidia-smi --query-gpu=name,compute_cap --format=csv"
    ),
    "net_plugin": Cause("NCCL's network plug-in is broken or missing on some nodes", "export NCCL_NET_PLUGIN=none"),
    "software_bug": Cause("a bug in the library that another version fixes", _CHECK),
    # InfiniBand and RoCE
    "ib_fabric": Cause("the InfiniBand or RoCE network does not deliver data: check port, cable and switch", "ibstat"),
    "roce_gid": Cause("the GID in use does not reach the other nodes: wrong index or RoCE version", "ibv_devinfo -v"),
    "ib_wrong_hca": Cause("the job uses an HCA that is not part of its network", _PLAN),
    "ibverbs_missing": Cause(
        "the InfiniBand libraries cannot be loaded", "sudo apt-get install libibverbs1 ibverbs-providers"
    ),
    "memlock_limit": Cause("the limit on locked memory is too low for InfiniBand", "ulimit -l unlimited"),
    "gpudirect_rdma": Cause("the HCA cannot access the GPU's memory", "sudo modprobe nvidia-peermem"),
    # inside one node
    "shm_too_small": Cause("the node's shared memory, /dev/shm, is too small for its ranks", "df -h /dev/shm"),
    "p2p_acs_iommu": Cause(
        "PCIe ACS or the IOMMU corrupts or blocks transfers between GPUs", "export NCCL_P2P_DISABLE=1"
    ),
    "p2p_unsupported": Cause("these GPUs cannot access each other's memory", "export NCCL_P2P_DISABLE=1"),
    "peer_limit": Cause("one process uses more GPUs than CUDA allows peer access between", _PLAN),
    "gpu_mapping": Cause("two ranks use the same GPU, or a rank asks for a GPU that does not exist", "nvidia-smi -L"),
    "gpu_fault": Cause("a GPU is broken", "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER"),
    "fabric_manager": Cause(
        "the fabric manager is not running, or its version is not that of the driver",
        "sudo systemctl restart nvidia-fabricmanager",
    ),
    "nvls_failure": Cause("NVLink SHARP cannot be set up", "export NCCL_NVLS_ENABLE=0"),
    "gpu_oom": Cause("a GPU's memory is full", "nvidia-smi"),
    # the program
    "collective_mismatch": Cause(
        "the ranks call different collectives, or the same one with different sizes",
        "export TORCH_DISTRIBUTED_DEBUG=DETAIL",
    ),
    "rank_crashed": Cause(
        "a rank died; the other ranks only lost the connection to it", "sudo journalctl -k -g 'oom|segfault|Xid'"
    ),
    "slow_rank_timeout": Cause("a rank arrived later than the timeout of the others", "py-spy dump --pid PID"),
    "nofile_limit": Cause("a process reached its limit on open files", "ulimit -n 131072"),
    "healthy": Cause("the log shows no failure", "export NCCL_DEBUG=INFO"),
}


_CHANGES = ("export ", "ulimit -n ", "ulimit -l unlimited", "sudo modprobe ", "sudo systemctl ", "sudo apt-get ",
            "ncheck plan ")  # fmt: skip


def only_shows(fix: str) -> bool:
    """Return whether a command shows more, and mends nothing."""
    return not fix.startswith(_CHANGES) or "DEBUG" in fix


SYMPTOM = Cause("the ranks failed, and the log does not show why", "export NCCL_DEBUG=INFO")
