"""What --for env and --for nccl.conf print: what eval sets, and what NCCL reads."""

from __future__ import annotations

import subprocess

import pytest
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.plan.launch import NoLineError
from ncheck.plan.launchers import exports, nccl_conf

PLAN = LaunchPlan(
    {
        "NCCL_SOCKET_IFNAME": Setting("=eth0", "why"),
        "NCCL_IB_HCA": Setting(None, "why not"),
        "GLOO_SOCKET_IFNAME": Setting("eth0", "why"),
    }
)


def test_the_exports_are_what_eval_sets() -> None:
    assert exports(PLAN, {}) == "export NCCL_SOCKET_IFNAME='=eth0'\nexport GLOO_SOCKET_IFNAME=eth0"
    script = 'eval "$1" && printf "%s %s" "$NCCL_SOCKET_IFNAME" "$GLOO_SOCKET_IFNAME"'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", exports(PLAN, {})], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "=eth0 eth0"


def test_the_file_of_nccl_has_its_own_variables_only_with_no_quotes() -> None:
    assert nccl_conf(PLAN, {}) == "NCCL_SOCKET_IFNAME==eth0"


def test_where_nothing_need_be_set_a_comment_says_so() -> None:
    assert (exports(LaunchPlan(), {}), nccl_conf(LaunchPlan(), {})) == ("# ncheck: nothing need be set",) * 2


OWN = {
    "n1": {"NCCL_SOCKET_IFNAME": Setting("=eth1", "why")},
    "n2": {"NCCL_SOCKET_IFNAME": Setting("=eth2", "why")},
    "n3": {"NCCL_SOCKET_IFNAME": Setting("=eth1", "why")},
}


def test_values_that_are_each_nodes_own_are_told_apart_by_what_it_calls_itself() -> None:
    plan = LaunchPlan({"NCCL_SOCKET_IFNAME": Setting(None, "see there"), "A": Setting("b", "why")}, per_node=OWN)
    assert exports(plan, {"n2": "second.example"}) == (
        "export A=b\n"
        'case "$(uname -n)" in\n'
        "  n1|n3) export NCCL_SOCKET_IFNAME='=eth1' ;;\n"
        "  second.example) export NCCL_SOCKET_IFNAME='=eth2' ;;\n"
        '  *) echo "ncheck: nothing is known to be right for $(uname -n)" >&2; false ;;\n'
        "esac"
    )
    assert nccl_conf(plan, {}) == (
        "# on n[1,3] only:\nNCCL_SOCKET_IFNAME==eth1\n# on n2 only:\nNCCL_SOCKET_IFNAME==eth2"
    )


@pytest.mark.parametrize("value", ["eth0;reboot", "$(reboot)", "eth0\nA=b", "eth 0", "a'b"])
def test_what_a_node_made_up_reaches_no_line(value: str) -> None:
    hostile = {"NCCL_SOCKET_IFNAME": Setting(value, "why")}
    for plan in (LaunchPlan(hostile), LaunchPlan(per_node={"n1": hostile})):
        for made in (exports, nccl_conf):
            with pytest.raises(NoLineError, match="is not a safe value for NCCL_SOCKET_IFNAME"):
                made(plan, {})


def test_nodes_that_call_themselves_alike_get_no_values_that_may_be_the_others() -> None:
    def own(value: str) -> dict[str, Setting]:
        return {"GLOO_SOCKET_IFNAME": Setting(value, "its own")}

    names = {"n1": "localhost", "n2": "localhost"}
    with pytest.raises(NoLineError, match="several nodes have the hostname localhost but need different values"):
        exports(LaunchPlan(per_node={"n1": own("eth0"), "n2": own("eth1")}), names)
    assert "localhost) export GLOO_SOCKET_IFNAME=eth0 ;;" in exports(
        LaunchPlan(per_node={"n1": own("eth0"), "n2": own("eth0")}), names
    )
