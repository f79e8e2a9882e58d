"""NCCL's version in logs and in lists of packages."""

from __future__ import annotations

import pytest
from ncheck.parse.nccl_version import parse_log, parse_packages


@pytest.mark.parametrize(("text", "manager", "found", "version", "cuda"), [
    ("ii  libnccl2:amd64  2.25.1-1+cuda12.8  amd64\n", "dpkg", {"libnccl2": "2.25.1-1+cuda12.8"}, "2.25.1", "12.8"),
    ("libnccl-dev/now 2.16.5-1+cuda11.8 amd64 [installed,local]\n", "dpkg", {"libnccl-dev": "2.16.5-1+cuda11.8"},
     "2.16.5", "11.8"),
    ("Package: libnccl2\nVersion: 2.4.8-1+cuda10.1\nPriority: optional\n", "dpkg", {"libnccl2": "2.4.8-1+cuda10.1"},
     "2.4.8", "10.1"),
    ("libnccl-2.23.4-1+cuda12.6.x86_64\n", "rpm", {"libnccl": "2.23.4-1+cuda12.6"}, "2.23.4", "12.6"),
    ("libnccl.x86_64     2.23.4-1+cuda12.6     @cuda\n", "rpm", {"libnccl": "2.23.4-1+cuda12.6"}, "2.23.4", "12.6"),
    ("nvidia-nccl-cu12         2.25.1\n", "pip", {"nvidia-nccl-cu12": "2.25.1"}, "2.25.1", "12"),
    ("nvidia-nccl-cu11==2.14.3\n", "pip", {"nvidia-nccl-cu11": "2.14.3"}, "2.14.3", "11"),
    ("Name: nvidia-nccl-cu13\nVersion: 2.28.3\n", "pip", {"nvidia-nccl-cu13": "2.28.3"}, "2.28.3", "13"),
    ("nccl            2.24.3.1      hb92ee24_0    conda-forge\nnvidia-nccl-cu12  2.21.5  pypi_0  pypi\n", "conda",
     {"nccl": "2.24.3.1", "nvidia-nccl-cu12": "2.21.5"}, "2.24.3.1", None),
    ("ii  libvncclient1:amd64  0.9.14+dfsg-1  amd64  VNC\n", "dpkg", {}, None, None),
])  # fmt: skip
def test_each_manager_names_its_nccl(
    text: str, manager: str, found: dict[str, str], version: str | None, cuda: str | None
) -> None:
    packages = parse_packages(text)
    assert packages is not None
    assert (packages.manager, packages.found, packages.version_and_cuda) == (manager, found, (version, cuda))


@pytest.mark.parametrize("text", ["", "hi there 2.4 amd64\n", "ii  zlib1g  1:1.3.1-1  amd64\n", "numpy 1.26.4\n"])
def test_a_list_without_nccl_is_not_a_list_of_packages(text: str) -> None:
    assert parse_packages(text) is None


@pytest.mark.parametrize(("line", "version"), [
    ("h1:5:5 [0] NCCL INFO NCCL version 2.26.5+cuda12.9", "2.26.5+cuda12.9"),
    ("RuntimeError: NCCL error, unhandled system error, NCCL version 2.14.3.", "2.14.3"),
    ("NCCL version 2.8.3+cudaCUDA_MAJOR.CUDA_MINOR", "2.8.3+cudaCUDA_MAJOR.CUDA_MINOR"),
    ("RCCL version 2.18.6+hip6.0 HEAD:abc", "2.18.6+hip6.0"),
    (">>> torch.cuda.nccl.version()\n(2, 24, 3)\n", "2.24.3"),
    ("$ python -c 'import torch; print(torch.cuda.nccl.version())'\n2708\n", "2.7.8"),
])  # fmt: skip
def test_a_log_names_its_version(line: str, version: str) -> None:
    assert parse_log(line).versions == (version,)


def test_a_log_of_nccl_may_tell_no_version() -> None:
    log = parse_log("h1:5:5 [0] NCCL INFO Bootstrap : Using ens3:10.1.1.1<0>\n")
    assert (log.versions, log.cuda_driver, log.spoken) == ((), None, True)
