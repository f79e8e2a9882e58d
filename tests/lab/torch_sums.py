"""Run by torchrun on lab hosts: gloo sums 8 bytes and then 8 MiB over all ranks."""

import gc
import socket
import sys
import warnings
from datetime import timedelta

warnings.simplefilter("ignore")  # torch misses numpy, and says so
gc.disable()  # a tenth of what torch's import takes, and these are another
sys.modules.update(dict.fromkeys(("numpy", "pynvml")))  # type: ignore[arg-type]  # None: not installed

import torch  # noqa: E402
from torch import distributed  # noqa: E402

distributed.init_process_group("gloo", timeout=timedelta(seconds=int(sys.argv[1])))
rank, ranks = distributed.get_rank(), distributed.get_world_size()
for count in (1, 1 << 20):
    sums = torch.full((count,), float(rank + 1), dtype=torch.float64)
    distributed.all_reduce(sums)
    assert sums.eq(ranks * (ranks + 1) / 2).all(), "a wrong sum"
sys.stdout.write(f"rank {rank} of {ranks} on {socket.gethostname()}: {sums.numel() * 8} bytes\n")
distributed.destroy_process_group()
