"""NC333: settings of an earlier job or of a search for a fault, and those of them that harm."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_setting_left_over import nccl_setting_left_over

from tests.logins import line_removed

from .settings import node


def test_a_rendezvous_that_was_left_behind_is_reported_once_for_all_its_nodes() -> None:
    nodes = {name: node(NCCL_COMM_ID="10.1.0.1:4444") for name in ("n1", "n2")} | {"n3": node()}
    assert judge([nccl_setting_left_over], nodes).findings == [
        Finding("NC333", "nccl-setting-left-over", Severity.WARNING, ("n1", "n2"),
                "NCCL_COMM_ID=10.1.0.1:4444 in the environment: every communicator connects to this one "
                "address: jobs on other nodes hang", (), line_removed("NCCL_COMM_ID"),
                summary="NCCL_COMM_ID=10.1.0.1:4444 is set"),
    ]  # fmt: skip


def test_machines_with_the_same_host_id_are_reported() -> None:
    nodes = {name: node(NCCL_HOSTID="gpu", boot=name) for name in ("n1", "n2")} | {"n3": node(NCCL_HOSTID="c")}
    assert [(found.nodes, found.message, found.fix) for found in judge([nccl_setting_left_over], nodes).findings] == [
        (("n1", "n2"), "NCCL_HOSTID=gpu on n[1-2]: NCCL treats them as one machine and tries shared memory",
         line_removed("NCCL_HOSTID")),
    ]  # fmt: skip


def test_a_missing_file_is_reported() -> None:
    facts = {
        **node(),
        EnvironmentFacts: EnvironmentFacts({"NCCL_TOPO_FILE": "/opt/ndv5.xml"}, {}, ("NCCL_TOPO_FILE",)),
    }
    told = "the file does not exist, and NCCL ignores the setting"
    assert [found.message for found in judge([nccl_setting_left_over], {"n1": facts}).findings] == [
        f"NCCL_TOPO_FILE=/opt/ndv5.xml in the environment: {told}",
    ]


@pytest.mark.parametrize(("name", "value", "harm"), [
    ("NCCL_DEBUG", "trace", "logs every call"),
    ("NCCL_ALGO", "Tree", "have no algorithm left"),
    ("NCCL_PROTO", "LL128", "data may be corrupted"),
    ("NCCL_PROTO", "LL", "halves the bandwidth"),
])  # fmt: skip
def test_harmful_settings_are_reported(name: str, value: str, harm: str) -> None:
    (found,) = judge([nccl_setting_left_over], {"n1": node(f"{name}={value}")}).findings
    assert (found.fix, harm in found.message) == (f"sudo sed -i '/^{name}=/d' /etc/nccl.conf", True)


def test_it_is_silent_about_settings_that_do_no_harm() -> None:
    nodes = {
        "n1": node(NCCL_DEBUG="INFO", NCCL_ALGO="Ring,Tree", NCCL_PROTO="Simple", NCCL_HOSTID="a", NCCL_COMM_ID="x"),
        "n2": node(NCCL_ALGO="^Tree", NCCL_PROTO="LL,Simple", NCCL_HOSTID="b", NCCL_TOPO_FILE="/etc/hosts"),
        "n3": node(NCCL_ALGO="allreduce:tree", NCCL_PROTO="^LL128", NCCL_HOSTID="c", boot="one"),
        "n4": node(NCCL_HOSTID="c", boot="one"),
    }
    judged = judge([nccl_setting_left_over], nodes)
    assert (judged.findings, {one.outcome for one in judged.verdicts}) == ([], {Outcome.PASSED})
