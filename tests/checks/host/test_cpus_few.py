"""NC618: fewer CPUs than GPUs, or than the same machine has elsewhere."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.cpus_few import cpus_few

FIX = "nproc; cat /proc/self/cgroup"


def node(usable: int, online: int | None = 96, gpus: int = 8) -> Facts:
    boards = GpuFacts(tuple(Gpu(at, "H100") for at in range(gpus)), "550", "12.4", "nvml")
    return {
        HostSettingsFacts: HostSettingsFacts(usable, online),
        GpuFacts: boards if gpus else Absent("no GPU"),
        RanksFacts: Absent("no job"),
    }


def messages(**nodes: Facts) -> list[str]:
    return [one.message for one in judge([cpus_few], nodes).findings]


def test_one_cpu_for_eight_gpus_is_named_on_a_single_node_too() -> None:
    assert judge([cpus_few], {"a": node(1)}).findings == [
        Finding("NC618", "cpus-few", Severity.WARNING, ("a",), "a job may use 1 CPU for 8 GPUs on a",
                ("a: 96 CPUs online",), FIX, kind="look", summary="a job may use few CPUs"),
    ]  # fmt: skip


def test_a_node_with_a_stricter_cpu_set_than_the_others_is_named() -> None:
    assert messages(a=node(96), b=node(12), c=node(96)) == ["a job may use 12 CPUs on b, 96 on other nodes like it"]
    assert messages(a=node(96, gpus=0), b=node(12, gpus=0), c=node(96, gpus=0)) != []


def test_other_hardware_a_slurm_share_everywhere_and_small_machines_are_healthy() -> None:
    assert messages(a=node(96), b=node(24, online=24), c=node(96)) == []
    assert messages(a=node(12), b=node(12)) == []
    assert messages(a=node(1, 1, gpus=1), b=node(2, 2, gpus=1)) == []
    assert messages(a=node(96), b=node(48)) == []
    assert messages(a=node(8, None)) == []


def test_a_rank_that_its_launcher_bound_to_one_cpu_is_healthy() -> None:
    nodes = {name: {**node(1), RanksFacts: RanksFacts(8, (0,))} for name in "ab"}
    assert [one.outcome for one in judge([cpus_few], nodes).verdicts] == [Outcome.SKIPPED] * 2
