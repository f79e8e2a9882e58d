"""Many streams over one srun: what it says of nodes and of itself, and what it is sent. srun is a stand-in here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from ncheck.errors import InventoryError, SettingsError
from ncheck.fleet.engines import engines
from ncheck.fleet.engines.srun import SrunEngine, variables
from ncheck.inventory.read import read_inventory
from ncheck.model.evidence import Cause, Command, Evidence, Status
from ncheck.model.node import Node
from ncheck.model.phase import Questions
from ncheck.settings import JobEnvironment, Settings, make_settings

from tests.ncheck.fleet.scripted import HELLO, Told, asked, nodes, phase

pytestmark = pytest.mark.slow

STANDIN = Path(__file__).parents[3] / "standins" / "slurm" / "slurm.py"
SETTINGS = Settings(via="srun", width=1024, deadline=60.0)


class Slurm:
    """The stand-in, told what goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.what: dict[str, object] = {"nodes": "n[1-4]", "states": {}, "log": str(folder / "log")}
        for name in ("srun", "squeue", "sinfo"):
            path = folder / name
            path.write_text(f"#!{sys.executable}\n{STANDIN.read_text()}")
            path.chmod(0o755)
        self.environ = {
            "PATH": f"{folder}:/usr/bin:/bin", "STANDIN_SLURM": str(folder / "what.json"), "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "n[1-4]",
        }  # fmt: skip
        self.told = Told()

    def collected(
        self,
        *names: str,
        settings: Settings = SETTINGS,
        sources: tuple[Command, ...] = (HELLO,),
        own: Callable[[str], Command] | None = None,
    ) -> dict[str, Evidence]:
        (self.folder / "what.json").write_text(json.dumps(self.what))
        names = names or ("n1", "n2", "n3", "n4")
        engine = SrunEngine(nodes(*names), settings, self.environ)
        questions: Questions = {name: (*sources, *([own(name)] if own else [])) for name in names}
        phases = [phase("collecting", names, lambda _: questions)]
        run = asked(nodes(*names), phases, settings, lambda _: engine, self.told)
        return {evidence.node: evidence for evidence in run}

    @property
    def log(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    return Slurm(tmp_path)


def answered(found: dict[str, Evidence]) -> dict[str, str]:
    """Return what each node that was reached answered, and why the others did not."""
    return {
        name: evidence.reply(HELLO).stdout if evidence.reply(HELLO).succeeded else str(evidence.login.cause)
        for name, evidence in found.items()
    }


HI = "hello\n"


def test_one_srun_carries_the_sessions_of_all_nodes(slurm: Slurm) -> None:
    found = slurm.collected()

    assert answered(found) == dict.fromkeys(("n1", "n2", "n3", "n4"), HI)
    assert {(e.login.reached, e.login.transport, e.login.port) for e in found.values()} == {(True, "srun", 0)}
    (srun, ended) = slurm.log
    assert ended[0] == "ended"
    assert srun[:-4] == [
        "srun", "--label", "--verbose", "--ntasks-per-node=1", "--mpi=none", "--chdir=/", "--input=all",
        "--export=ALL", "--kill-on-bad-exit=0", "--wait=0", "--cpu-bind=none", "--mem=0", "--job-name=ncheck",
        "--nodes=4", "--ntasks=4", "--nodelist=n[1-4]", "--immediate=15",
    ]  # fmt: skip


def test_what_is_the_same_for_all_nodes_is_sent_once(slurm: Slurm) -> None:
    def sent(*names: str) -> int:
        slurm.collected(*names)
        return int(slurm.log[-1][1])

    one, four = sent("n1"), sent("n1", "n2", "n3", "n4")
    assert one > 20_000  # the agent
    assert four - one < 3 * 200  # an address and a number for each message, and the goodbye


def test_it_is_sent_once_also_where_each_node_is_asked_more(slurm: Slurm) -> None:
    long = Command(("echo", *(sha256(bytes([number])).hexdigest() for number in range(100))))  # it does not compress

    def sent(*names: str) -> int:
        slurm.collected(*names, sources=(HELLO, long), own=lambda name: Command(("echo", name)))
        return int(slurm.log[-1][1])

    assert sent("n1", "n2", "n3", "n4") - sent("n1") < 3 * 400


def test_the_start_of_a_nodes_python3_is_not_timed_where_all_read_one_stream(slurm: Slurm) -> None:
    assert [one.greeting and one.greeting.python_seconds for one in slurm.collected().values()] == [0.0] * 4


def test_where_the_login_is_enough_no_python_starts(slurm: Slurm) -> None:
    found = slurm.collected("n1", "n2", sources=())

    assert [(e.login.reached, e.login.cause, e.greeting.python if e.greeting else None) for e in found.values()] == [
        (True, None, "")
    ] * 2
    assert int(slurm.log[-1][1]) < 2000


def test_a_node_whose_task_cannot_be_launched_costs_the_others_a_second_start(slurm: Slurm) -> None:
    slurm.what["dead"] = {"n2": "Communication connection failure", "n9": "never asked"}

    found = slurm.collected()

    assert answered(found) == {"n1": HI, "n2": str(Cause.STEP_NOT_STARTED), "n3": HI, "n4": HI}
    login = found["n2"].login
    assert (login.detail, login.fix) == ("Communication connection failure", "scontrol show node n2")
    assert [words[-6] for words in slurm.log if words[0] == "srun"] == ["--nodelist=n[1-4]", "--nodelist=n[1,3-4]"]


def test_nodes_that_slurm_knows_to_be_lost_are_left_out_at_once(slurm: Slurm) -> None:
    slurm.what["states"] = {
        "n1": ["mixed", "none"], "n2": ["down*", "Not responding"], "n3": ["drained", "the fan"],
        "n4": ["idle", "none"],
    }  # fmt: skip
    slurm.what["nodes"] = "n[1-3]"

    found = slurm.collected()

    assert {name: e.login.detail for name, e in found.items()} == {
        "n1": "", "n2": "Slurm says down* (Not responding)", "n3": "",
        "n4": "it is no longer in job 7; Slurm says idle",
    }  # fmt: skip
    assert found["n1"].login.address == "10.0.0.1"


def test_a_task_that_does_not_start_is_given_up_after_the_time_of_a_login(slurm: Slurm) -> None:
    slurm.what["silent"] = ["n3"]

    found = slurm.collected(settings=replace(SETTINGS, connect_timeout=2.0))

    assert answered(found) == {"n1": HI, "n2": HI, "n3": str(Cause.STEP_NOT_STARTED), "n4": HI}
    assert found["n3"].login.detail == "Slurm did not start the task there within 2 s"


def test_a_task_that_ends_before_it_begins_is_its_nodes_fault(slurm: Slurm) -> None:
    slurm.what["tasks"] = {"n2": "echo slurmstepd: error: TaskProlog failed status=1 >&2; exit 1"}

    found = slurm.collected()

    assert answered(found) == {"n1": HI, "n2": str(Cause.STEP_NOT_STARTED), "n3": HI, "n4": HI}
    assert found["n2"].login.detail == (
        "its task ended with exit status 1 before it began: slurmstepd: error: TaskProlog failed status=1"
    )
    assert len([words for words in slurm.log if words[0] == "srun"]) == 1


@pytest.mark.parametrize(
    ("what", "detail"),
    [
        ({"controller": "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"},
         "squeue: slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
        ({"refused": "Requested nodes are busy"},
         "srun could not start the step: Unable to create step for job 7: Requested nodes are busy"),
        ({"silent": ["n1", "n2", "n3", "n4"]}, "srun could not start the step: no task started within 2 s"),
    ],
)  # fmt: skip
def test_trouble_of_slurm_itself_is_no_nodes_fault(slurm: Slurm, what: dict[str, object], detail: str) -> None:
    slurm.what |= what

    found = slurm.collected(settings=replace(SETTINGS, connect_timeout=2.0))

    assert {(e.login.reached, e.login.cause, e.login.detail) for e in found.values()} == {
        (False, Cause.TRANSPORT, detail)
    }


def test_a_step_that_ends_while_nodes_are_asked_is_no_nodes_fault(slurm: Slurm) -> None:
    words = "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T16:24:31 DUE TO TIME LIMIT ***"
    slurm.what["later"] = [words]

    found = slurm.collected()

    assert {(e.login.cause, e.login.detail) for e in found.values()} == {
        (Cause.TRANSPORT, f"the Slurm step ended: {words}")
    }


# At full speed until it is more than MOST_UNREAD; then it goes on, but leaves the processors to the others.
FLOOD = "flood() { head -c 20000000; while sleep .05; do echo a; done; };"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | flood", Cause.FLOODED),
        ("flood </dev/zero", Cause.FLOODED),
        ("flood </dev/urandom", Cause.FLOODED),
        ("yes 'srun: error: n1: task 0: Killed' | flood >&2", Cause.FLOODED),
        ("echo 'srun: error: Node failure on n1' >&2; echo ' 0: ncheck-task'; exec sleep 1000", Cause.NO_SHELL),
    ],
)
def test_a_hostile_node_costs_the_others_nothing(slurm: Slurm, line: str, cause: Cause) -> None:
    slurm.what["tasks"] = {"n2": f"{FLOOD} echo ncheck-task; {line}"}

    found = slurm.collected(settings=replace(SETTINGS, connect_timeout=5.0, deadline=20.0))

    others = {name: e for name, e in found.items() if name != "n2"}
    assert answered(others) == {"n1": HI, "n3": HI, "n4": HI}
    assert {e.login.cause for e in others.values()} == {None}
    assert found["n2"].login.cause is cause


