"""Paddle's lines. Each node is told its own address: otherwise Paddle takes the one that the host's name leads to, and
with 127.0.1.1 there no node takes itself for the master, and all wait (Paddle source, distributed/launch; 3.3.1 did).

A number of processes is right whichever GPUs are shown: --devices takes the words of CUDA_VISIBLE_DEVICES alone, and
stops at one that is not among them (the same source, context/device.py).
"""

from __future__ import annotations

from doctor.advice.launch import Host, Launch, Line, NoLineError, interpreter, node_by_node, script


def paddle_line(launch: Launch) -> Line:
    """Return the line of each node. Raises NoLineError for IPv6: Paddle parts address and port at the first colon."""
    if launch.several and any(":" in address for address in launch.addresses):
        raise NoLineError("Paddle's --master takes no IPv6 address, and the nodes meet by IPv6 only")
    program = script(launch.program, module="", bare="")

    def words(rank: int, host: Host) -> list[str]:
        start = [*launch.environment_of(host), interpreter(launch.program), "-m", "paddle.distributed.launch"]
        meeting = []
        if launch.several:
            meeting = ["--master", f"{launch.meeting}:{launch.meeting_port}", "--nnodes", str(len(launch.hosts))]
            meeting += ["--rank", str(rank), "--host", host.address]
        return [*start, *meeting, "--nproc_per_node", str(host.slots), *program]

    return node_by_node(launch, words)
