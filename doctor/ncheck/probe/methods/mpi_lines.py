"""The plan's mpirun line for a step of the probe: its maker, network and options; the step's hosts and program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.facts.login import IdentityFacts
from ncheck.local_host import read_local_host
from ncheck.plan.launch import NoLineError
from ncheck.plan.plan import mpi_launch, mpi_line

if TYPE_CHECKING:
    from ncheck.facts.probe import Step
    from ncheck.local_host import LocalHost
    from ncheck.plan.launch import Launch
    from ncheck.probe.methods.method import Ground


_RUN = 'exec "$NCHECK_PROGRAM" "$@"'


def why_no_line(ground: Ground) -> str:
    """Say why no mpirun of this machine can start ranks on these nodes; "" where one can."""
    try:
        starter = mpi_line(launch_of(ground, this_head(ground))).program
    except NoLineError as error:
        return f"there is no mpirun line: {error}"
    return "" if shutil.which(starter) else f"{starter} is not on this machine; type it where you would type {starter}"


def launch_of(ground: Ground, head: LocalHost | None) -> Launch:
    """Return what the plan's mpirun line is made of, typed on this head. Raises NoLineError."""
    cluster = ground.cluster
    root = any(identity.user_id == 0 for identity in cluster.connected_facts(IdentityFacts).values())
    taking_part = cluster.subset(ground.nodes)
    return mpi_launch(taking_part, ground.settings, user_is_root=root, local_host=head)


def this_head(ground: Ground) -> LocalHost | None:
    """Return the machine that ncheck runs on, where its lines are typed."""
    return read_local_host(ground.settings, os.environ)


def line_for(
    ground: Ground, launch: Launch, step: Step, program: tuple[str, ...], own: Mapping[str, Mapping[str, str]]
) -> tuple[str, ...]:
    """Return the command that starts a step's ranks; `own` are variables of single nodes. Raises NoLineError."""
    hosts = dict(
        zip((node.name for node in ground.cluster.nodes if node.name in ground.nodes), launch.hosts, strict=True)
    )
    seats = tuple(
        replace(hosts[node], slots=ranks, own={**hosts[node].own, **own.get(node, {})})
        for node, ranks in zip(step.group, step.ranks, strict=True)
    )
    return mpi_line(replace(launch, hosts=seats, program=program)).argv


def started_by(paths: Mapping[str, str], rest: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Return the words that start a program that lies at `paths` (node to path), and the variables that they need."""
    if len(set(paths.values())) == 1:
        return (next(iter(paths.values())), *rest), {}
    return ("sh", "-c", _RUN, "sh", *rest), {node: {"NCHECK_PROGRAM": path} for node, path in paths.items()}