def test_an_agent_that_dies_ends_its_own_session_alone(slurm: Slurm) -> None:
    suicide = Command(("sh", "-c", '[ "$SLURMD_NODENAME" ]; kill -9 $PPID; echo no'))
    found = slurm.collected("n1", "n2", sources=(suicide,), settings=replace(SETTINGS, deadline=20.0))

    assert {e.login.cause for e in found.values()} == {Cause.CLOSED}


def test_no_python_is_the_same_finding_as_over_ssh(slurm: Slurm) -> None:
    slurm.what["tasks"] = {
        "n2": "echo ncheck-task; read -r line; PATH=/nowhere; hide='s#/[a-z/-]*/python3#/nowhere/python3#g'; "
        'line=$(printf %s "$line" | /bin/sed \'s#read -r l#&;l=$(printf %s "$l"|/bin/sed "$hide")#\'); eval "$line"'
    }
    found = slurm.collected("n1", "n2")

    assert answered(found)["n1"] == HI
    assert (found["n2"].login.reached, found["n2"].login.cause) == (True, Cause.NO_PYTHON)


def test_nodes_with_another_environment_have_a_step_of_their_own(slurm: Slurm) -> None:
    settings = make_settings({"via": "srun"}, {}, Path("/nonexistent"))
    own = replace(settings, environment=JobEnvironment(), overrides=())
    assert own.width == 1024
    overridden = make_settings({"via": "srun", "config": str(_config(slurm.folder))}, {}, slurm.folder)

    found = slurm.collected("n1", "n2", settings=replace(overridden, deadline=60.0))

    assert answered(found) == {"n1": HI, "n2": HI}
    assert sorted(words[-6] for words in slurm.log if words[0] == "srun") == ["--nodelist=n1", "--nodelist=n2"]


