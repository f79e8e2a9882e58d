"""The driver of the HCAs differs

## What it finds
Nodes whose mlx5_core driver has another version than on the other nodes: another release of MLNX_OFED or DOCA-OFED, or
the kernel's own driver, which has no version, on some nodes only. Nodes with the same GPUs are compared.

## Why it matters
The release decides what libraries and GPUDirect RDMA can use. Mixed releases cause errors that only some pairs of nodes
show, such as "ibv_reg_dmabuf_mr failed", missing relaxed ordering, or lower bandwidth. After a kernel update, a node
may have lost OFED's driver and run the kernel's own.

## What to type
`ofed_info -s` shows which release is installed, `modinfo mlx5_core` which driver would be loaded. Install the same
release on all nodes, or rebuild it for the running kernel (`sudo dkms autoinstall`), then restart the node.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.hcas import HcaModuleFacts


@parity_check(
    "NC419",
    Severity.WARNING,
    HcaModuleFacts,
    what="the driver mlx5_core differs",
    fix="modinfo mlx5_core",
    look=True,
    by_kind=True,
)
def hca_driver_differs(loaded: HcaModuleFacts) -> str | None:
    version = loaded.modules.get("mlx5_core")
    return version if version is None else version or "the kernel's own"
