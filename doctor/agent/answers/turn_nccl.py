"""This node's ranks of one NCCL all-reduce: started, heard to their end, and what they leave behind removed."""

READS = (
    "one process a GPU, of the job's python3, run with -B -S -c: libcuda.so.1 and the libnccl that the job loads",
    "/dev/shm/nccl-*: what its ranks leave there is removed",
)


def answer(sources, arguments, timeout):
    """Return this node's part: see answers/__init__.py."""
    raise NotImplementedError
