from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.environment import ENVIRONMENT, EnvironmentFacts, environment
from ncheck.facts.horovod import CHECK_BUILD, HorovodFacts, horovod
from ncheck.facts.interpreter import INTERPRETER, InterpreterFacts, TorchBuild, interpreter
from ncheck.facts.learning import facts_of
from ncheck.facts.limits import LIMITS, LimitsFacts
from ncheck.facts.mpi import MPIEXEC, MPIRUN, REAL_PATH, MpiFacts, mpi
from ncheck.model.evidence import Answer, Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

MISSING = Reply(Status.MISSING)
OPEN_MPI = "mpirun (Open MPI) 5.0.6\n\nReport bugs to https://www.open-mpi.org/community/help/\n"
BUILD = """Horovod v0.28.1:

Available Frameworks:
    [ ] TensorFlow
    [X] PyTorch
    [ ] MXNet

Available Controllers:
    [X] MPI
    [ ] Gloo

Available Tensor Operations:
    [X] NCCL
    [ ] DDL
    [ ] CCL
    [X] MPI
    [ ] Gloo
"""


def said(text: str, exit_status: int = 0, stderr: str = "") -> Reply:
    return Reply(Status.OK, exit_status=exit_status, stdout=text, stderr=stderr)


def value(of: object) -> Reply:
    return Reply(Status.OK, value=of)  # type: ignore[arg-type]


def test_open_mpi_is_read_with_its_real_path(answered: Answered) -> None:
    replies = {MPIRUN: said(OPEN_MPI), REAL_PATH: said("/opt/openmpi/bin/prterun\n")}
    assert mpi(answered(replies)) == MpiFacts("Open MPI", "5.0.6", "/opt/openmpi/bin/prterun")


def test_mpiexec_answers_where_there_is_no_mpirun(answered: Answered) -> None:
    hydra = "HYDRA build details:\n    Version:                                 4.2.3\n"
    assert mpi(answered({MPIRUN: MISSING, MPIEXEC: said(hydra)})) == MpiFacts("MPICH", "4.2.3")


def test_no_mpirun_and_no_mpiexec_is_no_mpi(answered: Answered) -> None:
    fact = mpi(answered({MPIRUN: MISSING, MPIEXEC: MISSING}))
    assert fact == Absent("no mpirun on the PATH of a non-interactive login")


@pytest.mark.parametrize("reply", [said("", 127, "libmpi.so.40: cannot open shared object file"), said("srun 23.02")])
def test_an_mpirun_that_does_not_say_what_it_is_is_unread(answered: Answered, reply: Reply) -> None:
    assert isinstance(mpi(answered({MPIRUN: reply})), Unread)


def test_horovods_build_is_read(answered: Answered) -> None:
    assert horovod(answered({CHECK_BUILD: said(BUILD)})) == HorovodFacts(
        "0.28.1", frozenset({"PyTorch"}), frozenset({"MPI"}), frozenset({"NCCL", "MPI"})
    )


def test_no_horovodrun_and_no_package_is_no_horovod(answered: Answered) -> None:
    asked = value({"path": "/usr/bin/python3", "version": "3.11.2", "packages": {"torch": "2.6.0"}})
    assert horovod(answered({CHECK_BUILD: MISSING, INTERPRETER: asked})) == Absent("Horovod is not installed")


def test_a_horovod_that_is_installed_and_cannot_be_asked_is_unread(answered: Answered) -> None:
    asked = value({"path": "/usr/bin/python3", "version": "3.11.2", "packages": {"horovod": "0.28.1"}})
    fact = horovod(answered({CHECK_BUILD: MISSING, INTERPRETER: asked}))
    assert isinstance(fact, Unread)
    assert fact.reason.startswith("Horovod 0.28.1 is installed")


@pytest.mark.parametrize("reply", [
    said("Horovod v0.28.1:\n\nAvailable Frameworks:\n", 1, "Traceback (most recent call last):\nOSError: x\n"),
    said("Checking whether extension torch was built.\n", 134, "Segmentation fault (core dumped)"),
    said("Horovod v0.28.1:\n"),
])  # fmt: skip
def test_a_check_build_that_crashes_or_stops_half_way_is_no_build(answered: Answered, reply: Reply) -> None:
    assert isinstance(horovod(answered({CHECK_BUILD: reply})), Unread)


def test_a_check_build_that_hangs_is_named(answered: Answered) -> None:
    fact = horovod(answered({CHECK_BUILD: Reply(Status.TIMEOUT, seconds=30)}))
    assert isinstance(fact, Unread)
    assert fact.hung == "horovodrun --check-build"


def test_the_jobs_interpreter_is_read_with_what_lives_in_it(answered: Answered) -> None:
    who = {"path": "/opt/conda/bin/python", "version": "3.11.7", "how": "active conda", "container": "docker"}
    asked = {**who, "packages": {"torch": "2.6.0"}}
    assert interpreter(answered({INTERPRETER: value(asked)})) == InterpreterFacts(
        "/opt/conda/bin/python", "3.11.7", "active conda", {"torch": "2.6.0"}, "docker"
    )


def test_torch_has_the_version_of_its_build_and_libraries_are_no_frameworks(answered: Answered) -> None:
    who = {"path": "/opt/conda/bin/python", "version": "3.11.7", "how": "active conda"}
    packages = {"torch": "2.3.0", "flash-attn": "2.5.8", "nvidia-nccl-cu12": "2.20.5"}
    asked = {**who, "packages": packages, "torch": {"version": "2.3.0+cu121", "cuda": "12.1", "hip": None}}
    assert interpreter(answered({INTERPRETER: value(asked)})) == InterpreterFacts(
        "/opt/conda/bin/python", "3.11.7", "active conda", {"torch": "2.3.0+cu121"},
        libraries={"flash-attn": "2.5.8", "nvidia-nccl-cu12": "2.20.5"}, torch=TorchBuild("2.3.0+cu121", "12.1"),
    )  # fmt: skip


