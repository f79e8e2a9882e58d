"""NC228: Open MPI is to log in with a program that is not there."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts, RshAgent
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.rsh_agent_missing import rsh_agent_missing

from tests.logins import line_removed, logins

from .test_mpi_daemon_missing import healthy

GONE = RshAgent("OMPI_MCA_plm_rsh_agent", "/opt/gone/rsh", found=False)
GONE_5 = RshAgent("PRTE_MCA_plm_ssh_agent", "/opt/gone/rsh", found=False)
THERE = RshAgent("OMPI_MCA_plm_rsh_agent", "ssh : rsh", found=True)


def nodes(one: MpiDaemonFacts, *agents: RshAgent) -> dict[str, Facts]:
    return {
        "n1": {MpiDaemonFacts: one},
        "n2": {
            MpiDaemonFacts: replace(one, rsh_agents=agents),
            EnvironmentFacts: logins({agent.variable: agent.value for agent in agents}),
        },
    }


def test_a_program_that_is_not_there_is_an_error_on_that_node() -> None:
    assert judge([rsh_agent_missing], nodes(healthy(), GONE)).findings == [
        Finding("NC228", "rsh-agent-missing", Severity.ERROR, ("n2",),
                "OMPI_MCA_plm_rsh_agent=/opt/gone/rsh: there is no such program, and orted ends at its start", (),
                line_removed("OMPI_MCA_plm_rsh_agent"), summary="Open MPI's rsh agent is missing"),
    ]  # fmt: skip


def test_open_mpi_5_has_a_variable_of_its_own() -> None:
    five = healthy(version="5.0.11", name="prted")
    assert [found.fix for found in judge([rsh_agent_missing], nodes(five, GONE, GONE_5)).findings] == [
        line_removed("PRTE_MCA_plm_ssh_agent")
    ]


def test_it_is_silent_where_the_program_is_there_and_skipped_where_no_open_mpi_is() -> None:
    assert judge([rsh_agent_missing], nodes(healthy(), THERE, GONE_5)).findings == []
    verdicts = judge([rsh_agent_missing], nodes(MpiDaemonFacts(None, ()), GONE)).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED] * 2
