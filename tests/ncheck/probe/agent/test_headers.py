"""What ncheck calls of CUDA, cuBLAS and NVML, by ctypes, is what their public headers say: names, sizes, constants."""

from __future__ import annotations

import ast
import ctypes
import inspect
import io
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pynvml
import pytest
from ncheck.probe.agent import gpu_test
from ncheck.probe.agent.gpu_alone import device, main
from ncheck.probe.agent.gpu_alone.device import Device
from ncheck.probe.agent.nccl_rank import cuda
from ncheck_checks.measured import gpu_slowed_under_load

from .driven_ranks import Standins

FromWheel = Callable[[str, str, str], Path]
CUDA, CUBLAS = "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cublas-cu12==12.0.1.189"
# Bytes of what is no pointer and no enum.
SIZES = {
    "size_t": 8, "CUdeviceptr": 8, "unsigned int": 4, "int": 4, "CUdevice": 4, "unsigned char": 1, "CUresult": 4,
    "cublasOperation_t": 4, "cudaDataType": 4, "cublasComputeType_t": 4, "cublasGemmAlgo_t": 4,
}  # fmt: skip
POINTERS = {"CUcontext", "CUstream", "CUevent", "CUmodule", "CUfunction", "cublasHandle_t", "cudaStream_t"}


@pytest.fixture
def headers(from_wheel: FromWheel) -> str:
    """Return the text of the headers, without comments."""
    text = "".join(
        from_wheel(wanted, f"nvidia/{inside}", f"headers/{wanted}").read_text()
        for wanted, inside in (
            (CUDA, "cuda_runtime/include/cuda.h"),
            (CUDA, "cuda_runtime/include/library_types.h"),
            (CUBLAS, "cublas/include/cublas_api.h"),
        )
    )
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


class Recorded:
    """A library, and how many bytes each argument had in each call."""

    def __init__(self, library: ctypes.CDLL, calls: dict[str, set[tuple[int, ...]]]) -> None:
        self.library, self.calls = library, calls

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(self.library, name)

        def call(*arguments: object) -> int:
            self.calls.setdefault(name, set()).add(tuple(map(size, arguments)))
            return int(function(*arguments))

        return call


def size(argument: object) -> int:
    if isinstance(argument, ctypes._SimpleCData):
        return ctypes.sizeof(argument)
    return 4 if isinstance(argument, int) else 8  # what ctypes makes of it


def declared(headers: str, name: str) -> tuple[int, ...]:
    """Return the bytes of the arguments of a function: "cuMemAlloc(CUdeviceptr *dptr, size_t bytesize)".

    cuda.h declares new functions by their old names: "#define cuMemAlloc cuMemAlloc_v2".
    """
    renamed = re.findall(rf"#define (cu\w+) +(?:__CUDA_API_PT[SD]+Z\()?{name}\b", headers)
    assert renamed or not re.search(rf"#define {name} ", headers)
    plain = renamed[0] if renamed else name
    arguments = re.findall(rf"(?:CUDAAPI|CUBLASWINAPI)\s+{plain}\(([^)]*)\)", headers)[0].split(
        ","
    )  # the old ones follow
    types = [re.sub(r"\w+$", "", one.strip().removeprefix("const ")).strip() for one in arguments]
    return tuple(8 if kind.endswith("*") or kind in POINTERS else SIZES[kind] for kind in types)


def test_each_call_of_cuda_and_cublas_has_the_arguments_of_the_header(
    headers: str, standins: Standins, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = str(standins() / "libcuda.so.1")
    calls: dict[str, set[tuple[int, ...]]] = {}
    load = ctypes.CDLL
    monkeypatch.setattr(cuda, "LIBRARY", library)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Recorded(load(name), calls))
    monkeypatch.setenv("STANDIN_CUDA", f"devices=2,memory={1 << 30}")
    driver = Device()
    context = driver.enter(0)
    monkeypatch.setattr("sys.stdin", io.StringIO('{"turn": true}\n'))  # it may copy at once
    main._Gpu(driver).test({"seconds": 0.1, "blas": [library]}, device.Blas)
    main._pairs(driver)
    driver.zero(driver.memory(8), 8)
    driver.on_device(driver.memory(8), driver.memory(8), 8)
    driver.to_device(driver.memory(8), driver.staging(8), 8)
    assert (driver.driver(), driver.words(999), context) == ("12.8", "unknown error", context)
    assert set(calls) == {
        name
        for module in (cuda, device)
        for name in re.findall(r"[\".](cu(?:blas)?[A-Z][a-z]\w+)[\"(,]", inspect.getsource(module))
    }
    assert calls == {name: {declared(headers, name)} for name in calls}


def constants(module: ModuleType, begin: str) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.startswith(begin)}


def test_the_constants_are_those_of_the_headers(headers: str) -> None:
    ours = {**constants(cuda, "CUDA_"), **constants(device, "CU")}
    assert set(ours) == {
        "CUDA_ERROR_NOT_READY", "CUDA_ERROR_TOO_MANY_PEERS",
        "CUBLAS_OP_N", "CUBLAS_COMPUTE_32F", "CUBLAS_GEMM_DEFAULT", "CUDA_R_16BF", "CUDA_R_32F",
    }  # fmt: skip
    for name, value in ours.items():
        assert {int(one) for one in re.findall(rf"\b{name}\s*=\s*(-?\d+)", headers)} == {value}


def test_what_is_asked_of_nvml_is_what_pynvml_has() -> None:
    ours = constants(gpu_test, "NVML_")
    assert ours == {name: getattr(pynvml, name) for name in ours}
    asked = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(gpu_test)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self._ask"
    ]
    for call in asked:
        name, *arguments = call.args
        assert isinstance(name, ast.Constant)
        inspect.signature(getattr(pynvml, str(name.value))).bind(*arguments)
    assert len(asked) > 10
    assert list(gpu_slowed_under_load._REASONS) == [
        pynvml.nvmlClocksThrottleReasonHwThermalSlowdown, pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
        pynvml.nvmlClocksThrottleReasonHwSlowdown, pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    ]  # fmt: skip
