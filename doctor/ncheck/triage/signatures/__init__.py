"""All signatures of log lines, a module per program.

Imported only when there is a log to read: there are hundreds.
"""

from __future__ import annotations

from ncheck.triage.signature import Signature
from ncheck.triage.signatures import (
    engines,
    frameworks,
    gpu,
    infiniband,
    machine,
    mpi,
    nccl,
    network,
    probe,
    program,
    scheduler,
    torch,
)

# Of several clues of one line that are equally sure, the first in this order decides the wording.
MODULES = (nccl, gpu, infiniband, engines, network, torch, frameworks, mpi, scheduler, machine, probe, program)
SIGNATURES: tuple[Signature, ...] = tuple(signature for module in MODULES for signature in module.SIGNATURES)
