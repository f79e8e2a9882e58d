"""accelerate's lines: its number of processes is that of the whole job, the same on each node."""

from __future__ import annotations

from doctor.advice.launch import Host, Launch, Line, node_by_node, script


def accelerate_line(launch: Launch) -> Line:
    """Return the line of each node. Only with --multi_gpu it starts more than one process, on CPUs too."""
    launch.alike("accelerate", "--num_processes")
    gpus = ["--multi_gpu"] if launch.ranks > 1 else []
    program = script(launch.program, module="--module", bare="--no_python")

    def words(rank: int, host: Host) -> list[str]:
        size = ["--num_machines", str(len(launch.hosts)), "--num_processes", str(launch.ranks)]
        meeting = []
        if launch.several:
            meeting = ["--machine_rank", str(rank), "--main_process_ip", launch.meeting]
            meeting += ["--main_process_port", str(launch.meeting_port)]
        return [*launch.environment_of(host), "accelerate", "launch", *gpus, *size, *meeting, *program]

    return node_by_node(launch, words)
