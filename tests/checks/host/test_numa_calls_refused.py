"""NC626: Docker's default profile, and the releases of NCCL that cannot live with it."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.numa_calls_refused import numa_calls_refused


def node(
    version: str = "2.25.1", cuda: str = "12.8", *, refused: bool | None = True, **variables: str
) -> dict[str, Facts]:
    return {
        "n1": {
            HostSettingsFacts: HostSettingsFacts(8, numa_refused=refused),
            LoadedNcclFacts: LoadedNcclFacts(version, "/lib/libnccl.so.2"),
            GpuFacts: GpuFacts((Gpu(0, "H100"),), "570", cuda, "nvml"),
            EnvironmentFacts: EnvironmentFacts(variables, {}),
        }
    }


def test_it_is_named_with_the_variable_that_avoids_it() -> None:
    assert judge([numa_calls_refused], node()).findings == [
        Finding("NC626", "numa-calls-refused", Severity.WARNING, ("n1",),
                "NUMA calls are refused in this container, and NCCL 2.25.1 needs them", (),
                "echo NCCL_CUMEM_HOST_ENABLE=0 >> ~/.nccl.conf"),
    ]  # fmt: skip


def test_the_releases_before_and_after_and_what_is_not_refused_are_healthy() -> None:
    healthy = (
        node("2.23.4"), node("2.26.5"), node("2.28.9"), node(""), node(cuda="12.4"), node(cuda=""), node(refused=False),
        node(refused=None), node(NCCL_CUMEM_HOST_ENABLE="0"), node(NCCL_CUMEM_ENABLE="0"),
    )  # fmt: skip
    for nodes in healthy:
        assert [one.outcome for one in judge([numa_calls_refused], nodes).verdicts] == [Outcome.PASSED]
    assert judge([numa_calls_refused], node("2.24.3", "12.6")).findings
    assert judge([numa_calls_refused], node("2.26.4", "13.0", NCCL_CUMEM_HOST_ENABLE="1")).findings
