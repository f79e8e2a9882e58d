"""NC219: what both ends of a connection go by is the same everywhere; what names a device may differ."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.job_settings_differ import job_settings_differ as check

from tests.logins import line_changed, line_removed, logins


def nodes(*variables: dict[str, str], running: bool = False) -> dict[str, Facts]:
    return {
        f"n{number}": {EnvironmentFacts: logins(own), JobFacts: JobFacts(None, None, running=running)}
        for number, own in enumerate(variables, 1)
    }


def test_a_transport_that_one_node_chooses_alone_is_named_with_its_cure() -> None:
    assert judge([check], nodes({}, {}, {"UCX_TLS": "tcp,self"})).findings == [
        Finding("NC219", "job-settings-differ", Severity.WARNING, ("n3",),
                "UCX_TLS differs: not set on n[1-2], tcp,self on n3 (2 to 1)", (),
                line_removed("UCX_TLS"), summary="UCX_TLS differs"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["OMPI_MCA_pml", "PMIX_MCA_psec", "FI_PROVIDER", "TORCH_NCCL_BLOCKING_WAIT", "CUDA_LAUNCH_BLOCKING", "LD_PRELOAD"],
)
def test_each_family_is_compared(name: str) -> None:
    (found,) = judge([check], nodes({name: "1"}, {name: "1"}, {name: "0"})).findings
    assert (found.summary, found.nodes, found.fix) == (f"{name} differs", ("n3",), line_changed(name, "1"))


@pytest.mark.parametrize(
    "name",
    [
        "UCX_NET_DEVICES", "GLOO_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_orte_tmpdir_base",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "UCX_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "I_MPI_ROOT",
        "FI_TCP_IFACE", "PATH", "NCCL_ALGO", "HOROVOD_TIMELINE", "OMP_NUM_THREADS",
        "UCX_IB_GID_INDEX", "HCOLL_MAIN_IB", "OMPI_MCA_coll_hcoll_main_ib", "FI_CXI_DEVICE_NAME", "FI_OPX_HFI_SELECT",
        "OMPI_MCA_btl_openib_gid_index", "MPICH_OFI_NIC_MAPPING",
    ],
)  # fmt: skip
def test_it_is_silent_about_what_may_rightly_differ(name: str) -> None:
    assert judge([check], nodes({name: "a"}, {name: "b"}, {})).findings == []


def test_it_is_silent_about_what_a_launcher_sets_for_each_rank() -> None:
    ranks = ({"OMPI_MCA_ess_base_vpid": "0", "HOROVOD_RANK": "0"}, {"OMPI_MCA_ess_base_vpid": "1", "HOROVOD_RANK": "1"})
    assert judge([check], nodes(*ranks, running=True)).findings == []


def test_it_is_silent_where_all_nodes_have_the_same() -> None:
    assert judge([check], nodes({"UCX_TLS": "rc"}, {"UCX_TLS": "rc"})).findings == []
