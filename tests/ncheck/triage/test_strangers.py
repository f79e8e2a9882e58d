"""Logs of programs that nobody here wrote: what their forms say, in the real form of each program."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ncheck.triage.causes import UNKNOWN
from ncheck.triage.log_reading import trouble_at_the_end
from ncheck.triage.logs import LogReport, examine_logs


def report(folder: Path, *lines: str) -> LogReport:
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return examine_logs([str(path)], io.BytesIO())


def first(folder: Path, *lines: str) -> str:
    found = report(folder, *lines).diagnoses
    return found[0].cause if found else ""


# Lines whose form alone says that they report an error: the words are of no program that is known.
BY_FORM = (
    "E0605 17:54:16.878770 178707 frobnicator.cpp:198] Could not frob the widget 0x7f56e6600000",
    "F20250605 17:54:16.878770 178707 frobnicator.cpp:198] Widget table overflow",
    "E0704 12:00:00.000000       1 reflector.go:127] pkg/mod: cannot list the widgets",
    "[rank3]:[E605 17:54:16.878770124 Frob.cpp:616] [Rank 3] the widget did not answer",
    "[ERROR] FROB(2717288,python3):2025-07-23-03:47:57.070.463 [frob.cc:100] [2717288][Frob][Listen] widget fail.",
    "[2025-07-23 03:47:57] [error] [frob.c:12] no widget for slot 4",
    "2025:08:14-14:34:47:(19220) |FROB_ERROR| comm_selector.cpp:57 create: condition frob_data was not met",
    "[1744331142.028115] [gpu51:2802608:3]      frob.c:1903 UCX  ERROR   no widget for rc_mlx5/mlx5_2:1",
    "frobfabric:85:1747438790::core:core:frob():1392<critical> frob: no widget",
    "(EngineCore_0 pid=19220) ERROR 08-14 14:34:47 [core.py:684] EngineCore could not frob.",
    "2025-07-23 03:47:57,070 - trainer.frob - ERROR - no widget for slot 4",
    "2025-07-23 03:47:57.070 | CRITICAL | frob.main:start:12 - no widget for slot 4",
    "ERROR:frob.agent:no widget for slot 4",
    'time="2025-07-23T03:47:57Z" level=error msg="no widget for slot 4"',
    '{"level":"fatal","ts":1753242477.07,"msg":"no widget for slot 4"}',
    "EI0077: 2024-08-05-18:15:21.270.506 The widget did not answer. Reason: unknown",
    "[ERROR] 2024-08-05-18:15:21 (PID:12, Device:0, RankID:-1) ERR02200 FROB call failed",
    "n1:7:8 [0] transport/frob.cc:12 NCCL WARN Frob: no widget for peer 3",
    "CRITICAL ** frob: no widget",
)


@pytest.mark.parametrize("line", BY_FORM, ids=[line[:50] for line in BY_FORM])
@pytest.mark.parametrize("around", [(), ("hello", "world")], ids=["alone", "among other lines"])
def test_a_line_in_the_form_of_an_error_is_an_error_whatever_its_program_is(
    tmp_path: Path, line: str, around: tuple[str, ...]
) -> None:
    (found,) = report(tmp_path, *around, line, *around).diagnoses
    assert (found.cause, found.confidence, [one.line for one in found.evidence]) == (UNKNOWN, 0.3, [1 + len(around)])
    steps = ("step 1 loss 0.5", "step 2 loss 0.4")
    assert report(tmp_path, line, *steps).healthy


# What only looks like it: counts of no errors, names of settings, losses that are called errors, retries that went
# well, and lines that these programs print on every healthy start.
QUIET = (
    "validating:  57%|#### | 57/100 [00:10<00:08, error: 0]",
    "Epoch 3 | train error 0.123 | test error 0.456",
    "epoch=3 error=0.0123 val_error=0.0456",
    "errors=0 warnings=0",
    "ERROR: 0, WARNING: 0",
    "ERRORS: 0",
    "0 ERROR(s) found",
    "no ERROR found",
    "mean squared error: 0.0123",
    "Mean Absolute Error = 3.21",
    "export NCCL_ASYNC_ERROR_HANDLING=1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING: 1",
    "export NCCL_DEBUG=ERROR",
    "LOGLEVEL=ERROR",
    "log level: ERROR",
    "--log-level ERROR --deepspeed",
    "log_level='ERROR'",
    "+ set -o errexit",
    "INFO attempt 2 of 5 succeeded after an ERROR",
    "2025-07-23 03:47:57,070 - trainer - INFO - the request succeeded after 2 retries (last error: 503)",
    "E0000 00:00:1731326400.123456  77 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register",
    "2024-01-01 12:00:00.000001: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cu",
    "2024-01-01 12:00:00.000001: E external/local_xla/xla/stream_executor/cuda/cuda_blas.cc:1518] Unable to register cuBLAS",
    "I0605 17:54:16.878770 178707 transfer_engine.cpp:86] Transfer Engine uses address 10.1.0.1 and port 16490",
    "W0605 17:54:16.878770 178707 worker_pool.cpp:86] retry 1 of 8 went well",
    "[INFO] HCCL(1595259,alltoall_test):2026-01-06-15:38:29.881 [externalinput.cc:598] HCCL_EXEC_TIMEOUT set",
    "2025:08:14-14:34:47:(19220) |CCL_WARN| value of CCL_ATL_TRANSPORT changed to be ofi (default:mpi)",
    "libfabric:85:1747438790::core:core:fi_getinfo_():1392<info> fi_getinfo: provider shm returned -61",
    "n1:7:8 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
)  # fmt: skip


@pytest.mark.parametrize("line", QUIET, ids=[line[:60] for line in QUIET])
def test_a_line_that_only_looks_like_an_error_is_none(tmp_path: Path, line: str) -> None:
    assert trouble_at_the_end([line]) == ""
    assert [found.cause for found in report(tmp_path, line).diagnoses] == []
    assert trouble_at_the_end(["step 1 loss 0.5", "step 2 loss 0.4", line]) == ""
