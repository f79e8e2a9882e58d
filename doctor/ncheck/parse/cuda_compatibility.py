"""Which driver a program needs that was built for a CUDA version.

From NVIDIA's "CUDA Compatibility", minor version compatibility, and the driver table of the CUDA Toolkit release notes
(13.2), Linux: from CUDA 11 on one driver serves a whole major version; before, each minor version needs its own. 11.0
came with an older driver, and NVIDIA asks for 450.80.02 for all of 11.
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

from __future__ import annotations

from ncheck.expression import expression

OLDEST_DRIVER = {
    "13": "580.65.06",
    "12": "525.60.13",
    "11": "450.80.02",
    "10.2": "440.33",
    "10.1": "418.39",
    "10": "410.48",
    "9.2": "396.26",
    "9.1": "387.26",
    "9": "384.81",
}

# 550.54.15
_DRIVER = expression(r"\d{3,4}(?:\.\d{1,4}){1,3}")

# 12.4
_CUDA = expression(r"(\d{1,2})(?:\.(\d{1,2}))?")


def oldest_driver(cuda: str) -> str:
    """Return the oldest driver for programs of this CUDA version, "" where that is not known."""
    found = _CUDA.match(cuda)
    if not found:
        return ""
    return OLDEST_DRIVER.get(f"{found[1]}.{found[2]}") or OLDEST_DRIVER.get(found[1], "")


def needed_driver(driver: str, cuda: str) -> str:
    """Return the oldest driver for this CUDA version, if the driver is older; "" if it is not, or not known."""
    oldest = oldest_driver(cuda)
    if not oldest or not _DRIVER.fullmatch(driver) or _number(driver) >= _number(oldest):
        return ""
    return oldest


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
