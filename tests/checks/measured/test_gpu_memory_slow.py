"""NC752: GPUs with slow memory."""

from __future__ import annotations

from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_memory_slow import gpu_memory_slow

from .tested_gpus import gpu, nodes


def test_a_gpu_with_slow_memory_is_named_and_one_that_only_computes_slowly_is_not() -> None:
    (found,) = judge([gpu_memory_slow], nodes(n1=(gpu(0), gpu(1, fma=1.0), gpu(2, memory=1200.0)))).findings
    assert judge([gpu_memory_slow], nodes(n1=(gpu(0), gpu(1), gpu(2)))).findings == []
    assert found.evidence == ("0000:02:00.0: memory 1200 GB/s, the usual is 1750 (0.69)",)
