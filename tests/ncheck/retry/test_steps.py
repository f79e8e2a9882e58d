"""How far a job came, in the forms of the frameworks."""

from __future__ import annotations

import pytest
from ncheck.retry.steps import furthest


@pytest.mark.parametrize(("log", "step"), [
    ("Epoch: [0][ 20/625]  Time  1.4  Loss 6.9\nEpoch: [0][ 40/625]  Loss 6.8\n", (0, 40)),
    ("iteration       10/  500000 | consumed samples:  5120 | lm loss: 1.1E+01\n", (0, 10)),
    ("INFO:root:Epoch[2] Batch [20] Speed: 26.81 samples/sec accuracy=0.1\n", (2, 20)),
    ("epoch 1 step 900 loss 2.0\nepoch 2 step 5 loss 1.9\n", (2, 5)),
    ("step=7, loss=0.3\nresumed\nstep=3, loss=0.3\n", (0, 7)),
    ("Iter #3: 172.3 img/sec per GPU\n", (0, 3)),
    ("step 1 of 4: install the driver\nepoch 0.5 of a run\nlearning from step 3\n", None),
    ("", None),
])  # fmt: skip
def test_the_furthest_step_is_read_beside_a_loss_or_a_speed(log: str, step: tuple[int, int] | None) -> None:
    assert furthest(log.splitlines()) == step
