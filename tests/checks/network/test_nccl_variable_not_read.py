"""NC344: names of variables that nothing reads, in the release that the job loads."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import Assignment, EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPlugin, NetPluginFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.nccl.variables import not_read
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_variable_not_read import nccl_variable_not_read

from tests.checks.network import settings
from tests.logins import logins

NONE = NetPluginFacts(None)


def node(*lines: str, nccl: str = "2.21.5", plug_in: NetPluginFacts = NONE, **variables: str) -> Facts:
    facts: Facts = {**settings.node(*lines, nccl=nccl), NetPluginFacts: plug_in}
    return {**facts, EnvironmentFacts: logins(variables)} if variables else facts


def findings(facts: Facts) -> list[Finding]:
    return judge([nccl_variable_not_read], {"n1": facts}).findings


def test_a_slip_is_reported_with_the_name_that_is_meant_and_renamed_where_it_is_set() -> None:
    assert findings(node("NCCL_IB_HCAS=mlx5_0")) == [
        Finding("NC344", "nccl-variable-not-read", Severity.WARNING, ("n1",),
                "NCCL_IB_HCAS=mlx5_0 in /etc/nccl.conf has no effect: NCCL 2.21.5 has no such variable, but"
                " NCCL_IB_HCA", (), "sudo sed -i 's/^NCCL_IB_HCAS=/NCCL_IB_HCA=/' /etc/nccl.conf",
                summary="NCCL_IB_HCAS has no effect"),
    ]  # fmt: skip
    start_up = {"NCCL_IB_HCAS": (Assignment("~/.bashrc", 3, ("NCCL_IB_HCAS",)),)}
    environment = EnvironmentFacts({"NCCL_IB_HCAS": "mlx5_0"}, {}, start_up=start_up)
    (found,) = findings({**node(), EnvironmentFacts: environment})
    edit = r"'s/^(export +)?NCCL_IB_HCAS=/\1NCCL_IB_HCA=/'"
    assert found.fix == f"sed -i --follow-symlinks -E {edit} ~/.bashrc"


def test_a_slip_beside_the_right_name_is_removed() -> None:
    (found,) = findings(node("NCCL_IB_HCAS=mlx5_0", "NCCL_IB_HCA=mlx5_1"))
    assert found.fix == "sudo sed -i '/^NCCL_IB_HCAS=/d' /etc/nccl.conf"


@pytest.mark.parametrize(("name", "why"), [
    ("NCCL_SOKCET_IFNAME", "NCCL 2.21.5 has no such variable, but NCCL_SOCKET_IFNAME"),
    ("NCCL_DISABLE_IB", "NCCL 2.21.5 has no such variable, but NCCL_IB_DISABLE"),
])  # fmt: skip
def test_slips_are_found(name: str, why: str) -> None:
    (found,) = not_read([name], "2.21.5")
    assert (found.why, found.mistaken, found.nearest) == (why, True, why.rpartition(" ")[2])


def test_a_name_that_says_the_opposite_is_never_renamed_to_it() -> None:
    (found,) = findings(node("NCCL_IB_ENABLE=1"))
    assert found.message.endswith("NCCL 2.21.5 has no such variable, but NCCL_IB_DISABLE")
    assert found.fix == "sudo sed -i '/^NCCL_IB_ENABLE=/d' /etc/nccl.conf"


@pytest.mark.parametrize(("name", "nccl", "why"), [
    ("NCCL_RAS_ENABLE", "2.21.5", "NCCL 2.21.5 does not read it: it is read from 2.24.0 on"),
    ("NCCL_TREE_THRESHOLD", "2.21.5", "NCCL 2.21.5 does not read it: NCCL_ALGO took its place after 2.4.8"),
    ("NCCL_TIMEOUT", "2.27.3", "neither NCCL nor PyTorch reads it: the job's framework sets how long a rank waits"),
])  # fmt: skip
def test_a_name_of_another_release_is_information(name: str, nccl: str, why: str) -> None:
    (found,) = findings(node(f"{name}=1", nccl=nccl))
    assert (found.severity, found.message) == (
        Severity.INFO, f"{name}=1 in /etc/nccl.conf has no effect: {why}",
    )  # fmt: skip


@pytest.mark.parametrize("facts", [
    node("NCCL_P2P_LEVEL=NVL", "NCCL_NET_GDR_LEVEL=SYS", "NCCL_TOPO_FILE=x", "NCCL_DEBUG_FILE=y", nccl="2.30.7"),
    node(NCCL_ASYNC_ERROR_HANDLING="1", NCCL_VERSION="2.21.5", NCCL_HOME="/usr", TORCH_NCCL_BLOCKING_WAIT="1"),
    node(NCCL_FASTRAK_IFNAME="eth1", NCCL_GPUDIRECTTCPX_CTRL_DEV="eth0", NCCL_TUNER_CONFIG_PATH="x"),
    node("NCCL_OUR_OWN=1", UCX_TLS="rc", OMPI_MCA_btl="tcp", HOROVOD_RANK="0", FI_PROVIDER="efa"),
    node("NCCL_IB_HCAS=mlx5_0", "NCCL_RAS_ENABLE=0", nccl="2.31.1"),  # a newer release than the list
    node("NCCL_RAS_ENABLE=0", plug_in=NetPluginFacts(NetPlugin("libnccl-net.so", "/opt/libnccl-net.so"))),
])  # fmt: skip
def test_it_is_silent_about_names_that_something_may_read(facts: Facts) -> None:
    assert findings(facts) == []


def test_nothing_is_said_of_rccl() -> None:
    facts = {**node("NCCL_IB_HCAS=mlx5_0"), LoadedNcclFacts: LoadedNcclFacts("2.21.5", "/opt/rocm/lib/librccl.so.1")}
    (verdict,) = judge([nccl_variable_not_read], {"n1": facts}).verdicts
    assert (verdict.outcome, findings(facts)) == (Outcome.SKIPPED, [])
