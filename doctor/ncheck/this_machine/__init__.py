"""The machine that runs ncheck: its addresses and user, the programs that it runs, its own ssh and Slurm."""

from __future__ import annotations
