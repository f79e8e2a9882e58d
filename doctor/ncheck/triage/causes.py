"""The causes that triage knows: a closed list, in which one cause is one repair. What each means, and its fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ncheck.lazy_dataclass import dataclass
from ncheck.model.next_step import Action


@dataclass(frozen=True)
class KnownCause:
    """`meaning` follows "the job failed: ". `fix` is a command that changes something: "" where none does so by itself.

    `look` is a command that shows whether it is this cause; `about` explains it in docs/causes.md. A signature may have
    better ones. No command has a placeholder, but PID, for the process of a running job: see `filled`.
    `action` is what to do next where the evidence says no more (next_step.py): most causes do not mend themselves.
    """

    meaning: str
    fix: str = ""
    look: str = ""
    about: str = ""
    action: Action = Action.FIX_FIRST


_PLAN = 'eval "$(ncheck plan nodes.txt --for env)"'
_CHECK = "ncheck nodes.txt"
_SACCT = "sacct -X -S now-2days --format=JobID,State,ExitCode,Elapsed,Timelimit"
UNKNOWN = "unknown"  # the slug of a failure whose cause no line shows

_CAUSES: Mapping[str, KnownCause] = {
    # addresses, names, routes
    "wrong_nic": KnownCause("the job uses a network interface that does not lead to the other nodes", _PLAN),
    "no_interface": KnownCause("no network interface with an address matches the configured names", _PLAN),
    "nic_names_differ": KnownCause("interfaces of the same network have different names on the nodes", _PLAN),
    "routing": KnownCause("the kernel has no route to the other node, or replies take another route"),
    "firewall": KnownCause("something between the nodes, such as a firewall, blocks their connections"),
    "container_isolation": KnownCause("the container hides the network or the devices from the job"),
    "mtu_mismatch": KnownCause("small messages arrive and large ones are lost: the MTU differs along the path"),
    "hostname_loopback": KnownCause(
        "a node's hostname resolves to a loopback address, and the other nodes were given that address"
    ),
    "gloo_bad_address": KnownCause("gloo was given an address that this node does not have"),
    "dns_failure": KnownCause("the name of a node does not resolve"),
    "numeric_hostname": KnownCause("a hostname of digits alone is read as an address, and not looked up"),
    "same_hostname": KnownCause("two nodes have the same hostname and are taken for one machine"),
    # launch and rendezvous
    "port_in_use": KnownCause("another process uses the port"),
    "rendezvous_misconfig": KnownCause("the ranks do not agree on rank, world size or rendezvous address"),
    "launcher_mismatch": KnownCause("the command was written for another launcher than the one that ran"),
    "ssh_auth": KnownCause("ssh to a node fails"),
    "mpi_daemon_missing": KnownCause("mpirun's daemon was not found on a node"),
    "pod_unschedulable": KnownCause("Kubernetes finds no node for a pod of the job"),
    "container_start": KnownCause("a container of the job cannot be started on its node"),
    "clock_skew": KnownCause("the clocks of the nodes are too far apart", "sudo timedatectl set-ntp true"),
    # software
    "version_mismatch": KnownCause("the ranks use different versions of a library"),
    "driver_insufficient": KnownCause("the NVIDIA driver is missing or too old for this build of CUDA"),
    "arch_unsupported": KnownCause("the library was built without code for this GPU"),
    "net_plugin": KnownCause("NCCL's network plug-in is broken or missing on some nodes"),
    "software_bug": KnownCause("a bug in the library that another version fixes"),
    # InfiniBand and RoCE
    "ib_fabric": KnownCause(
        "the InfiniBand or RoCE network does not deliver data: check port, cable and switch", action=Action.TICKET
    ),
    "roce_gid": KnownCause("the GID in use does not reach the other nodes: wrong index or RoCE version"),
    "ib_wrong_hca": KnownCause("the job uses an HCA that is not part of its network", _PLAN),
    "ib_partition": KnownCause("the InfiniBand partition (P_Key) of a port does not let it reach the others"),
    "roce_congestion": KnownCause("the RoCE network loses packets under load: PFC or ECN is not set up along the path"),
    "ibverbs_missing": KnownCause(
        "the InfiniBand libraries cannot be loaded", "sudo apt-get install libibverbs1 ibverbs-providers"
    ),
    "memlock_limit": KnownCause("the limit on locked memory is too low for InfiniBand", "ulimit -l unlimited"),
    "gpudirect_rdma": KnownCause("the HCA cannot access the GPU's memory", "sudo modprobe nvidia-peermem"),
    # inside one node
    "ptrace_refused": KnownCause(
        "a rank may not read the memory of another one on its node, as Open MPI's CMA does",
        "export OMPI_MCA_btl_vader_single_copy_mechanism=none",
    ),
    "shm_too_small": KnownCause("the node's shared memory, /dev/shm, is too small for its ranks"),
    "p2p_acs_iommu": KnownCause(
        "PCIe ACS or the IOMMU corrupts or blocks transfers between GPUs", "export NCCL_P2P_DISABLE=1"
    ),
    "p2p_unsupported": KnownCause("these GPUs cannot access each other's memory", "export NCCL_P2P_DISABLE=1"),
    "peer_limit": KnownCause("one process uses more GPUs than CUDA allows peer access between"),
    "gpu_mapping": KnownCause("two ranks use the same GPU, or a rank asks for a GPU that does not exist"),
    "gpu_fault": KnownCause("a GPU is broken", action=Action.RESET_GPU),
    "fabric_manager": KnownCause(
        "the fabric manager is not running, or its version is not that of the driver",
        "sudo systemctl restart nvidia-fabricmanager",
    ),
    "nvls_failure": KnownCause("NVLink SHARP cannot be set up", "export NCCL_NVLS_ENABLE=0"),
    "gpu_oom": KnownCause("a GPU's memory is full"),
    # the program
    "collective_mismatch": KnownCause("the ranks call different collectives, or the same one with different sizes"),
    "algorithm_differs": KnownCause(
        "NCCL chose another algorithm or protocol on some ranks than on the others", "unset NCCL_ALGO NCCL_PROTO"
    ),
    "rank_crashed": KnownCause("a rank died; the other ranks only lost the connection to it", action=Action.RESTART),
    "slow_rank_timeout": KnownCause("a rank arrived later than the timeout of the others", action=Action.RESTART),
    "nofile_limit": KnownCause("a process reached its limit on open files", "ulimit -n 131072"),
    "process_limit": KnownCause("a process reached its limit on threads or processes", "ulimit -u unlimited"),
    # the program, and what ran it
    "diverged": KnownCause("the loss became NaN or infinite", action=Action.LOOK),
    "disk_full": KnownCause("a disk is full, or a quota is used up"),
    "storage_hang": KnownCause("a file system does not answer"),
    "job_ended": KnownCause(
        "the scheduler ended the job: time limit, preemption, or cancelled by somebody", action=Action.RESTART
    ),
    "node_failed": KnownCause("a node went down, or lost its connection to the scheduler", action=Action.RESTART),
    # seen in a job that runs
    "rank_stopped": KnownCause("a rank is stopped by a signal or a debugger"),
    "rank_missing": KnownCause("a rank of the job is not there; the others wait for it", action=Action.LOOK),
    "host_memory": KnownCause("the memory of a node, or of the job's share of it, is exhausted"),
    "data_loader": KnownCause("a rank waits for its data loader", action=Action.RESTART),
    "checkpoint_write": KnownCause("a rank is still writing a checkpoint; the others wait for it", action=Action.LOOK),
    "deadlock": KnownCause("a rank waits for a lock, or loops, in its own code", action=Action.RESTART),
    "slow_rank": KnownCause("one rank is slower than the others, which wait for it", action=Action.LOOK),
    "gpu_idle": KnownCause("a GPU of the job does nothing while the others work", action=Action.LOOK),
    "network_stalled": KnownCause("data that was sent between two nodes does not arrive", action=Action.RESTART),
    "healthy": KnownCause("the log shows no failure", action=Action.LOOK),
}

# What shows whether it is this cause, and more about it than one sentence.
_MORE: Mapping[str, tuple[str, str]] = {
    "wrong_nic": (
        _CHECK,
        (
            "NCCL, gloo and MPI pick an interface by name and order. docker0, virbr0, veth and loopback"
            " have addresses that the other nodes cannot reach, or that every node has."
        ),
    ),
    "no_interface": (
        "ip -br address",
        (
            "NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME or btl_tcp_if_include names an"
            " interface that does not exist on a node, or that has no address."
        ),
    ),
    "nic_names_differ": (
        _CHECK,
        "One value of NCCL_SOCKET_IFNAME cannot fit all nodes. A list of both names, or /etc/nccl.conf per node, can.",
    ),
    "routing": (
        "ip route",
        (
            "The interface is right, and the kernel sends the packets elsewhere: a missing"
            " route, overlapping subnets, or replies by another route that reverse-path filtering drops."
        ),
    ),
    "firewall": (
        "sudo nft list ruleset",
        (
            "A filter drops (time-out) or rejects (no route to host, refused) the ports. A job needs all"
            " ports between its nodes, not only that of the rendezvous."
        ),
    ),
    "container_isolation": (
        "ip -br address",
        (
            "A bridge network, NAT, a missing /dev/infiniband or a private /dev/shm hides from the job what the node"
            " has. Start containers with --network=host --ipc=host --ulimit memlock=-1 --device=/dev/infiniband."
        ),
    ),
    "mtu_mismatch": ("ncheck nodes.txt --mesh all", "Connections succeed and the first large message hangs."),
    "hostname_loopback": (
        'getent hosts "$(hostname)"',
        "/etc/hosts gives the node's own name the address 127.0.0.1 or 127.0.1.1, and a rank passes it on.",
    ),
    "gloo_bad_address": ("ip -br address", "Gloo binds to the address of the hostname or of GLOO_SOCKET_IFNAME."),
    "dns_failure": (
        'getent hosts "$MASTER_ADDR"',
        (
            "MASTER_ADDR or a host of the list has no address, or not yet: pods of"
            " Kubernetes get their names a little after they start."
        ),
    ),
    "numeric_hostname": (
        'getent ahosts "$MASTER_ADDR"',
        (
            "Resolvers read 1234 as the address 0.0.4.210. Give the node a name with a letter in it, or write its"
            " address."
        ),
    ),
    "same_hostname": (
        "hostname",
        "NCCL takes ranks with one host name and boot id for one machine, and tries shared memory or P2P between them.",
    ),
    "port_in_use": ("sudo ss -lptn", "An earlier job still runs, or two jobs on one node have the same port."),
    "rendezvous_misconfig": (
        'echo "$RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT"',
        (
            "Ranks missing, two ranks with one"
            " number, another world size or address on some nodes, a store of an earlier run."
        ),
    ),
    "launcher_mismatch": (
        "mpirun --version",
        "Options of Open MPI for MPICH's mpirun or the reverse, or a program that was built without MPI.",
    ),
    "ssh_auth": (
        "ncheck nodes.txt --mesh all",
        "Key, host key, user or sshd: mpirun needs a login without a question.",
    ),
    "mpi_daemon_missing": ("ncheck plan nodes.txt --for mpirun", "A login without a terminal has another PATH."),
    "pod_unschedulable": (
        "kubectl get events --sort-by=.lastTimestamp",
        "No node has enough free GPUs, memory or CPUs, or taints and selectors leave none. The ranks that run wait.",
    ),
    "container_start": (
        "kubectl get events --sort-by=.lastTimestamp",
        "The image, the container runtime, or NVIDIA's container toolkit and its driver.",
    ),
    "clock_skew": ("timedatectl status", "Certificates, credentials and stores refuse times from the future."),
    "version_mismatch": (_CHECK, "Ranks of two images, or one process with libraries of two installations."),
    "driver_insufficient": (
        "nvidia-smi",
        "The driver is older than CUDA needs, absent, or was updated without being loaded again.",
    ),
    "arch_unsupported": (
        "nvidia-smi --query-gpu=name,compute_cap --format=csv",
        "The build has no code for the GPU's compute capability.",
    ),
    "net_plugin": (_CHECK, "libnccl-net of another NCCL version, on some nodes only, or without its libraries."),
    "software_bug": (_CHECK, "Search the message in the project's issues: another version may have the fix."),
    "ib_fabric": ("ibstat", "Port down, cable, subnet manager, switch, or a rail without connection to the others."),
    "roce_gid": ("show_gids", "RoCE needs the GID of the right address and version: NCCL_IB_GID_INDEX."),
    "ib_wrong_hca": ("ibdev2netdev", "NCCL takes all HCAs unless NCCL_IB_HCA limits it, also those of storage."),
    "ib_partition": (
        "cat /sys/class/infiniband/*/ports/*/pkeys/*",
        (
            "Two ports exchange data only in a partition that both are in, at least one as a full member (0x8000 and"
            " above). The subnet manager gives them; NCCL_IB_PKEY and UCX_IB_PKEY say which one is used."
        ),
    ),
    "roce_congestion": (
        "grep -H . /sys/class/infiniband/*/ports/*/hw_counters/*_err",
        (
            "RoCE expects a network that loses nothing: the same priority with PFC, or ECN, on NICs and switches, and"
            " NCCL_IB_TC for it. Counters of lost packets grow while the job runs."
        ),
    ),
    "ibverbs_missing": ("ldconfig -p | grep libibverbs", "Without libibverbs NCCL falls back to TCP."),
    "memlock_limit": (
        "ulimit -l",
        "RDMA pins memory. The limit of the service that starts the job counts, not that of a login.",
    ),
    "gpudirect_rdma": (
        "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'",
        "The HCA reads GPU memory by nvidia-peermem or DMA-BUF; ACS and the IOMMU can prevent it.",
    ),
    "ptrace_refused": (
        "sysctl kernel.yama.ptrace_scope",
        (
            "Ranks in containers of their own, or kernel.yama.ptrace_scope above 0. Open MPI goes on with copies"
            " through shared memory; without CMA it prints nothing."
        ),
    ),
    "shm_too_small": ("df -h /dev/shm", "Docker gives a container 64 MB. --shm-size or --ipc=host gives more."),
    "p2p_acs_iommu": (
        "sudo lspci -vvv | grep ACSCtl",
        (
            "With ACS or the IOMMU on, transfers between GPUs hang or"
            " return wrong values. NCCL_P2P_DISABLE=1 shows whether it is that."
        ),
    ),
    "p2p_unsupported": ("nvidia-smi topo -p2p r", "Some models report P2P and do not have it."),
    "peer_limit": ("nvidia-smi -L", "CUDA maps the memory of 8 peers at most. One process per GPU does not need it."),
    "gpu_mapping": ("nvidia-smi -L", "Local rank and CUDA_VISIBLE_DEVICES decide which GPU a rank uses."),
    "gpu_fault": (
        "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
        "Xid, ECC, NVLink, off the bus: drain the node, reset or replace.",
    ),
    "fabric_manager": (
        "systemctl status nvidia-fabricmanager",
        "Machines with NVSwitch need it, in the driver's version; multi-node NVLink also needs IMEX.",
    ),
    "nvls_failure": (
        "nvidia-smi -q | grep -A 3 Fabric",
        "Multicast over NVSwitch needs the fabric manager and its memory; NCCL_NVLS_ENABLE=0 goes without.",
    ),
    "gpu_oom": ("nvidia-smi", "A smaller batch, or another process that uses the GPU."),
    "algorithm_differs": (
        "env | grep NCCL_",
        (
            "Each rank computes the choice by itself. NCCL_ALGO, NCCL_PROTO, a tuner plug-in or another version of NCCL"
            " on some nodes makes it differ: then the ranks send in different orders, and hang."
        ),
    ),
    "collective_mismatch": (
        "export TORCH_DISTRIBUTED_DEBUG=DETAIL",
        "A condition that differs by rank, an uneven last batch, another shape or dtype.",
    ),
    "rank_crashed": (
        "sudo journalctl -k -g 'oom|segfault|Xid'",
        (
            "One rank ended first: an exception, a signal, host"
            " memory. `kind` says which. The log of that rank has the reason, the others only lost it."
        ),
    ),
    "slow_rank_timeout": (
        "ncheck triage nodes.txt",
        (
            "The ranks that time out wait. The late one loads data, writes a"
            " checkpoint, evaluates alone or hangs: look at the rank without a time-out. `limit` names the setting"
            " that ends the wait; more time helps only if that rank still works."
        ),
    ),
    "nofile_limit": ("ulimit -n", "Each pair of ranks needs sockets, and data loaders need descriptors."),
    "process_limit": (
        "ulimit -u; cat /sys/fs/cgroup/pids.max",
        "Each thread counts: of data loaders, of OpenMP and of BLAS (OMP_NUM_THREADS), for the user or for the cgroup.",
    ),
    "diverged": (
        "export TORCH_SHOW_CPP_STACKTRACES=1",
        (
            "Look at the step before: learning rate, loss scale, data. Ranks that stop on it leave the others"
            " in a collective."
        ),
    ),
    "disk_full": (
        "df -h . /tmp; df -i .; quota -s",
        "Checkpoints and core files fill disks; a quota or the number of files can be the limit.",
    ),
    "storage_hang": (
        "sudo journalctl -k -g 'not responding|blocked for more'",
        "Processes in state D on a mount that does not answer; the others wait for them.",
    ),
    "job_ended": (
        _SACCT,
        "Not a failure of the program: the scheduler or a person stopped it.",
    ),
    "node_failed": (
        "sinfo -R",
        "The scheduler lost the node: power, kernel, network. Look at its console.",
    ),
    "rank_stopped": (
        "ps -o pid,stat,wchan,cmd -p PID",
        "State T or t: SIGSTOP, ^Z, a debugger or a profiler. It goes on after SIGCONT, or once it is detached.",
    ),
    "rank_missing": (
        "ps -ef | grep python",
        "Fewer processes than the world size: one never started, or ended. Its log, or that of its launcher, says why.",
    ),
    "host_memory": (
        "free -g; dmesg | grep -i oom",
        "Swap and reclaim make a rank slow long before the kernel kills it. Data-loader workers are often the reason.",
    ),
    "data_loader": (
        "py-spy dump --pid PID",
        (
            "The rank waits in the iterator of its data loader: workers died, hang on a file system, or are slower"
            " than the GPU. Look at the workers beneath the rank."
        ),
    ),
    "checkpoint_write": (
        "py-spy dump --pid PID",
        "The others wait in a collective. Write checkpoints asynchronously, or raise the timeout around them.",
    ),
    "deadlock": (
        "py-spy dump --pid PID",
        (
            "A lock that no thread releases, or a loop without end, in the program itself, while others wait in a"
            " collective."
        ),
    ),
    "slow_rank": (
        "py-spy dump --pid PID",
        "The others spend most of their time waiting for it: a throttled GPU or CPU, a busy node, more data.",
    ),
    "gpu_idle": ("nvidia-smi", "Its rank waits for something else: look at the stack of that rank."),
    "network_stalled": (
        "ss -tino",
        (
            "The connection is there, and what is sent stays unacknowledged: packets are lost on the way, perhaps"
            " in one direction only."
        ),
    ),
    "healthy": ("export NCCL_DEBUG=INFO", "The log shows an end or progress, and nothing that speaks of a failure."),
}

CAUSES: Mapping[str, KnownCause] = {
    name: replace(cause, look=_MORE[name][0], about=_MORE[name][1]) for name, cause in _CAUSES.items()
}


def filled(command: str, pid: int | None = None) -> str:
    """Return a command with a process in the place of PID; "" if it needs one and none is known."""
    if pid is not None:
        return re.sub(r"\bPID\b", str(pid), command)
    return "" if re.search(r"\bPID\b", command) else command


SYMPTOM = KnownCause(
    "the ranks failed, and the log does not show why",
    look="export NCCL_DEBUG=INFO",
    about="The lines are consequences. Run the job again with NCCL_DEBUG=INFO and TORCH_DISTRIBUTED_DEBUG=INFO, and"
    " give the logs of all ranks.",
    action=Action.LOOK,
)  # fmt: skip

NAMED: Mapping[str, KnownCause] = {**CAUSES, UNKNOWN: SYMPTOM}  # all that a diagnosis may name


def page_of(cause: KnownCause) -> str:
    """Return what a page says of a cause, as Markdown."""
    look = f"- look: `{cause.look}`\n" if cause.look else ""
    fix = f"- fix: `{cause.fix}`\n" if cause.fix else ""
    return f"{cause.meaning[:1].upper()}{cause.meaning[1:]}. {cause.about}\n\n{look}{fix}- next: {cause.action.value}\n"


# What a program says of itself, of which the log of the kernel shows nothing.
_OWN_ERRORS = frozenset({"assertion", "exception", "exit", "file", "import", "permission"})


def look_of(cause: str, kind: str) -> str:
    """Return the command that shows whether it is this cause, "" where it shows nothing of this kind of failure."""
    return "" if cause == "rank_crashed" and kind in _OWN_ERRORS else CAUSES.get(cause, SYMPTOM).look
