"""The reports of Horovod, torch, vLLM and DeepSpeed, through `ncheck read versions`."""

from __future__ import annotations

from ncheck.read.text import read_text


def test_the_build_of_horovod() -> None:
    text = "Horovod v0.27.0:\n\nAvailable Frameworks:\n    [X] PyTorch\n\nAvailable Controllers:\n    [ ] MPI\n\n"
    text += "Available Tensor Operations:\n    [X] NCCL\n    [ ] CCL\n"
    assert read_text("versions", text) == {
        "format": "horovod_check_build", "horovod": "0.27.0", "frameworks": {"PyTorch": True},
        "controllers": {"MPI": False}, "operations": {"NCCL": True, "CCL": False}, "error": None,
    }  # fmt: skip


def test_the_reports_of_frameworks() -> None:
    vllm = "PyTorch version              : 2.7.0+cu126\nCUDA used to build PyTorch   : 12.6\n"
    vllm += "Nvidia driver version        : 570.86.10\n"
    assert [read_text("versions", vllm)[key] for key in ("pytorch", "driver")] == ["2.7.0+cu126", "570.86.10"]
    torch = "PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\nROCM used to build PyTorch: N/A\n\n"
    torch += "OS: Debian GNU/Linux 12 (x86_64)\nPython version: 3.11.2 (64-bit runtime)\nIs CUDA available: True\n"
    torch += "CUDA runtime version: Could not collect\nNvidia driver version: 550.90.12\n"
    assert read_text("versions", torch) == {
        "format": "torch_collect_env", "pytorch": "2.6.0+cu124", "cuda_build": "12.4", "rocm_build": "N/A",
        "cuda_runtime": "Could not collect", "driver": "550.90.12", "os": "Debian GNU/Linux 12 (x86_64)",
        "python": "3.11.2 (64-bit runtime)", "is_cuda_available": "True",
    }  # fmt: skip
    deepspeed = "fused_adam ............. [NO] ....... [OKAY]\ntorch version .................... 2.6.0+cu124\n"
    deepspeed += "deepspeed info ................... 0.16.4, unknown, unknown\n"
    deepspeed += "torch cuda version ............... 12.4\n"
    deepspeed += "torch hip version ................ None\nnvcc version ..................... 12.2\n"
    deepspeed += "deepspeed wheel compiled w. ...... torch 2.6, cuda 12.4\n"
    assert read_text("versions", deepspeed) == {
        "format": "ds_report", "torch": "2.6.0+cu124", "deepspeed": "0.16.4", "torch_cuda": "12.4", "nvcc": "12.2",
        "hip": None, "wheel": "torch 2.6, cuda 12.4", "npu": None, "cann": None, "shm_gb": None,
        "ops": {"fused_adam": ["NO", "OKAY"]}, "mismatch": "nvcc 12.2 vs torch cuda 12.4",
    }  # fmt: skip


def test_an_op_report_of_deepspeed_without_versions_still_lists_the_ops() -> None:
    text = "DeepSpeed C++/CUDA extension op report\nninja .................. [OKAY]\n"
    text += "transformer_inference .. [NO] ....... [OKAY]\n"
    record = read_text("versions", text)
    assert (record["format"], record["deepspeed"], record["ops"]) == (
        "ds_report", None, {"transformer_inference": ["NO", "OKAY"]},
    )  # fmt: skip
