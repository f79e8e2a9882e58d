"""Which facts are read in which phase, and what their questions need."""

from __future__ import annotations

from ncheck.agent.answers import module_of
from ncheck.facts.code import CODE
from ncheck.facts.definition import LOOKING_AGAIN, MEASURING, ON_THIS_MACHINE, WATCHING, Fact
from ncheck.facts.environment import ENVIRONMENT
from ncheck.facts.horovod import CHECK_BUILD
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.learning import definition_of
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.mpi import MPIEXEC, MPIRUN, REAL_PATH
from ncheck.facts.mpi_daemon import MPI_DAEMON
from ncheck.facts.names import NAMES
from ncheck.facts.nics import NicFacts
from ncheck.facts.packages import PACKAGES
from ncheck.facts.plan_facts import PLAN_FACTS
from ncheck.facts.programs import PROGRAMS
from ncheck.facts.prompt import PROMPT
from ncheck.facts.ranks import RanksFacts
from ncheck.facts.ssh_peers import PEERS, PeerSshFacts
from ncheck.facts.storage_probe import STORAGE_PROBE
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer
from ncheck.model.phase import Answered, NotAsked
from ncheck.plan.planned_pick import PlannedPickFacts
from ncheck.settings import RunContext, Settings
from ncheck.steps.blockers import MEASURED, OF_MPI, OF_PLAN, RELIED_ON
from ncheck.steps.phases import UNTIL, asked_later, collection_phases, with_needs

from tests.every_fact import every_fact

DEFINITIONS: list[Fact[object]] = [one for fact in every_fact() if (one := definition_of(fact))]


def test_what_a_question_needs_is_wanted_too_down_to_the_last() -> None:
    assert {PlannedPickFacts, ListenFacts, NicFacts, IdentityFacts, LoginFacts} <= set(with_needs([PlannedPickFacts]))


def test_no_fact_is_wanted_twice_for_each_would_be_parsed_twice() -> None:
    assert with_needs([NicFacts, LoginFacts, NicFacts]) == (NicFacts, LoginFacts)
    assert len(set(with_needs([PlannedPickFacts, NicFacts, NicFacts]))) == len(with_needs([PlannedPickFacts, NicFacts]))


def test_each_fact_is_defined_once_in_the_module_of_its_record() -> None:
    assert len(DEFINITIONS) >= 30
    assert len(every_fact()) == len(set(every_fact())) == len(DEFINITIONS)


def test_the_facts_that_are_spoken_of_by_name_are_there() -> None:
    assert frozenset(fact.__name__ for fact in PLAN_FACTS) == OF_PLAN
    named = {*RELIED_ON, *OF_MPI, *MEASURED, "HorovodFacts"}
    assert named <= {fact.__name__ for fact in every_fact()}


def test_every_fact_is_read_in_a_phase_that_there_is() -> None:
    assert {one.phase for one in DEFINITIONS} == {*UNTIL, ON_THIS_MACHINE, MEASURING, LOOKING_AGAIN, WATCHING}
    assert [
        one.record
        for one in DEFINITIONS
        if one.phase not in (*UNTIL, ON_THIS_MACHINE, MEASURING, LOOKING_AGAIN, WATCHING)
    ] == []


def test_what_a_question_needs_is_read_in_an_earlier_phase() -> None:
    order = [*UNTIL, MEASURING, LOOKING_AGAIN, WATCHING]
    for one in DEFINITIONS:
        for need in one.needs if one.phase != MEASURING else ():
            earlier = definition_of(need)
            assert earlier, need
            assert not earlier.sources or order.index(earlier.phase) < order.index(one.phase), (one.record, need)


def test_one_phase_is_enough_where_nobody_is_asked_about_the_others() -> None:
    cluster = Cluster.of({"a": {}, "b": {}})
    phases = collection_phases(cluster, with_needs([PeerSshFacts, ListenFacts]), Settings(mesh="none"))
    assert [phase.stage for phase in phases if phase.questions] == ["collecting"]
    assert asked_later(phases, cluster) == frozenset()


