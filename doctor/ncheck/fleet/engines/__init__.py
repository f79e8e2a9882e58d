"""How a node's stream is opened: one file for each engine, and the choice among them.

The engines are ssh (by paramiko or the ssh program), srun in a Slurm allocation, and a command in place of ssh: the
user's (--rsh), or a shell on this machine.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ncheck.fleet.engines.command import LocalEngine, RshEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ncheck.fleet.engine import Engine
    from ncheck.model.node import Node
    from ncheck.settings import Settings


def engines(
    settings: Settings, environ: Mapping[str, str] = os.environ, nodes: Iterable[Node] = ()
) -> Callable[[Node], Engine]:
    """Return a function from a node to its engine. Nothing is connected before it is needed.

    `nodes` are those of the run: a Slurm step is one for them all. Raises SettingsError where the configuration named
    by -F cannot be read, --transport is not available here, or --via srun is given outside of an allocation.
    """
    local = LocalEngine()
    if settings.via == "srun" and not settings.local:
        from ncheck.fleet.engines.srun import SrunEngine

        srun = SrunEngine(nodes, settings, environ)
        return lambda _node: srun
    from ncheck.fleet.engines.ssh import SshEngine  # not by the ranks of a job, which are connected already

    ssh = SshEngine(settings, environ, nodes)
    rsh = RshEngine(lambda node: settings.environment_of(node.name).rsh or "", environ)

    def engine_for(node: Node) -> Engine:
        if node.local:
            return local
        return rsh if settings.environment_of(node.name).rsh else ssh

    return engine_for
