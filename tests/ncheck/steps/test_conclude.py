"""What the exit code is, and what --ignore does and does not do."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from ncheck import (
    HERE,
    PLAN,
    Absent,
    Check,
    NodeView,
    Problem,
    Report,
    Severity,
    Unread,
    cluster_check,
    node_check,
)
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import CHECK_BUILD
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.links import LinkFacts, Sample
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import NCCL
from ncheck.facts.nccl_pick import PICK
from ncheck.facts.os_release import OsFacts
from ncheck.facts.run import BrokenPlugIn, PlugInFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.fleet.recording import load
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Cause, JsonValue, Login, Reply, Status
from ncheck.model.finding import Finding, Outcome
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import MeshSample
from ncheck.observer import Silent
from ncheck.parse.nvidia_smi import Gpu
from ncheck.pipeline import judge_again
from ncheck.plan.planned_pick import PLANNED
from ncheck.report import show
from ncheck.report.summary import headline
from ncheck.report.text import fix_label, fold_findings
from ncheck.settings import FORMATS, Ignore, Settings
from ncheck.steps.conclude import BEFORE_RESET, conclude
from ncheck_checks.ncheck.plug_in_broken import plug_in_broken

from tests.logins import line_changed, line_removed, logins

TITLE = "What the exit code is, and what --ignore does and does not do."  # this docstring is the checks' page


@dataclass(frozen=True)
class Colour:
    name: str


@node_check("NC801", Severity.ERROR, Colour, explains_unreached=True)
def node_is_red(node: NodeView) -> Iterator[Problem]:
    if node[Colour].name == "red":
        yield Problem("it is red", "paint it")


@node_check("NC802", Severity.WARNING, Colour, explains_unreached=True)
def node_is_pale(node: NodeView) -> Iterator[Problem]:
    if node[Colour].name == "pale":
        yield Problem("it is pale", "paint it")


@node_check("NC901", Severity.ERROR, Colour, says_unreached=True)
def node_is_not_blue(node: NodeView) -> Iterator[Problem]:
    if node[Colour].name != "blue":
        yield Problem("it is not blue", "paint it")


@node_check("NC803", Severity.INFO, Colour)
def check_is_broken(node: NodeView) -> Iterator[Problem]:
    raise ZeroDivisionError(node.name)


def concluded(settings: Settings, *checks: Check, lost: tuple[str, ...] = (), **colours: object) -> Report:
    logins = {n: Login(reached=n not in lost, cause=Cause.REFUSED if n in lost else None) for n in colours}
    known: dict[str, Facts] = {
        n: {LoginFacts: LoginFacts(logins[n]), Colour: Colour(c) if isinstance(c, str) else c}
        for n, c in colours.items()
    }
    return conclude(Cluster.of(known), checks or (node_is_red, node_is_pale), settings, LaunchPlan())


@node_check("NC804", Severity.ERROR, HostSettingsFacts)
def node_needs_root(node: NodeView) -> Iterator[Problem]:
    if node[HostSettingsFacts].usable_cpus > 1:
        yield Problem("root mends it", "echo x | sudo tee /etc/x")
        yield Problem("root sees it", "sudo dmesg", look=True)
        yield Problem("root is not needed", "mkdir -p ~/sudo")
        yield Problem("it is mended here", "sudo true", where=HERE)


@pytest.mark.parametrize(("sudo", "fix", "look"), [
    (False, "ask the admin of n[1-2] to run", "ask the admin of n[1-2] to run, and what it shows"),
    (True, "fix on n[1-2]", "look on n[1-2]"),
    (None, "fix on n[1-2]", "look on n[1-2]"),
])  # fmt: skip
def test_who_cannot_become_root_is_told_whom_to_ask(sudo: bool | None, fix: str, look: str) -> None:  # noqa: FBT001  of a table
    facts: Facts = {LoginFacts: LoginFacts(Login(reached=True)), HostSettingsFacts: HostSettingsFacts(8, sudo=sudo)}
    report = conclude(Cluster.of({"n1": facts, "n2": facts}), [node_needs_root], Settings(), LaunchPlan())
    assert {one.message: fix_label(one) for one in fold_findings(report.findings)} == {
        "root mends it": fix, "root sees it": look, "root is not needed": "fix on n[1-2]",
        "it is mended here": "fix here",
    }  # fmt: skip


@node_check("NC805", Severity.ERROR, Colour)
def node_is_dark(_node: NodeView) -> Iterator[Problem]:
    yield Problem("no light", "sudo iblinkinfo", ("Polling",), look=True)


def test_a_tool_that_comes_with_ibstat_is_named_with_its_package_where_there_is_none() -> None:
    def evidence(source: str, *system: str) -> tuple[str, ...]:
        facts: Facts = {
            LoginFacts: LoginFacts(Login(reached=True)), Colour: Colour("black"),
            InfinibandFacts: InfinibandFacts((), source), OsFacts: OsFacts(system),
        }  # fmt: skip
        return conclude(Cluster.of({"n1": facts}), [node_is_dark], Settings(), LaunchPlan()).findings[0].evidence

    line = "iblinkinfo is in a package of its own: sudo {} install infiniband-diags"
    assert evidence("sysfs", "rocky", "rhel") == ("Polling", line.format("dnf"))
    assert evidence("sysfs", "ubuntu") == ("Polling", line.format("apt-get"))
    assert evidence("ibstat", "ubuntu") == ("Polling",)


def test_a_cluster_without_any_gpu_is_called_so_and_one_that_was_not_asked_is_not() -> None:
    def cpus_only(**gpus: object) -> bool:
        known: dict[str, Facts] = {name: {LoginFacts: LoginFacts(Login(reached=True))} for name in ("a", "b", "c")}
        known["c"] = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))}
        for name, fact in gpus.items():
            known[name] = {**known[name], GpuFacts: fact}
        return conclude(Cluster.of(known), [], Settings(), LaunchPlan()).cpus_only

    none, some = Absent("no NVIDIA GPU"), GpuFacts((Gpu(0, "H100"),), "550", "12.4", "nvml")
    assert cpus_only(a=none, b=none, c=Unread("not reached"))
    assert not any((cpus_only(), cpus_only(a=none, b=some), cpus_only(a=none, b=Unread("it hung"))))


def test_it_says_how_many_others_each_of_many_nodes_dialled_and_nothing_where_all_dialled_all() -> None:
    def mesh(*samples: Sample) -> MeshSample | None:
        links = LinkFacts((), (), frozenset({"a", "b"}), samples=samples)
        known: dict[str, Facts] = {
            name: {LoginFacts: LoginFacts(Login(reached=True)), LinkFacts: links} for name in ("a", "b", "c", "d")
        }
        return conclude(Cluster.of(known), [], Settings(), LaunchPlan()).mesh

    assert mesh(Sample("10.0.0.0/16", frozenset({"a", "b"}))) == MeshSample(dialled=2, others=3)
    assert mesh() is None


HEALTHY = load(Path(__file__).parents[3] / "fixtures" / "healthy-4x8-h100")


def test_where_no_python_has_a_framework_the_run_is_clean_and_the_headline_asks_for_the_jobs_python() -> None:
    """The job's torch lies in an environment that no plain login enters."""
    nodes = []
    for one in HEALTHY:
        python = one.reply(INTERPRETER)
        bare: JsonValue = {
            **cast("dict[str, JsonValue]", python.value), "packages": {"mpi4py": "3.1.5"}, "torch": None,
        }  # fmt: skip
        none = Reply(Status.MISSING, "no NCCL that the job's interpreter would load")
        nccl = {source.key: none for source in (NCCL, PICK, CHECK_BUILD)}
        nccl[PLANNED.key] = Reply(Status.NOT_ASKED, "no NCCL")
        nodes.append(replace(one, replies={**one.replies, INTERPRETER.key: replace(python, value=bare), **nccl}))

    report = judge_again(nodes, Settings(hosts="gpu[01-04]", port=10001), Silent())

    line = headline(report, fold_findings(report.findings)).text
    assert (report.exit_code, report.plan.blockers) == (0, ()), line
    assert line.endswith(
        "; not judged: the Python of the job (here: ncheck -H 'gpu[01-04]' -p 10001 --python PATH); launch plan usable"
    )
    outcomes = {(verdict.code, verdict.outcome) for verdict in report.verdicts}
    assert {("NC201", Outcome.SKIPPED), ("NC207", Outcome.PASSED), ("NC215", Outcome.SKIPPED)} <= outcomes
    assert judge_again(HEALTHY, Settings(), Silent()).name_python == ""


