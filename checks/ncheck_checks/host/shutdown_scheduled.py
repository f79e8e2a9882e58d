"""A node has a scheduled shutdown

## What it finds
Nodes on which systemd has scheduled a shutdown (`shutdown -r +40`, `shutdown -h 22:00`): to power off, to reboot, to
halt. The time left is by the node's own clock. More than four hours ahead it is a warning. What nobody schedules this
way is not seen: a reboot that someone types later, one by the management controller (BMC), by a cloud, by
unattended-upgrades. A container without systemd does not show what its host has scheduled.

## Why it matters
The node goes down in the middle of the job. The other ranks wait for it until NCCL's timeout, and all work since the
last checkpoint is lost. Five minutes before, systemd refuses new logins, so launchers fail, too.

## What to type
`cat /run/systemd/shutdown/scheduled` on the node shows the time in microseconds since 1970, and the message to its
users. Leave the node out, or wait until it is back. Its administrator can cancel the shutdown: `sudo shutdown -c`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.maintenance import ShutdownFacts
from ncheck.text import span, utc

SOON = 4 * 3600.0  # seconds


@cluster_check("NC659", Severity.ERROR, ShutdownFacts, alone=True)
def shutdown_scheduled(cluster: Cluster) -> Iterator[Problem]:
    alike: dict[tuple[str, str, str], dict[str, float]] = {}  # that are scheduled for the same minute: the time left
    for node, facts in cluster.facts(ShutdownFacts).items():
        one = facts.scheduled
        if one and one.left > 0:
            alike.setdefault((one.mode, utc(one.at), one.message), {})[node] = one.left
    for (mode, at, message), nodes in alike.items():
        what, left = "power-off" if mode == "poweroff" else mode or "shutdown", min(nodes.values())
        yield Problem(
            f"a {what} is scheduled for {at}, in {span(left)}",
            "cat /run/systemd/shutdown/scheduled",
            (f"message to the users: {message}",) if message else (),
            nodes=tuple(nodes),
            look=True,
            summary="a shutdown is scheduled",
            severity=None if left < SOON else Severity.WARNING,
        )
