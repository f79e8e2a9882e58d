"""The oldest driver of each CUDA version."""

from __future__ import annotations

import pytest
from ncheck.parse.cuda_compatibility import needed_driver


@pytest.mark.parametrize(("driver", "cuda", "needed"), [
    ("570.211.01", "13.0", "580.65.06"),
    ("580.65.06", "13.2", ""),
    ("525.60.13", "12.9", ""),
    ("525.60.11", "12.0", "525.60.13"),
    ("450.80.02", "11.8", ""),
    ("440.33", "10.2", ""),
    ("418.39", "10.2", "440.33"),
    ("410.48", "10.1", "418.39"),
    ("410.48", "10.0", ""),
    ("384.81", "9.2", "396.26"),
    ("550.54", "12", ""),
    ("550.54.15", "99.1", ""),
    ("unknown", "12.4", ""),
    ("550.54.15", "", ""),
])  # fmt: skip
def test_a_driver_that_is_too_old_is_told_with_the_one_that_is_needed(driver: str, cuda: str, needed: str) -> None:
    assert needed_driver(driver, cuda) == needed
