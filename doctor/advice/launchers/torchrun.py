"""torchrun's lines: ranks meet at an address, by the nodes' own numbers.

Its c10d rendezvous would be one line for all nodes. But there a node takes itself for the host of the meeting only if
its own name leads to that address (never so with 127.0.1.1 in /etc/hosts, nor on a second card), and the ranks are told
the host's name, which all others would have to resolve (torch source, torch/distributed/elastic/rendezvous; with 2.13
and 127.0.1.1 on both of two hosts, c10d ended with a time-out where these lines ran).
"""

from __future__ import annotations

from doctor.advice.launch import Host, Launch, Line, node_by_node, script


def torchrun_line(launch: Launch) -> Line:
    """Return the line of each node; for one node alone it needs no meeting."""
    program = script(launch.program, module="-m", bare="--no-python")

    def words(rank: int, host: Host) -> list[str]:
        meeting = ["--standalone"]
        if launch.several:
            meeting = [f"--nnodes={len(launch.hosts)}", f"--node-rank={rank}"]
            meeting += [f"--master-addr={launch.meeting}", f"--master-port={launch.meeting_port}"]
        return [*launch.environment_of(host), "torchrun", *meeting, f"--nproc-per-node={host.slots}", *program]

    return node_by_node(launch, words)
