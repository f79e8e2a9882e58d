"""NC213: what the user's settings of Open MPI choose leads to other nodes."""

from __future__ import annotations

from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_settings import MpiSetting, MpiSettingsFacts
from ncheck.facts.nics import Address, Interface, Kind, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_interface_wrong import mpi_interface_wrong

from tests.logins import in_bashrc, line_removed

BTL = "btl_tcp_if_include"


def nic(name: str, kind: Kind, ip: str, *, up: bool = True) -> Interface:
    return Interface(name, 1, kind, up=up, running=up, mtu=1500, addresses=(Address(ip, 16),))


NICS = NicFacts((
    nic("lo", Kind.LOOPBACK, "127.0.0.1"), nic("eth0", Kind.PHYSICAL, "10.1.0.7"),
    nic("eth1", Kind.PHYSICAL, "10.2.0.7", up=False), nic("docker0", Kind.CONTAINER_BRIDGE, "172.17.0.1"),
))  # fmt: skip


def node(value: str = "", implementation: str = "Open MPI") -> Facts:
    settings = (
        {BTL: MpiSetting(BTL, value, variable=f"OMPI_MCA_{BTL}", start_up=in_bashrc(f"OMPI_MCA_{BTL}"))}
        if value
        else {}
    )
    return {
        MpiSettingsFacts: MpiSettingsFacts(settings),
        NicFacts: NICS,
        MpiFacts: MpiFacts(implementation, "4.1.4", "/usr/bin/mpirun"),
    }


def test_docker0_is_an_error_with_the_line_that_takes_it_back() -> None:
    assert judge([mpi_interface_wrong], {"n1": node(), "n2": node("docker0")}).findings == [
        Finding("NC213", "mpi-interface-wrong", Severity.ERROR, ("n2",),
                "OMPI_MCA_btl_tcp_if_include=docker0: Open MPI would use docker0, which leads to no other node", (),
                line_removed("OMPI_MCA_btl_tcp_if_include")),
    ]  # fmt: skip


def defect(value: str) -> str:
    (found,) = judge([mpi_interface_wrong], {"n1": node(), "n2": node(value)}).findings
    return found.message.partition(": ")[2]


def test_so_is_any_that_leads_nowhere() -> None:
    assert defect("eth0,lo") == "Open MPI would use lo, which leads to no other node"
    assert defect("172.17.0.0/16") == "Open MPI would use docker0, which leads to no other node"
    assert defect("ib0") == defect("10.9.0.0/16") == "no interface of the node is chosen"
    assert defect("eth1") == "it cannot carry data to other nodes"


def test_a_setting_of_a_file_is_removed_there() -> None:
    sick = {**node(), MpiSettingsFacts: MpiSettingsFacts({BTL: MpiSetting(BTL, "lo", file="/etc/openmpi/x")})}
    (found,) = judge([mpi_interface_wrong], {"n1": node(), "n2": sick}).findings
    sed = "sudo sed -i --follow-symlinks '/^[[:space:]]*btl_tcp_if_include[[:space:]]*=/d'"
    assert (found.fix, found.kind) == (f"{sed} /etc/openmpi/x", "fix")


def test_it_is_silent_about_a_network_of_the_node_and_about_a_list_of_which_one_is_there() -> None:
    for value in ("", "eth0", "10.1.0.0/16", "eth0,eth1", "eth0,ib0"):
        outcomes = {one.outcome for one in judge([mpi_interface_wrong], {"n1": node(), "n2": node(value)}).verdicts}
        assert outcomes == {Outcome.PASSED}, value


def excluding(value: str) -> list[str]:
    name = "btl_tcp_if_exclude"
    own = {**node(), MpiSettingsFacts: MpiSettingsFacts({name: MpiSetting(name, value, file="/etc/openmpi/x")})}
    return [found.message.partition(": ")[2] for found in judge([mpi_interface_wrong], {"n1": own, "n2": own}).findings]


def test_a_list_of_what_to_exclude_must_name_lo_and_docker0() -> None:
    assert excluding("lo") == ["Open MPI would use docker0, which leads to no other node"] * 2
    assert excluding("lo,docker0") == excluding("127.0.0.0/8,172.17.0.0/16") == []
    assert excluding("lo,docker0,eth0") == ["no interface of the node is chosen"] * 2


def test_it_is_skipped_for_another_mpi() -> None:
    verdicts = judge([mpi_interface_wrong], {"n1": node(), "n2": node("lo", "MPICH")}).verdicts
    assert verdicts[1].outcome is Outcome.SKIPPED
