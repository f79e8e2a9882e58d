"""OneFlow's lines: its launcher was torch.distributed.launch once, and takes that one's words."""

from __future__ import annotations

from doctor.advice.launch import Host, Launch, Line, interpreter, node_by_node, script


def oneflow_line(launch: Launch) -> Line:
    """Return the line of each node."""
    per_node = launch.alike("OneFlow", "--nproc_per_node")
    program = script(launch.program, module="--module", bare="--no_python")

    def words(rank: int, host: Host) -> list[str]:
        start = [*launch.environment_of(host), interpreter(launch.program), "-m", "oneflow.distributed.launch"]
        size = ["--nproc_per_node", str(per_node), "--nnodes", str(len(launch.hosts)), "--node_rank", str(rank)]
        address = launch.meeting if launch.several else "127.0.0.1"
        return [*start, *size, "--master_addr", address, "--master_port", str(launch.meeting_port), *program]

    return node_by_node(launch, words)