def _config(folder: Path) -> Path:
    path = folder / "ncheck.toml"
    path.write_text('[host."n2"]\nsetup = "true"\n')
    return path


def test_options_of_another_srun_in_the_jobs_variables_are_not_passed_on() -> None:
    job = {"SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/slurm.conf", "NCCL_DEBUG": "INFO"}
    others = {"SLURM_NTASKS": "64", "SLURM_GPUS_PER_TASK": "1", "SLURM_DISTRIBUTION": "cyclic", "SRUN_DEBUG": "3"}
    assert variables({**job, **others}) == {**job, "SLURM_OVERLAP": "1", "SLURM_GPU_BIND": "none"}


def test_outside_of_an_allocation_nothing_starts(tmp_path: Path) -> None:
    settings = Settings(via="srun")
    with pytest.raises(InventoryError, match=r"^--via srun: not in an allocation .* salloc -N 2 ncheck --via srun$"):
        read_inventory(settings, stdin=sys.stdin.buffer, environ={})
    with pytest.raises(SettingsError, match=r"^--via srun: not in an allocation .* salloc -N 2 ncheck --via srun$"):
        engines(settings, {"PATH": str(tmp_path)})


def test_a_node_that_is_not_allocated_is_an_error_of_the_list() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-4]"}
    settings = Settings(via="srun", hosts="n[3-5]")
    with pytest.raises(InventoryError, match=r"^-H: 'n5' is not in this Slurm allocation \(n\[1-4\]\)$"):
        read_inventory(settings, stdin=sys.stdin.buffer, environ=environ)
    chosen = read_inventory(replace(settings, hosts="n[3-4]"), stdin=sys.stdin.buffer, environ=environ)
    assert chosen == (Node("n3", places=("-H",)), Node("n4", places=("-H",)))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": "22"}, "--via srun uses no ssh login: remove --port, or log in by ssh with --via ssh"),
        ({"transport": "openssh", "user": "ann"},
         "--via srun uses no ssh login: remove --user and --transport, or log in by ssh with --via ssh"),
        ({"rsh": "kubectl exec -i {node} --"},
         "--via srun and --rsh exclude each other: remove one of them (--via ssh, --rsh '')"),
    ],
)  # fmt: skip
def test_options_that_contradict_are_refused(tmp_path: Path, flags: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        make_settings({"via": "srun", **flags}, {}, tmp_path)
    assert str(raised.value) == message
    assert make_settings({"via": "ssh", **flags}, {"NCHECK_VIA": "srun"}, tmp_path).via == "ssh"


def test_a_missing_srun_is_trouble_of_this_machine(slurm: Slurm) -> None:
    (slurm.folder / "srun").unlink()
    slurm.environ["PATH"] = str(slurm.folder)
    found = slurm.collected("n1")
    assert (found["n1"].login.cause, found["n1"].login.detail) == (
        Cause.TRANSPORT, "srun is not on PATH on this machine",
    )  # fmt: skip
    assert found["n1"].reply(HELLO).status is Status.UNANSWERED