@pytest.mark.parametrize(
    ("fail_on", "colour", "exit_code"),
    [
        (("error", "unknown"), "blue", 0),
        (("error", "unknown"), "red", 1),
        (("error", "unknown"), "pale", 0),
        (("warning", "unknown"), "pale", 1),
        (("warning",), "red", 1),
        (("error", "unknown"), Unread("it hung"), 1),
        (("error",), Unread("it hung"), 0),
        (("error", "unknown"), Unread("kernel log", needs_root=True), 0),
        (("never",), "red", 0),
        (("never",), Unread("it hung"), 0),
    ],
)
def test_the_exit_code_is_1_for_what_is_as_bad_as_fail_on(
    fail_on: tuple[str, ...], colour: object, exit_code: int
) -> None:
    assert concluded(Settings(fail_on=fail_on), a="blue", b=colour).exit_code == exit_code


def test_a_crashed_check_is_never_green() -> None:
    assert concluded(Settings(), check_is_broken, a="blue").exit_code == 1


def test_what_is_ignored_still_fails_is_lowered_and_is_still_there() -> None:
    conclusion = concluded(Settings(ignore=(Ignore("node-is-red"),)), a="red")
    assert [verdict.outcome for verdict in conclusion.verdicts] == [Outcome.FAILED, Outcome.PASSED]
    assert conclusion.findings == (
        Finding("NC801", "node-is-red", Severity.INFO, ("a",), "it is red", (), "paint it", ignored=True, title=TITLE,
                page="ncheck explain NC801"),
    )  # fmt: skip
    assert conclusion.exit_code == 0


