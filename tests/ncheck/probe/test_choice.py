"""By which means is measured, and in which words nothing is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node
from ncheck.model.plan import Blocker, LaunchPlan, Setting
from ncheck.probe.choice import Chosen, Refused, choose
from ncheck.probe.methods.context import ProbeContext, context_of
from ncheck.probe.methods.driver import driver_named
from ncheck.probe.node_result import Method, Stage
from ncheck.settings import Settings

from .driven import HEALTHY, Driven

Changed = Mapping[str, Mapping[FactType, Any]]
GIB = 2**30


def ground(
    changed: Changed | None = None, *, cluster: str = HEALTHY, plan: LaunchPlan | None = None, **settings: Any
) -> ProbeContext:
    known = Driven(cluster=cluster, facts=changed or {}).known
    nodes = tuple(Node(name, slots=settings.get("slots_of", {}).get(name)) for name in known)
    told = {name: value for name, value in settings.items() if name != "slots_of"}
    return context_of(Cluster(nodes, known), Settings(**told), plan or LaunchPlan(), ())


def alone(changed: Mapping[FactType, Any] | None = None, **settings: Any) -> ProbeContext:
    known = {"gpu01": {**Driven().known["gpu01"], **(changed or {})}}
    return context_of(Cluster((Node("gpu01"),), known), Settings(**settings), LaunchPlan(), ())


def used(share: float) -> GpuFacts:
    held = Driven().known["gpu02"][GpuFacts]
    assert isinstance(held, GpuFacts)
    return replace(
        held, gpus=tuple(replace(gpu, memory_used=int((gpu.memory_total or 0) * share)) for gpu in held.gpus)
    )


def why(found: Chosen | Refused) -> str:
    assert isinstance(found, Refused), found
    return found.why


NO_GPU = Absent("no NVIDIA device")


def test_nccl_is_chosen_where_all_nodes_have_gpus_and_load_it() -> None:
    found = choose(ground(), ())
    assert isinstance(found, Chosen)
    assert {way.method for way in found.drivers.values()} == {Method.NCCL}
    assert set(found.drivers) == {Stage.INSIDE, Stage.PAIR, Stage.SCALING, Stage.ALL}
    assert found.note == ""


def test_gpus_that_are_not_measured_are_told_of_what_is_measured_instead() -> None:
    changed: Changed = {"gpu03": {LoadedNcclFacts: Absent("no libnccl.so.2")}}
    found = choose(ground(changed), ())
    told = found.note if isinstance(found, Chosen) else found.why
    assert told.startswith(
        "the GPUs were not measured: nccl cannot be used: the job's interpreter loads no NCCL (no libnccl.so.2) "
        "on gpu03"
    )


def test_one_node_alone_without_a_gpu_has_nothing_to_measure() -> None:
    assert why(choose(alone({GpuFacts: NO_GPU}), ())) == "on a single node without a GPU there is nothing to measure"


def test_one_node_alone_with_one_gpu_has_one_rank() -> None:
    held = Driven().known["gpu01"][GpuFacts]
    assert isinstance(held, GpuFacts)
    one = alone({GpuFacts: replace(held, gpus=held.gpus[:1])})
    found = choose(one, ())
    assert isinstance(found, Chosen)
    assert found.drivers[Stage.INSIDE].ranks(one, Stage.INSIDE, "gpu01") == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"gpu03": {GpuFacts: NO_GPU}}, "no GPU on gpu03"),
        ({"gpu03": {GpuFacts: replace(used(0.0), vendor="AMD")}},
         ("NVIDIA's GPUs (ranks of different makers cannot meet) on gpu[01-02,04]; "
          "AMD's GPUs (ranks of different makers cannot meet) on gpu03")),
        ({"gpu03": {LoadedNcclFacts: LoadedNcclFacts("2.21.5", "/opt/rocm/lib/librccl.so.1.0")}},
         "the job's interpreter loads RCCL, which drives none of the GPUs of NVIDIA on gpu03"),
        (
            {"gpu03": {GpuFacts: Unread("nvidia-smi hangs")}},
            "the GPUs could not be read (nvidia-smi hangs) on gpu03",
        ),
        (
            {"gpu03": {EnvironmentFacts: EnvironmentFacts({"CUDA_VISIBLE_DEVICES": ""}, {})}},
            "CUDA_VISIBLE_DEVICES hides every GPU on gpu03",
        ),
        (
            {"gpu02": {LoadedNcclFacts: LoadedNcclFacts("2.21.5", "", static=True)}},
            "NCCL is linked statically into torch and cannot be called by another program on gpu02",
        ),
        (
            {"gpu02": {LoadedNcclFacts: LoadedNcclFacts("2.20.5", "/lib/libnccl.so.2")}},
            ("the nodes have different NCCL versions, whose ranks hang or fail together: "
            "2.21.5 on gpu[01,03-04], 2.20.5 on gpu02"),
        ),
    ],
)  # fmt: skip
def test_nccl_is_refused_with_what_is_missing_and_where(changed: Changed, words: str) -> None:
    assert why(choose(ground(changed, probe="nccl"), ())) == f"nccl cannot be used: {words}"


def test_gpus_of_amd_are_measured_by_rccl_without_the_diagnostics_of_nccl() -> None:
    loaded = LoadedNcclFacts("2.31.1", "/opt/rocm/lib/librccl.so.1.0")
    changed: Changed = {
        name: {GpuFacts: replace(used(0.0), vendor="AMD"), LoadedNcclFacts: loaded} for name in Driven().known
    }
    found = choose(ground(changed), ())
    assert isinstance(found, Chosen)
    assert ({way.method for way in found.drivers.values()}, "diagnostics" in found.beside) == ({Method.NCCL}, False)


def test_nics_that_should_be_tested_and_cannot_be_are_told() -> None:
    sockets: Changed = {
        name: {EnvironmentFacts: EnvironmentFacts({"NCCL_NET": "Socket"}, {})} for name in Driven().known
    }
    found = choose(ground(sockets, nic_test=True), ())
    assert isinstance(found, Chosen)
    assert ("nics" in found.beside, found.note) == (
        False, "the NICs were not tested by themselves: no HCA port carries the job's data",
    )  # fmt: skip
    able = choose(ground(nic_test=True), ())
    assert isinstance(able, Chosen)
    assert ("nics" in able.beside, able.note) == (True, "")


def test_versions_that_differ_are_measured_by_force() -> None:
    assert isinstance(choose(ground(cluster="mixed-nccl", probe="nccl", force=True), ()), Chosen)


def test_more_ranks_than_gpus_are_refused() -> None:
    crowded = ground(probe="nccl", slots_of={"gpu02": 16})
    words = "nccl cannot be used: 16 ranks but 8 GPUs (each rank needs its own) on gpu02"
    assert why(choose(crowded, ())) == words


def test_gpus_in_use_are_not_measured_unless_by_force() -> None:
    changed: Changed = {"gpu02": {GpuFacts: used(0.5)}}
    share = "50% of the memory of GPU 0 on gpu02"
    words = f"GPUs are in use on gpu02 ({share}); to measure anyway: ncheck probe nodes.txt --force"
    assert why(choose(ground(changed), ())) == words
    assert choose(ground(changed, probe="nccl"), ()) == Refused(words, "force")
    assert isinstance(choose(ground(changed, probe="nccl", force=True), ()), Chosen)
    assert isinstance(choose(ground({"gpu02": {GpuFacts: used(0.09)}}), ()), Chosen)


def test_what_is_to_be_fixed_first_is_named_by_its_codes_and_what_has_none_is_counted() -> None:
    this, that = Blocker("NC208 this", ("gpu01",), code="NC208"), Blocker("that", ("gpu02",))
    other = Blocker("NC402 other", ("gpu01",), code="NC402")
    assert choose(ground(), (that, this, other, this)) == Refused("fix NC208, NC402 first", "NC208")
    assert choose(ground(), (that,)) == Refused("blocked by that", "without")
    assert why(choose(ground(), (that, that))) == "blocked by that (and 1 more)"


def test_mpirun_starts_the_ranks_of_all_nodes_and_the_agents_the_others() -> None:
    found = choose(ground(probe_launcher="mpirun"), ())
    if isinstance(found, Refused):  # no mpirun on the machine that the test runs on
        assert found.why.startswith("--probe-launcher mpirun: ")
        return
    launchers = {stage: way.launcher for stage, way in found.drivers.items()}
    assert launchers == {**dict.fromkeys(launchers, "agents"), Stage.ALL: "mpirun"}


def test_what_data_goes_by_is_pinned_unless_somebody_chose() -> None:
    way = driver_named("nccl")

    def net(**variables: str) -> str:
        changed: Changed = {name: {EnvironmentFacts: EnvironmentFacts(variables, {})} for name in Driven().known}
        return way.net(ground(changed), Stage.ALL)

    assert net() == "IB"
    assert net(NCCL_NET="Socket") == net(NCCL_NET="AWS Libfabric") == net(NCCL_NET_PLUGIN="ofi") == ""
    assert way.net(ground(cluster="docker0-and-veth"), Stage.ALL) in ("IB", "Socket")
    assert way.net(ground(), Stage.INSIDE) == ""


def test_the_ranks_get_the_plans_variables_and_each_node_its_own() -> None:
    plan = LaunchPlan(
        {"NCCL_SOCKET_IFNAME": Setting("=eno1", ""), "NCCL_IB_HCA": Setting(None, "each its own")},
        per_node={"gpu02": {"NCCL_IB_HCA": Setting("=mlx5_1:1", "")}},
    )
    held = ground(plan=plan)
    way = driver_named("nccl")
    assert way.variables(held, "gpu01", "IB") == {"NCCL_SOCKET_IFNAME": "=eno1", "NCCL_NET": "IB"}
    assert way.variables(held, "gpu02", "") == {"NCCL_SOCKET_IFNAME": "=eno1", "NCCL_IB_HCA": "=mlx5_1:1"}
    assert (held.planned["gpu02"], held.address("gpu02")) == (("mlx5_1:1", "eno1"), "10.20.0.12")
