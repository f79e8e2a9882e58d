"""The implementations of MPI and their versions, through `ncheck read versions`."""

from __future__ import annotations

import pytest
from ncheck.read.text import read_text


@pytest.mark.parametrize(("text", "mpi", "version"), [
    ("mpirun (Open MPI) 3.1.6\n", "Open MPI", "3.1.6"),
    ("mpirun.real (OpenRTE) 4.0.3\n", "Open MPI", "4.0.3"),
    ("$ mpirun --version\nmpirun (Open MPI) 5.0.0rc12\n", "Open MPI", "5.0.0rc12"),
    ("mpirun (IBM Spectrum MPI) 10.4.0.06rtm4\n", "Spectrum MPI", "10.4.0.06rtm4"),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240701 (id: 179630d)\n", "Intel MPI", "2021.13"),
    ("HYDRA build details:\n    Version:                                 4.2.3\n", "MPICH", "4.2.3"),
    ("package:Open MPI root@b Distribution\nompi:version:full:4.1.6\n", "Open MPI", "4.1.6"),
    ("Intel(R) MPI Library for Linux* OS, 64-bit applications, Version 5.1  Build 20150717\n", "Intel MPI", "5.1"),
    ("`mpiexec (OpenRTE) 2.0.4.`\n", "Open MPI", "2.0.4"),
    ("[1,2]<stdout>:HYDRA build details:\n[1,2]<stdout>:    Version:      3.4.3\n", "MPICH", "3.4.3"),
    ("MPICH2 Version:     1.5\nMPICH2 Release date: Mon Oct  8 14:00:48 CDT 2012\n", "MPICH", "1.5"),
    ("MVAPICH2 2.3.7 Wed March 02 22:00:00 EST 2022 ch3:mrail\n", "MVAPICH2", "2.3.7"),
    ("MPI VERSION    : CRAY MPICH version 8.1.29.8 (ANL base 3.4a2)\n", "Cray MPICH", "8.1.29.8"),
    ("Microsoft MPI Startup Program [Version 10.1.12498.52]\n", "Microsoft MPI", "10.1.12498.52"),
    ("mpirun: IBM Platform MPI 09.01.04.03 [b9427] Linux x86-64\n", "Platform MPI", "09.01.04.03"),
    ("HYDRA build details: Version: 4.1.2\n", "MPICH", "4.1.2"),
    ("> [1,0]<stdout>:ompi:version:full:1.6\n", "Open MPI", "1.6"),
    (">>>       Open MPI: 1.10.1\nmore\n", "Open MPI", "1.10.1"),
    ("bash: mpirun: command not found\n", None, None),
    ("bash: horovodrun: command not found\n", None, None),
])  # fmt: skip
def test_the_implementation_and_its_version(text: str, mpi: str | None, version: str | None) -> None:
    record = read_text("versions", text)
    assert (record["mpi"], record["version"], bool(record["error"])) == (mpi, version, mpi is None)
