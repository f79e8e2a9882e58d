"""A healthy cluster is green: as root and as an ordinary user, on both ports, over both transports."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from .command import Run, begin, ncheck
from .hosts import Lab
from .layers import ADA, ROOT, User, compiled
from .promises import HANGS, PATIENT, eventually, examined, nothing_left

# What a host of the lab has not got, and what was not asked for: a check of it is skipped, whatever the check says.
NOT_HERE = re.compile(r"\b(?:AMD|EDAC|EFA|GPUs?|InfiniBand|NVIDIA|NVSwitch|PCIe|RoCE|bond|libcudnn|nvcc|plug-in)\b")
NOT_ASKED = re.compile(r"(?<![\w-])--[a-z]")

# Other reasons. The hosts of a lab have the CPUs and the control groups of the machine that it runs on.
REASONS = {
    "the system does not set the CPUs' frequency, as in most virtual machines",
    "no control group limits the memory",
    "too few devices and nodes count corrected errors to compare them", "no disk shows its state",
    "systemd does not run here, so no scheduled shutdown can be seen",
    "this network namespace does not show the size of the neighbour table",
    "too few ports and network cards count errors to compare them",
    "the planned launch opens no ssh from here to other nodes",
    "no packet of another node can arrive on a wrong interface: one interface, or no strict rp_filter",
    "none of these libraries is installed",
    "no command with a full path was given",
    "the list gives no slots",
    "the plan sets nothing that NCCL reads",
    "it has the network of its machine",
}  # fmt: skip
UNTIMED = "how long it takes was not measured, or on no other node"  # by OpenSSH

OTHER = ("-p", "10001")


# Each two of user, port and transport meet once, here and in the run that is recorded.
@pytest.mark.parametrize(
    ("user", "port", "transport"),
    [(ROOT, OTHER, "openssh"), (ADA, (), "openssh"), (ADA, OTHER, "auto")],
    ids=["root, OpenSSH, port 10001", "ada, OpenSSH, port 22", "ada, port 10001"],
)
def test_a_healthy_cluster_ends_in_exit_0_and_only_what_needs_root_or_hardware_is_skipped(
    lab: Lab, user: User, port: tuple[str, ...], transport: str
) -> None:
    two = lab.names[:2]
    hold_healthy(two, examined(lab, "--transport", transport, *port, user=user, nodes=two), user, port, transport)


def hold_healthy(
    names: Sequence[str], run: Run, user: User = ROOT, port: tuple[str, ...] = (), transport: str = "auto"
) -> None:
    """Hold a run of these nodes to what is right of healthy ones."""
    assert run.report["findings"] == []
    assert run.failed() == {}
    assert run.outcomes()["unknown"] == 0
    assert run.exit_code == run.report["exit_code"] == 0
    assert [(n["name"], n["reached"], n["user"], n["port"]) for n in run.report["nodes"]] == [
        (name, True, user.name, int(port[1]) if port else 22) for name in names
    ]
    skipped = [verdict for verdict in run.report["verdicts"] if verdict["outcome"] == "skipped"]
    assert {verdict["reason"].partition(": ")[0] for verdict in skipped if verdict["needs_root"]} == (
        {"only root can read the firewall rules", "this user cannot read the kernel log"} if user is ADA else set()
    )
    reasons = {one["reason"] for one in skipped if not (one["needs_root"] or "scontrol" in one["reason"])}
    known = {one for one in reasons if one in REASONS or NOT_HERE.search(one) or NOT_ASKED.search(one)}
    assert reasons - known == ({UNTIMED} if transport == "openssh" else set())


def test_each_verdict_is_there_once(healthy: Run) -> None:
    verdicts = [(v["code"], node) for v in healthy.report["verdicts"] for node in v["nodes"]]
    assert len(verdicts) == len(set(verdicts))
    nodes = {node["name"] for node in healthy.report["nodes"]}
    assert set(verdicts) == {(code, node) for code, _ in verdicts for node in nodes}


def test_ssh_alone_starts_no_python_on_the_nodes(lab: Lab) -> None:
    for node in lab.nodes[:2]:
        node.sh("rm /usr/bin/python3*")

    run = examined(lab, "--select", "NC1", "--mesh", "none", "--ignore", "python-missing", nodes=lab.names[:2])

    assert {f["code"] for f in run.report["findings"]} <= {"NC125"}
    assert [n["reached"] for n in run.report["nodes"]] == [True] * 2


def test_a_process_that_only_naps_in_the_kernel_makes_nobody_wait(lab: Lab) -> None:
    """A process in state D may be stuck for good; one that goes in and out of it is not waited for."""
    node, asked = lab.nodes[0], (*PATIENT, "--select", "NC620", "--mesh", "none")
    without = min(ncheck(lab, *asked, nodes=[node.name]).report["seconds"] for _ in range(2))
    node.write("/usr/local/bin/naps", compiled("naps.c", compiler="cc"), 0o755)
    pid = int(node.sh("naps </dev/null >/dev/null 2>&1 & echo $!").stdout)
    assert eventually(lambda: node.sh(f"ps -o stat= -p {pid}").stdout[:1], "D", 10) == "D"

    runs = [ncheck(lab, *asked, nodes=[node.name]) for _ in range(2)]

    assert {run.verdicts()["NC620", node.name] for run in runs} == {"passed"}
    assert min(run.report["seconds"] for run in runs) < without + 1.5


def test_a_healthy_cluster_as_root_by_the_usual_port_is_recorded_and_replays_to_the_same_verdicts(
    lab: Lab, healthy: Run
) -> None:
    hold_healthy(lab.names, healthy)
    live = examined(lab, "--record", "recording/healthy", nodes=lab.names[:2])
    hold_healthy(lab.names[:2], live)

    replayed = begin(lab, "replay", "recording/healthy", "-o", "json").wait(HANGS)

    assert replayed.verdicts() == live.verdicts()
    assert replayed.report["plan"] == live.report["plan"]
    assert replayed.report["recorded"] is True
    assert {path.stat().st_mode & 0o777 for path in (lab.root / "root/recording/healthy").glob("*.json")} == {0o600}


def test_the_proposed_mpirun_line_runs_on_these_nodes(lab: Lab, healthy: Run) -> None:
    line = healthy.report["plan"]["lines"]["mpirun"]

    with nothing_left(lab):
        said = lab.nodes[0].sh(line.replace("python train.py", "hostname"))

    assert sorted(said.stdout.split()) == sorted(2 * lab.names)  # two GPUs a node, two ranks a node
