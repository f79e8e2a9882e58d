"""Errors that the ranks of ncheck's own probe print."""

from __future__ import annotations

from ncheck.triage.certainty import Grade
from ncheck.triage.signature import row

SIGNATURES = (
    # libcuda.so.1 lacks cuDevicePrimaryCtxRetain_v2: the driver is too old
    row(r"^libcuda\.so\.1 lacks \w+:", "driver_insufficient", Grade.CERTAIN, "version_mismatch"),
    # cuInit: CUDA driver version is insufficient for CUDA runtime version (CUDA error 35)
    row(r"\(CUDA error (?:35|803|804)\)", "driver_insufficient", Grade.CERTAIN, "version_mismatch"),
    # cuMemAlloc_v2: out of memory (CUDA error 2)
    row(r"\(CUDA error 2\)|^out of memory: no size fits", "gpu_oom", Grade.CERTAIN, "rank_crashed", tag="memory"),
    # cuCtxSynchronize: uncorrectable ECC error encountered (CUDA error 214)
    row(r"\(CUDA error (?:214|220)\)", "gpu_fault", Grade.CERTAIN),
    # a rank wants GPU 8, and this node shows 4: more ranks than GPUs
    row(r"a rank wants GPU \d+, and this node shows \d+|rank \d+ of this node has no GPU", "gpu_mapping",
        Grade.CERTAIN),
    # /opt/nccl/lib/libnccl.so.2 lacks ncclCommInitRankConfig: it is no NCCL that can be driven
    row(r"it is no NCCL that can be driven|^cannot open libnccl:", "version_mismatch", Grade.CERTAIN,
        meaning="the copy of NCCL on this node cannot be used", look="ldconfig -p | grep libnccl"),
    # rank 3 of 8: the launcher started other ranks than requested
    row(r"the launcher started other ranks|no rank: neither the parent nor", "launcher_mismatch", Grade.CERTAIN,
        "rendezvous_misconfig"),
    # filtered: 10.1.0.3 port 41234 from 10.1.0.1: timed out
    row(r"^filtered: \S+ port \d+ from", "firewall", Grade.LIKELY, "routing", tag="connect"),
    # refused: 10.1.0.3 port 41234 from 10.1.0.1: Connection refused
    row(r"^refused: \S+ port \d+ from", "firewall", Grade.LIKELY, "rank_crashed", tag="connect",
        meaning="connections are refused although the other node listens: a firewall rejects them with a reset"),
    # unroutable: 10.1.0.3 port 41234 from 10.1.0.1: No route to host
    row(r"^unroutable: \S+ port \d+ from", "routing", Grade.LIKELY, "firewall", "wrong_nic", tag="connect"),
    # node02 closed the connection in the middle
    row(r"^\S+ (?:closed the connection in the middle|gave up; it(?: says itself why|s own result has the reason))|"
        r"^the connection was cut:",
        "rank_crashed", Grade.ECHO, "firewall", tag="gone"),
)  # fmt: skip