def test_ignoring_on_some_nodes_leaves_the_others_standing() -> None:
    conclusion = concluded(Settings(ignore=(Ignore("NC801", "a"),)), a="red", b="red")
    assert [(finding.nodes, finding.severity, finding.ignored) for finding in conclusion.findings] == [
        (("b",), Severity.ERROR, False),
        (("a",), Severity.INFO, True),
    ]
    assert conclusion.exit_code == 1


def test_an_unknown_that_is_ignored_does_not_decide_the_exit_code() -> None:
    settings = Settings(ignore=(Ignore("NC801"), Ignore("NC802")))
    assert concluded(settings, a=Unread("it hung")).exit_code == 0


def test_what_several_nodes_share_is_one_finding() -> None:
    conclusion = concluded(Settings(), a="red", b="blue", c="red")
    assert [finding.nodes for finding in conclusion.findings] == [("a", "c")]


def test_the_worst_finding_comes_first() -> None:
    conclusion = concluded(Settings(), node_is_pale, node_is_red, a="pale", b="red")
    assert [finding.severity for finding in conclusion.findings] == [Severity.ERROR, Severity.WARNING]


def test_a_node_that_was_not_reached_is_never_green_even_where_no_selected_check_needs_it() -> None:
    assert concluded(Settings(), a="blue", lost=("a",)).exit_code == 1
    assert concluded(Settings(fail_on=("never",)), a="blue", lost=("a",)).exit_code == 0


def test_a_finding_refers_to_those_that_name_its_cause_where_every_node_has_one() -> None:
    checks = (node_is_red, node_is_pale, node_is_not_blue)
    explained = concluded(Settings(), *checks, a="red", b="pale", c="blue")
    assert [(one.code, one.nodes, one.see) for one in explained.findings] == [
        ("NC801", ("a",), ()),
        ("NC901", ("a", "b"), ("NC801", "NC802")),
        ("NC802", ("b",), ()),
    ]
    partly = concluded(Settings(), *checks, a="red", b="green")
    assert [(one.code, one.nodes, one.see) for one in partly.findings] == [
        ("NC801", ("a",), ()),
        ("NC901", ("a", "b"), ()),
    ]


@node_check("NC804", Severity.ERROR, Colour, explains="a dull picture")
def node_is_grey(node: NodeView) -> Iterator[Problem]:
    if node[Colour].name == "grey":
        yield Problem("it is grey", "paint it")


