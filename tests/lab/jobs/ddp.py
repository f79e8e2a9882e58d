"""A training with DDP in which the ranks have different numbers of batches: TROUBLE=name@rank:step, as in train.py.

The rank leaves the loop at that step: "destroy" ends its process group and goes on, "broadcast" waits for the last
weights of rank 0.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path

warnings.simplefilter("ignore")  # torch misses numpy, and says so

import torch  # noqa: E402
from torch import distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

RANK = int(os.environ["RANK"])
TROUBLE, _, WHERE = os.environ["TROUBLE"].partition("@")
WHO, FROM = (int(number) for number in WHERE.split(":"))

Path(f"/run/job/rank{RANK}.pid").write_text(f"{os.getpid()}")
distributed.init_process_group("gloo", timeout=timedelta(minutes=30))
model = DistributedDataParallel(torch.nn.Linear(256, 256))
for step in range(10**6):
    if RANK == WHO and step == FROM:
        break
    model(torch.ones(8, 256)).sum().backward()
    time.sleep(0.05)
    sys.stdout.write(f"[rank{RANK}]: step {step}\n")
    sys.stdout.flush()
if TROUBLE == "broadcast":
    distributed.broadcast(torch.ones(8), src=0)
distributed.destroy_process_group()
time.sleep(10**6)  # it packs its results
