"""TensorFlow's lines: TF_CONFIG names every worker's address and which of them this one is."""

from __future__ import annotations

import json

from doctor.advice.launch import Host, Launch, Line, endpoint, node_by_node


def tensorflow_line(launch: Launch) -> Line:
    """Return the line of each node: one worker a node, which takes all of its GPUs."""
    endpoints = [endpoint(address, launch.meeting_port) for address in launch.addresses] if launch.several else []

    def words(rank: int, host: Host) -> list[str]:
        config = {"cluster": {"worker": endpoints}, "task": {"type": "worker", "index": rank}}
        named = [f"TF_CONFIG={json.dumps(config)}"] if endpoints else []
        front = [*launch.environment_of(host), *named] if launch.environment_of(host) or not named else ["env", *named]
        return [*front, *launch.program]

    line = node_by_node(launch, words)
    workers = "1 worker" if len(launch.hosts) == 1 else f"{len(launch.hosts)} workers"
    return Line(line.text, line.reasons, f"{workers}, one a node, which takes all of its GPUs")
