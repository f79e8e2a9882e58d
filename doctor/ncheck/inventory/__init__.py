"""The list of nodes: host files, -H, Slurm, and the list of good nodes that is written."""
