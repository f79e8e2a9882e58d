"""Variables and parameters of Open MPI with a slip in their names, which nothing reads: on launch lines in logs, and as
UCX says of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncheck.expression import expression
from ncheck.nccl.variables import is_one_apart, not_read
from ncheck.triage.signature import Detector

# NCCL version 2.21.5+cuda12.4
_VERSION = expression(r"\bNCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})\b")

# mpirun -np 16 -x NCCL_IB_HCAS=mlx5_0 python train.py | export TORCH_NCCL_BLOCKING_WAITS=1 | -x UCX_TSL
# mpiexec.hydra -genv NCCL_IB_HCAS mlx5_0
_NAME = r"((?:TORCH_)?NCCL_[A-Z0-9_]{2,80}|(?:GLOO|HOROVOD|UCX)_[A-Z0-9_]{2,80})"
_SET = expression(rf"(?<![\w-]){_NAME}=|(?<![\w-])(?:-x|--?g?env) {_NAME}(?![\w=])")

# mpirun --mca btl_tcp_if_inculde eth0 | horovodrun --mpi-args="-mca pml ob1" | --prtemca oob_tcp_if_include eth0
_PARAMETER = expression(r"(?<![\w-])--?(?:o|prte|pmix|g)?mca[ =]([a-z][a-z0-9_]{2,80})(?![\w=])")

# parser.c:2033 UCX  WARN  unused environment variable: UCX_NET_DEVICE (maybe: UCX_NET_DEVICES?)
_OF_UCX = expression(r"\b(UCX_[A-Z0-9_]{1,80}) \(maybe: (UCX_[A-Z0-9_]{1,80})")

# Those that people set, of Open MPI 3 to 5 and PRRTE: a name that is one letter apart from one of these is a slip.
_PARAMETERS = """
btl_openib_allow_ib btl_openib_gid_index btl_openib_if_include btl_openib_warn_no_device_params_found
btl_tcp_if_exclude btl_tcp_if_include btl_tcp_links btl_tcp_port_min_v4 btl_tcp_port_range_v4
btl_vader_single_copy_mechanism coll_hcoll_enable coll_tuned_allreduce_algorithm coll_tuned_use_dynamic_rules
hwloc_base_binding_policy mpi_abort_print_stack mpi_leave_pinned mpi_preconnect_mpi mpi_show_mca_params
mpi_warn_on_fork mpi_yield_when_idle oob_tcp_dynamic_ipv4_ports oob_tcp_if_exclude oob_tcp_if_include
opal_cuda_support opal_warn_on_missing_libcuda orte_base_help_aggregate orte_keep_fqdn_hostnames
plm_rsh_agent plm_rsh_args plm_rsh_no_tree_spawn plm_rsh_num_concurrent pml_ucx_devices pml_ucx_tls
prte_if_exclude prte_if_include prte_keep_fqdn_hostnames rmaps_base_mapping_policy rmaps_base_oversubscribe
routed_radix
"""

_MOST = 3


def names_note(texts: Iterable[str]) -> str:
    """Return which variables are set and have no effect, "" for none.

    `texts` are lines of logs, command lines, and variables as "NAME=value". Of NCCL nothing is said unless one of them
    names its version.
    """
    lines = list(texts)
    version = next((match[1] for line in lines if (match := _VERSION.search(line))), "")
    meant = (*_ucx(lines), *_parameters(lines))
    slips = list(dict.fromkeys((*_slips(lines, version), *(f"{one}: {near} is meant" for one, near in meant))))
    more = f"; and {len(slips) - _MOST} more" if len(slips) > _MOST else ""
    return f"without effect: {'; '.join(slips[:_MOST])}{more}" if slips else ""


def _slips(lines: Iterable[str], version: str) -> Iterator[str]:
    warned = {name for name, _ in _ucx(lines)}
    names = dict.fromkeys(match[1] or match[2] for line in lines for match in _SET.finditer(line))
    return (
        f"{found.name}: {found.why}"
        for found in not_read(names, version)
        if found.mistaken and found.name not in warned
    )


def _ucx(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    return (pair for line in lines if "UCX_" in line for pair in _OF_UCX.findall(line))


def _parameters(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    names = dict.fromkeys(name for line in lines if "mca" in line for name in _PARAMETER.findall(line))
    own = _PARAMETERS.split()
    return ((name, near) for name in names if name not in own for near in own if is_one_apart(name, near))


DETECTORS: tuple[Detector, ...] = ()
WORDS = ("export nccl_", "export torch_nccl_", "export gloo_", "export horovod_", "export ucx_", "(maybe: ucx_")
