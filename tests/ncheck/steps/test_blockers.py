"""What stands against a plan: errors and doubts about what it is made of, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.clock import ClockFacts
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts, SshFromHereFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.plan import Blocker, LaunchCommand, LaunchPlan, Setting
from ncheck.settings import Ignore, RunContext, Settings
from ncheck.steps.blockers import blockers, has_use, launcher_of_probe
from ncheck.steps.conclude import conclude
from ncheck.steps.registry import load_checks
from ncheck_checks.ssh.node_to_node_ssh_fails import node_to_node_ssh_fails

BAD = GpuFacts((), "550.54", "12.4", "bad")
GOOD = GpuFacts((), "550.54", "12.4", "nvml")
ASTRAY = MpiFacts("MPICH", "4.1")
LATE, RIGHT = ClockFacts(99.0, 0.1), ClockFacts(0.0, 0.1)


@node_check("NC701", Severity.ERROR, GpuFacts)
def gpu_is_bad(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "bad":
        yield Problem("it is bad", "nvidia-smi -L")


@node_check("NC702", Severity.WARNING, GpuFacts)
def gpu_is_odd(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "odd":
        yield Problem("it is odd", "nvidia-smi -L")


@node_check("NC703", Severity.ERROR, ClockFacts)
def clock_is_late(node: NodeView) -> Iterator[Problem]:
    if node[ClockFacts].offset:
        yield Problem("it is late", "timedatectl")


@node_check("NC704", Severity.ERROR, MpiFacts)
def mpi_is_odd(node: NodeView) -> Iterator[Problem]:
    if node[MpiFacts].implementation != "Open MPI":
        yield Problem("it is odd", "mpirun --version")


@node_check("NC304", Severity.ERROR, GpuFacts, mended_by="NCCL_SOCKET_IFNAME")
def pick_is_astray(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "bad":
        yield Problem("it is astray", "ip -br address")


@node_check("NC321", Severity.ERROR, GpuFacts, mended_by="NCCL_SOCKET_IFNAME", matters_alone=True)
def pick_is_none(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "bad":
        yield Problem("there is none", "ip -br address")


@node_check("NC199", Severity.ERROR, ClockFacts, blocks_plan=True)
def way_in_is_bad(node: NodeView) -> Iterator[Problem]:
    if node[ClockFacts].offset:
        yield Problem("it is shut", "ssh n1")


@node_check("NC209", Severity.ERROR, GpuFacts, mended_by="--prefix")
def daemon_is_missing(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "bad":
        yield Problem("there is none", "which orted")


@node_check("NC705", Severity.ERROR, GpuFacts, explains="bad")
def gpu_is_cause(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "bad":
        yield Problem("it is the cause", "nvidia-smi -L")


@node_check("NC706", Severity.ERROR, ClockFacts, explains="bad")
def clock_is_cause(node: NodeView) -> Iterator[Problem]:
    if node[ClockFacts].offset:
        yield Problem("it is late", "timedatectl")


@node_check("NC707", Severity.ERROR, GpuFacts)
def gpu_is_consequence(node: NodeView) -> Iterator[Problem]:
    if node[GpuFacts].source == "bad":
        yield Problem("it follows", "nvidia-smi -L", follows="bad")


CHECKS = (gpu_is_bad, gpu_is_odd, clock_is_late, mpi_is_odd)


def found(  # noqa: PLR0913  each is one thing that may be wrong
    gpus: object = GOOD, clock: object = RIGHT, mpi: object = None, *, peers: object = None,
    settings: Settings | None = None, checks: tuple[object, ...] = CHECKS, plan: LaunchPlan | None = None,
    alone: bool = False,
) -> tuple[Blocker, ...]:  # fmt: skip
    """Return what stands against a plan for n1, which has these facts, and n2, which is well and there if not alone."""
    settings = settings or Settings()
    well: Facts = {
        GpuFacts: GOOD, ClockFacts: RIGHT, MpiFacts: MpiFacts("Open MPI", "4.1.4"), PeerSshFacts: PeerSshFacts(()),
        SshFromHereFacts: Absent("typed elsewhere"), JobFacts: JobFacts(launcher=settings.launcher),
    }  # fmt: skip
    own = {GpuFacts: gpus, ClockFacts: clock, MpiFacts: mpi, PeerSshFacts: peers}
    bad: Facts = {fact: value for fact, value in own.items() if value}
    login = LoginFacts(Login(reached=True))
    facts: dict[str, Facts] = {"n1": {LoginFacts: login, **well, **bad}}
    if not alone:
        facts["n2"] = {LoginFacts: login, **well}
    report = conclude(Cluster.of(facts), checks, settings, plan or LaunchPlan())  # type: ignore[arg-type]
    return blockers(report, checks, settings)  # type: ignore[arg-type]


def test_an_error_about_what_the_plan_is_made_of_stands_against_it() -> None:
    assert found(BAD) == (Blocker("NC701 gpu-is-bad on n1: it is bad", ("n1",), "nvidia-smi -L", "NC701"),)


def test_what_could_not_be_told_of_it_does_too_where_the_unknown_counts() -> None:
    told = "2 checks unknown on n1: nvidia-smi hung"
    assert found(Unread("nvidia-smi hung")) == (Blocker(told, ("n1",)),)
    assert found(Unread("nvidia-smi hung"), settings=Settings(fail_on=("error",))) == ()


def test_a_warning_a_clock_and_what_only_root_can_read_do_not() -> None:
    assert found(GpuFacts((), "550.54", "12.4", "odd")) == ()
    assert found(clock=LATE) == ()
    assert found(Unread("the kernel's log", needs_root=True)) == ()


def test_a_consequence_does_where_its_cause_does_not() -> None:
    def codes(settings: Settings | None = None, *, checks: tuple[object, ...], clock: object = RIGHT) -> list[str]:
        return [one.code for one in found(BAD, clock, settings=settings, checks=checks)]

    checks = (gpu_is_cause, clock_is_cause, gpu_is_consequence)
    assert codes(checks=checks) == ["NC705"]
    assert codes(Settings(ignore=(Ignore("NC705"),)), checks=checks) == ["NC707"]
    assert codes(checks=checks[1:], clock=LATE) == ["NC707"]


def test_what_is_ignored_does_not() -> None:
    ignoring = Settings(ignore=(Ignore("NC701"), Ignore("gpu-is-odd")))
    assert found(BAD, settings=ignoring) == ()
    assert found(Unread("nvidia-smi hung"), settings=ignoring) == ()


def test_the_way_to_a_node_always_does() -> None:
    assert [one.message for one in found(clock=LATE, checks=(way_in_is_bad,))] == [
        "NC199 way-in-is-bad on n1: it is shut"
    ]


def test_the_nodes_own_ssh_matters_to_launchers_that_use_it_and_not_to_the_ranks_that_ncheck_starts_itself() -> None:
    def touched(launcher: str | None) -> bool:
        failed = PeerSshFacts((PeerSsh("n2", Cause.AUTH_REFUSED, "Permission denied"),))
        return found(peers=failed, settings=Settings(launcher=launcher), checks=(node_to_node_ssh_fails,)) != ()

    assert [touched(name) for name in (None, "mpirun", "torchrun", "env")] == [True, True, False, False]
    launchers = [launcher_of_probe(one) for one in (Settings(), Settings(probe_launcher="mpirun"))]
    assert [touched(launcher) for launcher in launchers] == [False, True]


def test_an_mpi_matters_to_the_launchers_that_need_one() -> None:
    def touched(launcher: str | None) -> bool:
        return found(mpi=ASTRAY, settings=Settings(launcher=launcher)) != ()

    assert [touched(name) for name in (None, "mpirun", "horovodrun", "torchrun", "env")] == [True] * 3 + [False] * 2


def test_what_the_plan_itself_mends_does_not() -> None:
    named = LaunchPlan({"NCCL_SOCKET_IFNAME": Setting("=eth0", "why")})
    unset = LaunchPlan({"NCCL_SOCKET_IFNAME": Setting(None, "why not")})
    own = LaunchPlan(per_node={"n1": named.env, "n2": named.env})
    assert [found(BAD, checks=(pick_is_astray,), plan=plan) for plan in (named, own)] == [(), ()]
    assert len(found(BAD, checks=(pick_is_astray,), plan=unset)) == 1


def test_a_missing_mpi_daemon_does_not_if_the_line_names_its_prefix() -> None:
    with_prefix = LaunchPlan(command=LaunchCommand(("mpirun",), "mpirun", "Open MPI", "4.1.4", "/opt/openmpi"))
    without = LaunchPlan(command=LaunchCommand(("mpirun", "--prefix", "-np"), "mpirun", "Open MPI", "4.1.4"))
    assert found(BAD, checks=(daemon_is_missing,), plan=with_prefix) == ()
    assert [len(found(BAD, checks=(daemon_is_missing,), plan=plan)) for plan in (without, LaunchPlan())] == [1, 1]


def test_where_nccl_would_lead_matters_to_no_node_that_is_alone() -> None:
    assert found(BAD, checks=(pick_is_astray,), alone=True) == ()
    assert len(found(BAD, checks=(pick_is_none,), alone=True)) == 1


RANKS = {f"NC80{number}" for number in range(1, 9)}
EXPECTED = {f"NC90{at}" for at in range(1, 8)}
OF_LAUNCHERS = {
    "NC203", "NC204", "NC205", "NC209", "NC210", "NC212", "NC213", "NC214", "NC221", "NC228", "NC229", "NC237", "NC238",
    "NC239",
}  # fmt: skip


def test_checks_of_ranks_have_no_use_outside_a_job_and_those_of_launchers_none_inside_one() -> None:
    def useless(launcher: str | None, *, inside: bool) -> set[str]:
        ranks = {"a": RanksFacts(1, (0,))} if inside else {}
        settings = Settings(launcher=launcher, run=RunContext(ranks=ranks))
        return {check.code for check in load_checks().listed if not has_use(check, settings)}

    assert useless(None, inside=False) == useless("torchrun", inside=False) == RANKS | EXPECTED
    assert useless("torchrun", inside=True) == useless("srun", inside=True) == OF_LAUNCHERS | EXPECTED
    assert useless("mpirun", inside=True) == (OF_LAUNCHERS | EXPECTED) - {"NC212", "NC213", "NC214"}
    assert useless("horovodrun", inside=True) == (OF_LAUNCHERS | EXPECTED) - {"NC204", "NC205"}


def test_checks_of_what_is_expected_have_a_use_only_where_something_is() -> None:
    settings = Settings(run=RunContext(ExpectedFacts(gpus=8)))
    assert {check.code for check in load_checks().listed if not has_use(check, settings)} == RANKS
