"""How each means runs a step of the probe: NCCL, nccl-tests, gloo, TCP, RDMA, and who starts the ranks."""

from __future__ import annotations
