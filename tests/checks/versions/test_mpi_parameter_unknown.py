"""NC239: parameters of Open MPI with a slip in their names."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts, UnknownParameter
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_parameter_unknown import mpi_parameter_unknown

from tests.logins import line_removed, logins

SLIP, MEANT = "OMPI_MCA_btl_tcp_if_inculde", "OMPI_MCA_btl_tcp_if_include"
UNKNOWN = MpiDaemonFacts(None, (), parameters=(UnknownParameter(SLIP, "btl_tcp_if_include"),))


def findings(mpi: MpiDaemonFacts, **variables: str) -> list[Finding]:
    return judge([mpi_parameter_unknown], {"n1": {MpiDaemonFacts: mpi, EnvironmentFacts: logins(variables)}}).findings


def test_a_slip_is_renamed_and_beside_the_right_name_removed() -> None:
    edit = rf"'s/^(export +)?{SLIP}=/\1{MEANT}=/'"
    assert findings(UNKNOWN, **{SLIP: "eth0"}) == [
        Finding("NC239", "mpi-parameter-unknown", Severity.WARNING, ("n1",),
                f"{SLIP} has no effect: this Open MPI has no such parameter, but btl_tcp_if_include",
                (), f"sed -i --follow-symlinks -E {edit} ~/.bashrc", summary=f"{SLIP} has no effect"),
    ]  # fmt: skip
    (found,) = findings(UNKNOWN, **{SLIP: "eth0", MEANT: "eth1"})
    assert found.fix == line_removed(SLIP)


def test_without_such_a_name_it_is_silent() -> None:
    assert findings(MpiDaemonFacts(None, ()), OMPI_MCA_btl="tcp,self", OMPI_MCA_our_own="1") == []
