"""The machine, from the answer to the fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.machine import MACHINE, MachineFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]


def read(answered: Answered, **said: JsonValue) -> object:
    value: JsonValue = {"kernel": "6.8.0", "architecture": "aarch64", **said}
    return facts_of(answered({MACHINE: Reply(Status.OK, value=value)}), [MachineFacts])[MachineFacts]


def test_everything_is_read(answered: Answered) -> None:
    numbers: dict[str, JsonValue] = {"sockets": 2, "cores": 96, "threads": 192, "numa_nodes": 2, "memory": 7}
    said: dict[str, JsonValue] = {**numbers, "bios": " 2.1", "nvme_drives": 8}
    facts = read(answered, cpu="X", vendor="NVIDIA", product="DGXH100", image="reg.corp:5000/a/b:1", **said)
    assert facts == MachineFacts("6.8.0", "aarch64", "X", 2, 96, 192, 2, 7, "NVIDIA DGXH100", "a/b:1", "2.1", 8)


@pytest.mark.parametrize(
    ("vendor", "product", "shown"),
    [
        (None, None, ""),
        ("To Be Filled By O.E.M.", "To Be Filled By O.E.M.", ""),
        ("ASUS", "System Product Name", "ASUS"),
        ("HPE", "HPE Cray XD670", "HPE Cray XD670"),
    ],
)
def test_what_the_manufacturer_did_not_write_is_left_out(
    answered: Answered, vendor: str | None, product: str | None, shown: str
) -> None:
    facts = read(answered, vendor=vendor, product=product)
    assert facts == MachineFacts("6.8.0", "aarch64", product=shown)


def test_a_long_release_of_the_container_toolkit_is_cut(answered: Answered) -> None:
    assert read(answered, container_toolkit="1" * 5000) == MachineFacts("6.8.0", "aarch64", container_toolkit="1" * 400)


@pytest.mark.parametrize("image", ["rocm/pytorch:latest", "localhost/rocm/pytorch:latest"])
def test_an_image_has_no_name_of_a_host(answered: Answered, image: str) -> None:
    assert read(answered, image=image) == MachineFacts("6.8.0", "aarch64", image="rocm/pytorch:latest")


@pytest.mark.parametrize("wrong", [{"kernel": ""}, {"kernel": None}, {"cores": "96"}, {"memory": 1.5}, {"cpu": 7}])
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, **wrong), Unread)


def test_an_agent_that_does_not_say_it_is_unread(answered: Answered) -> None:
    assert isinstance(facts_of(answered({}), [MachineFacts])[MachineFacts], Unread)
