"""NC212: Open MPI refuses a list of what to exclude beside the plan's list, which only lists of all nodes replace."""

from __future__ import annotations

from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_settings import MpiSetting, MpiSettingsFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_exclude_set import mpi_exclude_set

from tests.logins import in_bashrc, line_removed

BTL = "btl_tcp_if_exclude"
SED = "sed -i --follow-symlinks '/^[[:space:]]*oob_tcp_if_exclude[[:space:]]*=/d'"


def node(*settings: MpiSetting, implementation: str = "Open MPI") -> Facts:
    return {
        MpiSettingsFacts: MpiSettingsFacts({setting.name: setting for setting in settings}),
        MpiFacts: MpiFacts(implementation, "4.1.4", "/usr/bin/mpirun"),
    }


def test_a_variable_is_named_with_the_line_that_takes_it_back() -> None:
    sick = node(MpiSetting(BTL, "docker0", variable=f"OMPI_MCA_{BTL}", start_up=in_bashrc(f"OMPI_MCA_{BTL}")))
    assert judge([mpi_exclude_set], {"n1": node(), "n2": sick}).findings == [
        Finding("NC212", "mpi-exclude-set", Severity.ERROR, ("n2",),
                "Open MPI accepts either OMPI_MCA_btl_tcp_if_exclude=docker0 or the launch plan's btl_tcp_if_include, "
                "not both", (), line_removed("OMPI_MCA_btl_tcp_if_exclude")),
    ]  # fmt: skip


def test_a_file_is_named_with_the_line_that_removes_the_parameter() -> None:
    sick = node(MpiSetting("oob_tcp_if_exclude", "lo", file="~/.openmpi/mca-params.conf"))
    (found,) = judge([mpi_exclude_set], {"n1": sick, "n2": node()}).findings
    assert (found.fix, found.kind) == (f"{SED} ~/.openmpi/mca-params.conf", "fix")
    sick = node(MpiSetting("oob_tcp_if_exclude", "lo", file="/opt/a;reboot/etc/openmpi-mca-params.conf"))
    (found,) = judge([mpi_exclude_set], {"n1": sick, "n2": node()}).findings
    assert found.fix == f"{SED} '/opt/a;reboot/etc/openmpi-mca-params.conf'"


def test_it_is_silent_where_every_node_has_the_list_for_the_plan_leaves_its_own_out() -> None:
    own = node(MpiSetting(BTL, "lo,docker0", file="/etc/openmpi/openmpi-mca-params.conf"))
    outcomes = [one.outcome for one in judge([mpi_exclude_set], {"n1": own, "n2": own}).verdicts]
    assert outcomes == [Outcome.PASSED] * 2


def test_it_is_silent_about_what_is_included_about_another_mpi_and_about_one_node() -> None:
    include = node(MpiSetting("btl_tcp_if_include", "eth0", variable="OMPI_MCA_btl_tcp_if_include"))
    other = node(MpiSetting(BTL, "lo", file="/etc/x"), implementation="MPICH")
    outcomes = [one.outcome for one in judge([mpi_exclude_set], {"n1": include, "n2": other}).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]
    alone = judge([mpi_exclude_set], {"n1": node(MpiSetting(BTL, "lo", file="/etc/x"))})
    assert [one.outcome for one in alone.verdicts] == [Outcome.SKIPPED]