@cluster_check("NC805", Severity.ERROR, Colour)
def picture_is_dull(cluster: Cluster) -> Iterator[Problem]:
    for ends in (cluster.names[:2], cluster.names[2:]):
        yield Problem(f"{'-'.join(ends)} is dull", "look", nodes=ends, follows="a dull picture")


def test_a_consequence_refers_to_the_causes_on_its_nodes_that_say_they_explain_it() -> None:
    report = concluded(Settings(), node_is_grey, node_is_red, picture_is_dull, a="grey", b="red", c="red", d="red")
    assert [(one.code, one.nodes, one.see) for one in report.findings] == [
        ("NC801", ("b", "c", "d"), ()),
        ("NC804", ("a",), ()),
        ("NC805", ("a", "b"), ("NC804",)),
        ("NC805", ("c", "d"), ()),
    ]


def test_what_is_ignored_explains_nothing_that_counts() -> None:
    settings = Settings(ignore=(Ignore("NC804"), Ignore("NC801")))
    report = concluded(settings, node_is_grey, picture_is_dull, a="grey", b="blue", c="blue", d="blue")
    assert [(one.code, one.see) for one in report.findings] == [("NC805", ()), ("NC805", ()), ("NC804", ())]
    lost = concluded(settings, node_is_red, node_is_not_blue, a="red", b="blue")
    assert [(one.code, one.see, one.ignored) for one in lost.findings] == [
        ("NC901", (), False),
        ("NC801", (), True),
    ]


def test_a_cluster_without_a_gpu_on_any_reached_node_is_said_to_be_one() -> None:
    def made(*gpus: object) -> bool:
        known: dict[str, Facts] = {
            f"n{place}": {LoginFacts: LoginFacts(Login(reached=held is not None)), GpuFacts: held}
            for place, held in enumerate(gpus)
        }
        return conclude(Cluster.of(known), (), Settings(), LaunchPlan()).cpus_only

    none = Absent("no GPU")
    assert made(none, none)
    assert made(none, None)
    assert not made(none, GpuFacts((), "550.54", "12.4", "nvml"))
    assert not made(none, Unread("it hung"))
    assert not made(None)
    assert not concluded(Settings(), a="red").cpus_only


def matrix(path: str, hung: str = "") -> TopologyFacts:
    pairs = {("GPU0", "GPU1"): path, ("GPU1", "GPU0"): path}
    return TopologyFacts(("GPU0", "GPU1"), (), pairs, {}, {"GPU0": "0-7", "GPU1": "0-7"}, {}, hung=hung)


def test_nodes_whose_devices_lie_alike_are_drawn_once_the_most_common_first() -> None:
    alone = TopologyFacts(("GPU0",), (), {}, {}, {}, {})
    matrices = {"n1": matrix("SYS"), "n2": matrix("NV4"), "n3": matrix("NV4", "it hung"), "n4": alone}
    login = LoginFacts(Login(reached=True))
    known: dict[str, Facts] = {name: {LoginFacts: login, TopologyFacts: one} for name, one in matrices.items()}
    report = conclude(Cluster.of(known), [], Settings(), LaunchPlan({}, {}, ()))
    assert [(one.nodes, one.nvlinks, one.worst_hop) for one in report.boards] == [
        (("n2", "n3"), ("NVLink NV4: every two of 2 GPUs",), "NV4 (4 NVLinks)"),
        (("n1",), (), "SYS (the link between the CPUs)"),
    ]


@node_check("NC804", Severity.ERROR, Colour, mended_by="NCCL_SOCKET_IFNAME")
def node_needs_paint(node: NodeView) -> Iterator[Problem]:
    if node[Colour].name == "red":
        yield Problem("it is red", PLAN, where=HERE)


IFNAME = "NCCL_SOCKET_IFNAME"
UNSET = EnvironmentFacts({}, {})
IN_BASHRC = logins({IFNAME: "ib0"})
IN_CONF = EnvironmentFacts({}, {"/etc/nccl.conf": (f"{IFNAME}=ib0",)})


