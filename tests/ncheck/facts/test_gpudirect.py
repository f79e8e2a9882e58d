"""What NCCL looks for before it uses GPUDirect RDMA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.gpudirect import SOURCE, GpuDirectFacts
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

RELEASE, DRIVER = "/proc/sys/kernel/osrelease", "/proc/driver/nvidia/version"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@U16)\n"


def read(answered: Answered, **tree: JsonValue) -> object:
    value: JsonValue = {path.replace("__", "/"): text for path, text in tree.items()}
    return facts_of(answered({SOURCE: Reply(Status.OK, value=value)}), [GpuDirectFacts])[GpuDirectFacts]


@pytest.mark.parametrize(
    ("tree", "facts"),
    [
        (
            {RELEASE: "6.8.0-90-generic\n", DRIVER: OPEN},
            GpuDirectFacts((), peermem=False, open_driver=True, kernel=(6, 8)),
        ),
        (
            {RELEASE: "5.4.0\n", DRIVER: CLOSED, "/sys/kernel/mm/memory_peers/nv_mem/version": "1.3\n"},
            GpuDirectFacts(("nv_mem",), peermem=False, open_driver=False, kernel=(5, 4)),
        ),
        (
            {RELEASE: "5.14.0-503.el9\n", DRIVER: CLOSED, "/sys/module/nvidia_peermem/version": "550.54.15\n"},
            GpuDirectFacts((), peermem=True, open_driver=False, kernel=(5, 14)),
        ),
        ({RELEASE: "6.1.0\n"}, Absent("no NVIDIA driver is loaded")),
        ({}, Unread("/proc/sys/kernel/osrelease could not be read", fix="uname -r")),
        (
            {RELEASE: "6.1.0\n", DRIVER: {"error": "Permission denied"}},
            Unread("/proc/driver/nvidia/version could not be read", fix="cat /proc/driver/nvidia/version"),
        ),
    ],
)
def test_what_is_there_is_read(answered: Answered, tree: dict[str, JsonValue], facts: object) -> None:
    assert read(answered, **tree) == facts


def test_what_is_no_release_is_unread(answered: Answered) -> None:
    assert isinstance(read(answered, **{RELEASE: "Plan 9\n", DRIVER: OPEN}), Unread)
