"""Variables with a slip in their names, which nothing reads: on launch lines in logs, and as UCX says of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncheck.expression import expression
from ncheck.nccl.variables import not_read
from ncheck.triage.signature import Detector

# NCCL version 2.21.5+cuda12.4
_VERSION = expression(r"\bNCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})\b")

# mpirun -np 16 -x NCCL_IB_HCAS=mlx5_0 python train.py | export TORCH_NCCL_BLOCKING_WAITS=1
_SET = expression(r"(?<![\w-])((?:TORCH_)?NCCL_[A-Z0-9_]{2,80}|(?:GLOO|HOROVOD)_[A-Z0-9_]{2,80})=")

# parser.c:2033 UCX  WARN  unused environment variable: UCX_NET_DEVICE (maybe: UCX_NET_DEVICES?)
_OF_UCX = expression(r"\b(UCX_[A-Z0-9_]{1,80}) \(maybe: (UCX_[A-Z0-9_]{1,80})")

_MOST = 3


def names_note(texts: Iterable[str]) -> str:
    """Return which variables are set and have no effect, "" for none.

    `texts` are lines of logs, command lines, and variables as "NAME=value". Of NCCL nothing is said unless one of them
    names its version.
    """
    lines = list(texts)
    version = next((match[1] for line in lines if (match := _VERSION.search(line))), "")
    slips = list(dict.fromkeys((*_slips(lines, version), *(f"{one}: {near} is meant" for one, near in _ucx(lines)))))
    more = f"; and {len(slips) - _MOST} more" if len(slips) > _MOST else ""
    return f"without effect: {'; '.join(slips[:_MOST])}{more}" if slips else ""


def _slips(lines: Iterable[str], version: str) -> Iterator[str]:
    names = dict.fromkeys(name for line in lines for name in _SET.findall(line))
    return (f"{found.name}: {found.why}" for found in not_read(names, version) if found.mistaken)


def _ucx(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    return (pair for line in lines if "UCX_" in line for pair in _OF_UCX.findall(line))


DETECTORS: tuple[Detector, ...] = ()
WORDS = ("export nccl_", "export torch_nccl_", "export gloo_", "export horovod_", "(maybe: ucx_")