def repaired(
    plan: LaunchPlan, **environments: EnvironmentFacts | Unread
) -> list[tuple[tuple[str, ...], str, str, str]]:
    """Return nodes, command, place and kind of each finding."""
    login = LoginFacts(Login(reached=True))
    known: dict[str, Facts] = {
        name: {LoginFacts: login, Colour: Colour("red"), EnvironmentFacts: own} for name, own in environments.items()
    }
    report = conclude(Cluster.of(known), (node_needs_paint,), Settings(nodes_file="gpus"), plan)
    return [(one.nodes, one.fix, one.where, one.kind) for one in report.findings]


def test_a_fix_that_would_print_the_plans_value_makes_it_last_on_each_node() -> None:
    plan = LaunchPlan({IFNAME: Setting("=eno1", "")})
    assert repaired(plan, a=UNSET, b=IN_BASHRC, c=IN_CONF, d=UNSET) == [
        (("a", "d"), "echo NCCL_SOCKET_IFNAME==eno1 >> ~/.nccl.conf", "", "fix"),
        (("b",), line_changed(IFNAME, "=eno1"), "", "fix"),
        (("c",), f"sudo sed -i 's/^{IFNAME}=.*/{IFNAME}==eno1/' /etc/nccl.conf", "", "fix"),
    ]


def test_where_nodes_need_different_values_each_gets_its_own_in_a_file_of_its_machine() -> None:
    plan = LaunchPlan({}, per_node={name: {IFNAME: Setting(f"={name}0", "")} for name in "abc"})
    assert repaired(plan, a=UNSET, b=IN_BASHRC, c=IN_CONF) == [
        (("a",), "echo NCCL_SOCKET_IFNAME==a0 | sudo tee -a /etc/nccl.conf", "", "fix"),
        (
            ("b",),
            f"{line_removed(IFNAME)}; echo {IFNAME}==b0 | sudo tee -a /etc/nccl.conf",
            "",
            "fix",
        ),
        (("c",), f"sudo sed -i 's/^{IFNAME}=.*/{IFNAME}==c0/' /etc/nccl.conf", "", "fix"),
    ]


def test_without_a_value_or_the_nodes_settings_the_plan_is_something_to_look_at() -> None:
    look = [(("a",), "ncheck plan gpus", "here", "look")]
    assert repaired(LaunchPlan({IFNAME: Setting(None, "")}), a=UNSET) == look
    assert repaired(LaunchPlan({}), a=UNSET) == look
    assert repaired(LaunchPlan({IFNAME: Setting("=eno1", "")}), a=Unread("no answer")) == look


def test_a_check_whose_fix_resets_a_gpu_names_what_to_keep_before_it_and_no_other_finding_does() -> None:
    def broken(node: NodeView) -> Iterator[Problem]:
        yield Problem(f"{node.name} is broken", "sudo systemctl reboot", ("a line",))
        yield Problem(f"{node.name} may be broken", "nvidia-smi -q", ("a line",), look=True)

    broken.__module__ = __name__
    for resets_gpu, kept in ((True, (BEFORE_RESET,)), (False, ())):
        check = node_check("NC804", Severity.ERROR, Colour, hardware=True, resets_gpu=resets_gpu)(broken)
        findings = concluded(Settings(), check, node01="red").findings
        assert {one.kind: one.evidence for one in findings} == {"fix": ("a line", *kept), "look": ("a line",)}


def test_a_broken_plug_in_of_this_machine_is_on_no_node() -> None:
    broken = PlugInFacts((BrokenPlugIn("paint-checks", "OSError: no brush", "python3 -m pip uninstall paint-checks"),))
    here: Facts = {LoginFacts: LoginFacts(Login(reached=True)), PlugInFacts: broken}
    report = conclude(Cluster.of({"a": here, "b": here}), [plug_in_broken], Settings(), LaunchPlan(lines={"env": "x"}))
    assert ([one.nodes for one in report.findings], report.bad, report.exit_code) == ([()], (), 1)
    assert headline(report, fold_findings(report.findings)).text == (
        "Not ready: this machine: the checks of a plug-in could not be loaded; launch plan not usable"
    )
    for form in FORMATS:
        page = io.StringIO()
        show(report, form, page, {"COLUMNS": "200"}, color=False)
        assert form != "console" or "plug-in-broken  this machine" in page.getvalue()