def test_a_torch_whose_version_is_none_is_no_fact(answered: Answered) -> None:
    asked = {**PYTHON, "torch": {"version": "2.3; reboot", "cuda": None, "hip": None}}
    with pytest.raises(ValueError, match="holds no version"):
        interpreter(answered({INTERPRETER: value(asked)}))


@pytest.mark.parametrize("name", ["NCCL_IB_TC;touch /tmp/x", "NCCL_A\n", "$(id)", "a b", "é", "", "1A", "A" * 257])
def test_a_name_that_no_shell_takes_is_no_variable(answered: Answered, name: str) -> None:
    kept = {"NCCL_IB_TC": "106", "OMPI_MCA_btl_tcp_if_include": "eth0", "http_proxy": "a;b"}
    both = {**kept, name: "1"}
    asked = {"variables": both, "job_variables": {name: "2"}, "files": {}, "missing": [name, "NCCL_TOPO_FILE"]}
    read = environment(answered({ENVIRONMENT: value(asked)}))
    assert read == EnvironmentFacts(kept, {}, ("NCCL_TOPO_FILE",))


def test_the_jobs_environment_lies_over_the_logins(answered: Answered) -> None:
    asked = {
        "variables": {"NCCL_DEBUG": "WARN", "NCCL_IB_HCA": "mlx5"},
        "job_variables": {"NCCL_DEBUG": "INFO"},
        "files": {"/etc/nccl.conf": ["NCCL_IB_GID_INDEX=3"], "~/.nccl.conf": None, "/srv/x": {"error": "denied"}},
    }
    assert environment(answered({ENVIRONMENT: value(asked)})) == EnvironmentFacts(
        {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5"},
        {
            "/etc/nccl.conf": ("NCCL_IB_GID_INDEX=3",),
            "~/.nccl.conf": Absent("~/.nccl.conf not found"),
            "/srv/x": Unread("/srv/x: denied"),
        },
    )


def test_unlimited_is_none_and_an_unread_shm_is_not_zero(answered: Answered) -> None:
    asked = {**LIMIT, "open_files": 1024, "shm": {"error": "not mounted"}}
    unread = Unread("/dev/shm: not mounted")  # noqa: S108  it is only named
    facts = facts_of(answered({LIMITS: value(asked)}), (LimitsFacts,))
    assert facts[LimitsFacts] == LimitsFacts(None, unread, open_files=1024)


@pytest.mark.parametrize("reply", [Reply(Status.TIMEOUT, seconds=10), Reply(Status.FAILED, reason="cut")])
def test_no_horovodrun_and_an_interpreter_that_cannot_be_asked_is_not_no_horovod(
    answered: Answered, reply: Reply
) -> None:
    fact = horovod(answered({CHECK_BUILD: MISSING, INTERPRETER: reply}))
    assert isinstance(fact, Unread)
    assert fact.reason.startswith("horovodrun was not found, and whether Horovod is installed is unknown")


PYTHON: dict[str, object] = {"path": "/usr/bin/python3", "version": "3.11.2", "packages": {}}
FACTS = {INTERPRETER: InterpreterFacts, ENVIRONMENT: EnvironmentFacts, LIMITS: LimitsFacts}
LOGIN: dict[str, object] = {"variables": {}, "job_variables": {}, "files": {}}
LIMIT: dict[str, object] = {
    **dict.fromkeys(("memlock", "open_files", "processes", "address_space", "cpu_seconds", "file_size")),
    "shm": {"total": 1, "free": 1},
}


@pytest.mark.parametrize(
    ("source", "whole", "key", "wrong"),
    [
        (INTERPRETER, PYTHON, "path", None),
        (INTERPRETER, PYTHON, "version", ""),
        (INTERPRETER, PYTHON, "packages", None),
        (ENVIRONMENT, LOGIN, "variables", None),
        (ENVIRONMENT, LOGIN, "job_variables", []),
        (ENVIRONMENT, LOGIN, "files", None),
        (LIMITS, LIMIT, "memlock", "unlimited"),
        (LIMITS, LIMIT, "memlock", True),
        (LIMITS, LIMIT, "memlock", [1]),
        (LIMITS, LIMIT, "open_files", -1),
        (LIMITS, LIMIT, "cpu_seconds", "60"),
        (LIMITS, LIMIT, "shm", {"total": 1, "free": -1}),
    ],
)
def test_what_was_not_told_is_unread_and_not_nothing(
    answered: Answered, source: Answer, whole: dict[str, object], key: str, wrong: object
) -> None:
    fact = FACTS[source]
    assert isinstance(facts_of(answered({source: value(whole)}), (fact,))[fact], fact)
    for lost in ({**whole, key: wrong}, {name: held for name, held in whole.items() if name != key}):
        assert isinstance(facts_of(answered({source: value(lost)}), (fact,))[fact], Unread)


@pytest.mark.parametrize(
    "reply",
    [said("", exit_status=1, stderr="x" * 1_000_000), Reply(Status.FAILED, reason="x" * 1_000_000)],
)
def test_a_reason_is_as_long_as_a_person_reads(answered: Answered, reply: Reply) -> None:
    fact = mpi(answered({MPIRUN: reply}))
    assert isinstance(fact, Unread)
    assert "xxx" in fact.reason
    assert len(fact.reason) < 500
