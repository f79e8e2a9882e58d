"""NC753: GPUs with a slow link to the host."""

from __future__ import annotations

from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_host_link_slow import gpu_host_link_slow

from .tested_gpus import gpu, nodes


def test_a_slow_direction_is_named() -> None:
    (found,) = judge([gpu_host_link_slow], nodes(n1=(gpu(0), gpu(1), gpu(2, to_host=12.5)))).findings
    assert found.evidence == ("0000:02:00.0: GPU to host 12.5 GB/s, the usual is 25 (0.50)",)
    assert judge([gpu_host_link_slow], nodes(n1=(gpu(0), gpu(1), gpu(2)))).findings == []
