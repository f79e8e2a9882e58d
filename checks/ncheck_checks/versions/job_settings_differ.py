"""Settings of UCX, MPI, libfabric, gloo or torch differ between nodes

## What it finds
Variables that are set on some nodes only, or to different values, in the job's environment: UCX_, UCC_, HCOLL_, FI_,
GLOO_, TORCH_NCCL_, HOROVOD_, I_MPI_, MPICH_, the parameters of Open MPI, PRRTE and PMIx (OMPI_MCA_, PRTE_MCA_,
PMIX_MCA_), CUDA_DEVICE_ORDER, CUDA_DEVICE_MAX_CONNECTIONS, CUDA_LAUNCH_BLOCKING and LD_PRELOAD. Not compared are names
of interfaces, devices, folders and logs, which may rightly differ; other checks say whether the job can use them.
Inside a job, what its launcher sets for each rank is not compared. nccl-settings-differ compares NCCL's.

## Why it matters
Both ends of a connection choose their transport by these variables. With UCX_TLS or OMPI_MCA_pml on one node only,
ranks find "no usable transports" or "PML add procs failed", or fall back to TCP. With CUDA_LAUNCH_BLOCKING on one node,
all others wait for it in every step. The cause is often a line in a start-up file of a single node.

## What to type
`env | grep -E 'UCX|OMPI|FI_|TORCH'` on the named nodes, and `grep -n NAME ~/.bashrc ~/.profile /etc/environment
/etc/profile.d/*` for where it is set.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.expression import expression
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.run import JobFacts
from ncheck.nccl.setting_problems import differing
from ncheck.nccl.settings import setting_at

_COMPARED = expression(
    r"(UCX|UCC|HCOLL|FI|GLOO|TORCH_NCCL|HOROVOD|I_MPI|MPICH|OMPI_MCA|PRTE_MCA|PMIX_MCA)_.*"
    r"|CUDA_(DEVICE_ORDER|DEVICE_MAX_CONNECTIONS|LAUNCH_BLOCKING)|LD_PRELOAD"
)

# UCX_NET_DEVICES, GLOO_SOCKET_IFNAME, OMPI_MCA_btl_tcp_if_include, FI_TCP_IFACE, UCX_LOG_FILE, HCOLL_MAIN_IB
_MAY_DIFFER = expression(
    r".*(DEVICES?|DEVICE_NAME|IFNAME|IFACE|MAIN_IB|main_ib|HFI_SELECT|NIC_MAPPING|GID_INDEX|gid_index|_if_(in|ex)clude)"
    r"|.*(DIR|ROOT|FILE|PATH|PREFIX|tmpdir_base|HOSTNAME|HOSTFILE|LOG_.*|DEBUG.*)"
    r"|.*_(LOG|DUMP|STATS|TIMELINE).*"
)

_SET_BY_LAUNCHERS = expression(r"(HOROVOD|I_MPI|MPICH|OMPI_MCA|PRTE_MCA|PMIX_MCA)_.*")


@cluster_check("NC219", Severity.WARNING, EnvironmentFacts, also=(JobFacts,))
def job_settings_differ(cluster: Cluster) -> Iterator[Problem]:
    in_job = any(job.running for job in cluster.facts(JobFacts).values())
    yield from differing({
        node: {
            name: setting_at(own, name, value)
            for name, value in own.variables.items()
            if _is_compared(name, in_job=in_job)
        }
        for node, own in cluster.facts(EnvironmentFacts).items()
    })  # fmt: skip


def _is_compared(name: str, *, in_job: bool) -> bool:
    if not _COMPARED.fullmatch(name) or _MAY_DIFFER.fullmatch(name):
        return False
    return not (in_job and _SET_BY_LAUNCHERS.fullmatch(name))
