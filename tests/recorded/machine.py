"""What a node says of the machine itself: a board with two processors for eight GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.machine import MACHINE
from ncheck.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host

KERNEL = "5.15.0-105-generic"


def machine_replies(host: Host) -> dict[str, Reply]:  # noqa: ARG001  all are alike
    """Return the machine, by source key."""
    answer: dict[str, JsonValue] = {
        "kernel": KERNEL, "architecture": "x86_64", "cpu": "Intel(R) Xeon(R) Platinum 8468", "sockets": 2, "cores": 96,
        "threads": 192, "numa_nodes": 2, "memory": 2163873042432, "vendor": "Supermicro",
        "product": "SYS-821GE-TNHR", "image": None, "bios": "2.1", "nvme_drives": 5,
        "container_toolkit": "1.16.2",
    }  # fmt: skip
    return {MACHINE.key: Reply(Status.OK, value=answer, seconds=0.02)}
