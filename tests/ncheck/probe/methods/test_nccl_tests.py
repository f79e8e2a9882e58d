"""nccl-tests is told how often to repeat, and never so often that it could not end in its time."""

from __future__ import annotations

import pytest
from ncheck.probe.methods.driver import GIB, MIB
from ncheck.probe.methods.nccl_tests import options
from ncheck.probe.node_result import Method, Stage, Step


@pytest.mark.parametrize(
    ("repeats", "rate", "told"),
    [
        (5, 5e10, 5),
        (1, 5e10, 1),
        (50, 5e10, 50),
        (500, 5e10, 169),  # one takes 0.09 s, and half of 30 s is for measuring
        (500, 1e8, 5),
    ],
)
def test_it_repeats_as_wanted_as_far_as_there_is_time(repeats: int, rate: float, told: int) -> None:
    step = Step(1, Stage.ALL, Method.NCCL_TESTS, ("n1", "n2"), (8, 8), (MIB, 32 * MIB, GIB), repeats=repeats)
    assert options(step, rate, 30.0) == (
        "-b", "1048576", "-e", "1073741824", "-f", "32", "-n", str(told), "-w", "1", "-c", "1",
    )  # fmt: skip
