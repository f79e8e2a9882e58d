"""What cannot be planned is said in words: interfaces that are not there, networks that are not common, no nodes."""

from __future__ import annotations

import re
import shlex

import pytest

from .command import begin, built, listing
from .hosts import Lab
from .launching import launched
from .promises import HANGS, PATIENT, QUICK, nothing_left, plan, plan_from, planned

HEALTHY = "recording/no-plan"


@pytest.fixture(scope="module")
def recorded(running_wide_lab: Lab) -> Lab:
    """Return the lab whose head has a recording of the healthy nodes."""
    listing(running_wide_lab, [f"{name} slots=1" for name in running_wide_lab.names])
    of_a_plan = ("--select", "NC11,NC2,NC3")  # what it is made of
    assert begin(running_wide_lab, "nodes.txt", *PATIENT, *of_a_plan, "--record", HEALTHY).wait(HANGS).stdout
    return running_wide_lab


NOBODY_S = "NC330 ifname-not-there on node[01-03]: --ifname nope0: no node has an interface of that name"
NOT_ON_ALL = "NC330 ifname-not-there on node02: --ifname fast0: fast0 is missing on node02"


@pytest.mark.parametrize(
    ("name", "told", "launcher", "printed"),
    [
        ("nope0", NOBODY_S, "mpirun", ""),
        ("fast0", NOT_ON_ALL, "mpirun", ""),
        ("fast0", NOT_ON_ALL, "env", "false\n"),
    ],
    ids=["no node's", "not on all", "not on all, for eval"],
)
def test_an_interface_that_is_not_there_is_named_and_nothing_is_printed(
    recorded: Lab, name: str, told: str, launcher: str, printed: str
) -> None:
    run = plan_from(recorded, HEALTHY, "--for", launcher, "--ifname", name)

    assert told in run.stderr
    assert "no plan printed" in run.stderr or launcher == "env"
    assert (run.exit_code, run.stdout) == (1, printed)


def test_eval_fails_where_there_is_no_plan(recorded: Lab) -> None:
    plan = f"{shlex.join(built())} plan --from {HEALTHY} --for env --ifname nope0 2>/dev/null"

    refused = launched(recorded, f'eval "$({plan})" && echo begun || echo refused')

    assert refused.said == "refused\n"


def test_an_interface_that_is_asked_for_is_taken_though_another_is_faster(recorded: Lab) -> None:
    run = plan_from(recorded, HEALTHY, "--for", "mpirun", "--ifname", "eth0")

    assert run.exit_code == 0, run
    assert re.findall(r"_if_include (\S+)", run.stdout) == ["10.77.0.0/24", "10.77.0.0/24"]
    assert "NCCL_SOCKET_IFNAME==eth0" in run.stdout


def test_a_subnet_that_one_node_lacks_is_left_out_with_that_node_s_name(wide_lab: Lab) -> None:
    wide_lab.nodes[2].sh("ip address flush dev fast0")

    run = planned(wide_lab, "--force", "--for", "mpirun")  # the network that is used instead is slower: NC329

    assert "10.78.0.0/24 is not used: fast0 has no address in this subnet on node03" in run.stderr
    assert re.findall(r"_if_include (\S+)", run.stdout) == ["10.77.0.0/24", "10.77.0.0/24"]


def test_with_no_common_subnet_it_is_said_what_is_common_to_whom(wide_lab: Lab) -> None:
    lone = "ip address flush dev fast0; ip address flush dev eth0; ip address add 10.77.0.3/32 dev eth0"
    wide_lab.nodes[2].sh(f"{lone}; ip route add 10.77.0.254 dev eth0")

    run = plan(wide_lab, "--for", "env", waits=QUICK)

    subnets = "10.78.0.0/24 on node[01-02], 10.77.0.0/24 on node[01-02], 10.77.0.3/32 on"
    told = f"no subnet is common to all nodes: {subnets}"
    assert told in run.stderr
    assert (run.exit_code, run.stdout) == (1, "false\n")


def test_one_node_alone_gets_a_line_that_needs_no_network(wide_lab: Lab) -> None:
    run = planned(wide_lab, "--for", "torchrun", "--", "python", "train.py", nodes=("node01",))

    assert run.stdout.split()[-4:] == ["torchrun", "--standalone", "--nproc_per_node=1", "train.py"]


@pytest.mark.parametrize(("launcher", "printed"), [("mpirun", ""), ("env", "false\n")])
def test_a_list_of_no_node_is_a_matter_of_usage(wide_lab: Lab, launcher: str, printed: str) -> None:
    listing(wide_lab, [])
    with nothing_left(wide_lab):
        run = begin(wide_lab, "plan", "nodes.txt", "--for", launcher).wait(HANGS)

    assert "contains no host" in run.stderr
    assert (run.exit_code, run.stdout) == (2, printed)
