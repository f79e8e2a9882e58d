"""The command lines of ncheck that a finding suggests: with the nodes and the login options of this run."""

from __future__ import annotations

import shlex

from ncheck.settings import Settings

NODES = "nodes.txt"  # what stands for this run's nodes in a suggested command


def with_nodes_of_run(line: str, settings: Settings) -> str:
    """Return a suggested `ncheck ... nodes.txt ...` with the nodes of this run and its login options; others as is."""
    words = line.split(" ")
    if words[0] != "ncheck" or NODES not in words:
        return line
    at = words.index(NODES)
    options = [shlex.join((flag, value)) for flag, value in _login(settings).items() if flag not in words]
    return " ".join([*words[:at], *_nodes(settings), *options, *words[at + 1 :]])


def _nodes(settings: Settings) -> list[str]:
    if settings.hosts:
        return [shlex.join(("-H", settings.hosts))]
    if settings.slurm or (settings.via == "srun" and not settings.nodes_file):
        return ["--slurm"]
    return [NODES if settings.nodes_file in (None, "-") else shlex.quote(settings.nodes_file)]


def _login(settings: Settings) -> dict[str, str]:
    """Return the options without which the nodes cannot be logged in to as in this run."""
    transport = "" if settings.transport == "auto" else settings.transport
    values = {
        "-p": settings.port, "-l": settings.user, "-i": settings.identity, "-F": settings.ssh_config,
        "--transport": transport, "--rsh": settings.environment.rsh,
        "--via": "" if settings.via == "ssh" else settings.via,
    }  # fmt: skip
    return {flag: str(value) for flag, value in values.items() if value}