def test_a_node_begins_with_what_may_take_seconds() -> None:
    """A driver that starts, or a library on cold disks, at the end of the queue would make the whole cluster wait."""
    cluster = Cluster.of({"a": {}})
    first, *_ = collection_phases(cluster, with_needs([one.record for one in DEFINITIONS]), Settings())
    assert first.questions
    asked = [one for one in first.questions(cluster, 10.0)["a"] if not isinstance(one, NotAsked | Answered)]
    slow = [one.slow for one in asked]
    assert slow == sorted(slow, reverse=True)
    assert {INTERPRETER, CHECK_BUILD, MPI_DAEMON} <= set(asked[: sum(slow)])


def test_while_links_are_tried_every_connection_stays_open() -> None:
    cluster = Cluster.of({"a": {}, "b": {}})
    phases = collection_phases(cluster, with_needs([LinkFacts]), Settings())
    assert [phase.stage for phase in phases if phase.questions] == ["collecting", "listening", "asking its peers"]
    assert asked_later(phases, cluster) == {"a", "b"}


IN_A_JOB = {"a": RanksFacts(2, (0,)), "b": RanksFacts(2, (1,))}


def questions(launcher: str | None, ranks: dict[str, RanksFacts]) -> tuple[set[str], dict[str, str]]:
    """Return what a node is asked in the first phase, and what it is not asked, with the reason."""
    cluster = Cluster.of({"a": {}, "b": {}})
    wanted = with_needs([one.record for one in DEFINITIONS if one.phase in UNTIL])
    first, *_ = collection_phases(cluster, wanted, Settings(launcher=launcher, run=RunContext(ranks=ranks)))
    assert first.questions
    asked = first.questions(cluster, 10.0)["a"]
    left_out = {one.source.key: one.reason for one in asked if isinstance(one, NotAsked)}
    return {one.key for one in asked if not isinstance(one, NotAsked | Answered)}, left_out


ON_DEMAND = {
    CODE.key: "no folder of code was named: --workdir DIR",
    PACKAGES.key: "only with --packages all",
    STORAGE_PROBE.key: "no --storage-probe",
    PROGRAMS.key: "no command with a full path was given",
}


def test_a_job_that_runs_is_not_asked_what_its_launcher_has_done() -> None:
    asked, left_out = questions("torchrun", IN_A_JOB)
    started = (PEERS, NAMES, MPI_DAEMON, PROMPT, PROGRAMS)
    assert {
        CHECK_BUILD.key: "the job was not started by horovodrun",
        MPIRUN.key: "the job was not started by mpirun",
    } | ON_DEMAND | {source.key: "the job has been started already" for source in started} == {
        key: reason for key, reason in left_out.items() if key not in (MPIEXEC.key, REAL_PATH.key)
    }
    assert asked.isdisjoint(left_out)
    assert {INTERPRETER.key, ENVIRONMENT.key} <= asked


def test_a_job_of_mpirun_is_asked_for_its_mpi_and_one_of_horovodrun_for_its_horovod() -> None:
    for launcher, source in (("mpirun", MPIRUN), ("horovodrun", CHECK_BUILD)):
        asked, left_out = questions(launcher, IN_A_JOB)
        assert source.key in asked
        assert MPI_DAEMON.key in left_out


def test_outside_a_job_everything_is_asked_but_what_no_option_wants() -> None:
    asked, left_out = questions("torchrun", {})
    assert {CHECK_BUILD.key, MPIRUN.key, MPI_DAEMON.key} <= asked
    assert left_out == ON_DEMAND


def test_the_agent_has_every_answer_that_nodes_are_asked_for() -> None:
    from_here = {"clock", "groups", "ssh-from-here", "slurm-reservations"}  # which this machine finds out
    asked = {source.name for fact in DEFINITIONS for source in fact.sources if isinstance(source, Answer)}
    assert all(module_of(name).answer for name in asked - from_here)
