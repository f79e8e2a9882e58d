"""Reports by hand, one a situation that somebody meets at night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from ncheck.hostlist import fold
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import NodeSummary, Probe, Report
from ncheck.model.system import System, SystemGpus, SystemPort

CHECKS = {
    "NC001": "node-not-reached",
    "NC110": "name-does-not-resolve",
    "NC112": "connection-filtered",
    "NC118": "host-key-changed",
    "NC201": "nccl-version-differs",
    "NC204": "horovod-differs",
    "NC305": "no-common-subnet",
    "NC402": "ib-port-polling",
    "NC501": "gpu-count-differs",
    "NC506": "gpu-xid-reported",
}
SYSTEM = System(
    gpus=SystemGpus(8, {"NVIDIA H100 80GB HBM3": 8}, "550.54.15", "12.4", 8 * 80 * 2**30),
    nccl="2.21.5",
    nccl_path="/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
    mpi="Open MPI",
    mpi_version="4.1.6",
    ports=tuple(SystemPort(f"mlx5_{at}:1", "Active", "LinkUp", 400.0, "InfiniBand") for at in range(8)),
)
PLAN = LaunchPlan(
    env={
        "NCCL_SOCKET_IFNAME": Setting("=bond0", "docker0 and bond0 have addresses; only bond0 reaches every node"),
        "NCCL_IB_HCA": Setting(None, "all 8 ports of every node are active and of one rate: NCCL takes them all"),
    },
    lines={
        "mpirun": "mpirun -np 32 --host node01:8,node02:8,node03:8,node04:8 --mca oob_tcp_if_include 10.1.0.0/24 "
        "--mca btl_tcp_if_include 10.1.0.0/24 -x NCCL_SOCKET_IFNAME==bond0 -x PATH -x LD_LIBRARY_PATH ./train.sh"
    },
)
PROBE = Probe(ran=False, reason="this version has no probe yet, so --probe auto ran none")


def names(number: int) -> tuple[str, ...]:
    width = 2 if number < 100 else 4
    return tuple(f"node{index:0{width}d}" for index in range(1, number + 1))


def node(name: str) -> NodeSummary:
    return NodeSummary(
        name, reached=True, address=f"10.1.0.{int(name[4:]) % 250}", port=22, user="ada", transport="paramiko",
        host_name=name, interpreter="/opt/conda/bin/python 3.11.7 (active conda)", slots=8, seconds=0.12,
    )  # fmt: skip


def lost(name: str, cause: str, detail: str) -> NodeSummary:
    return NodeSummary(name, reached=False, address="10.1.0.4", port=22, cause=cause, detail=detail)


def verdicts(nodes: Sequence[str], other: Mapping[tuple[str, str], Verdict]) -> tuple[Verdict, ...]:
    """Every check passed on every node but where `other` says something else."""
    return tuple(
        other.get((code, one), Verdict(check, code, (one,), Outcome.PASSED))
        for code, check in CHECKS.items()
        for one in nodes
    )


def report(nodes: Sequence[NodeSummary], findings: Sequence[Finding], other: Sequence[Verdict]) -> Report:
    special = {(verdict.code, node): verdict for verdict in other for node in verdict.nodes}
    for finding in findings:
        for name in finding.nodes:
            special[finding.code, name] = Verdict(finding.check, finding.code, (name,), Outcome.FAILED, finding.message)
    all_verdicts = verdicts([one.name for one in nodes], special)
    bad = any(f.severity is Severity.ERROR and not f.ignored for f in findings)
    unsure = any(one.outcome is Outcome.UNKNOWN for one in all_verdicts)
    paged = tuple(replace(one, page=f"ncheck explain {one.code}") for one in findings)
    return Report(
        exit_code=int(bad or unsure), nodes=tuple(nodes), verdicts=all_verdicts, findings=paged, plan=PLAN,
        measurements=(), probe=PROBE, version="0.1.0", seconds=3.24, fail_on=("error", "unknown"),
        systems=(replace(SYSTEM, nodes=tuple(one.name for one in nodes if one.reached)),),
    )  # fmt: skip


def everywhere_else(code: str, name: str, reason: str) -> list[Verdict]:
    """Return unknown verdicts for one node, for all checks but those that judge the login."""
    login = {"NC001", "NC110", "NC112", "NC118", code}
    return [Verdict(check, c, (name,), Outcome.UNKNOWN, reason) for c, check in CHECKS.items() if c not in login]


def no_root(nodes: Sequence[str]) -> list[Verdict]:
    reason = "journalctl -k and dmesg: permission denied"
    return [Verdict("gpu-xid-reported", "NC506", (one,), Outcome.SKIPPED, reason, needs_root=True) for one in nodes]


def nccl(nodes: Sequence[str], told: str, evidence: Sequence[str], wanted: str = "2.21.5") -> Finding:
    fix = f"python3 -m pip install nvidia-nccl-cu12=={wanted}"
    return Finding(
        "NC201", "nccl-version-differs", Severity.ERROR, tuple(nodes), f"NCCL differs: {told}", tuple(evidence), fix
    )


def healthy() -> Report:
    nodes = names(4)
    return report([node(one) for one in nodes], (), no_root(nodes))


def mixed_nccl() -> Report:
    nodes = names(4)
    path = "/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
    evidence = [f"2.21.5 from {path} on node[01-03]", f"2.18.3 from {path} on node04"]
    xid = Finding(
        "NC402", "ib-port-polling", Severity.WARNING, ("node02",),
        "node02: port 1 of mlx5_3 is Polling: no cable, or the switch port is off",
        ("mlx5_3 port 1: state Down, physical Polling, rate 10 Gb/s",), "ibstat mlx5_3", kind="look",
        summary="mlx5_3 has no link",
    )  # fmt: skip
    summaries = [node(one) for one in nodes]
    told = "2.21.5 on node[01-03], 2.18.3 on node04 (3 to 1)"
    made = report(summaries, [nccl(["node04"], told, evidence), xid], no_root(nodes))
    older = replace(SYSTEM, nodes=nodes[3:], nccl="2.18.3", nccl_path=path)
    return replace(made, systems=(replace(SYSTEM, nodes=nodes[:3]), older))


def one_down() -> Report:
    nodes = names(4)
    summaries = [node(one) for one in nodes[:3]]
    summaries.append(lost("node04", "filtered", "no answer from 10.1.0.4 port 22 within 15 s"))
    cause = Finding(
        "NC112", "connection-filtered", Severity.ERROR, ("node04",),
        "node04 (10.1.0.4 port 22) does not answer at all: it is off, or a firewall drops what is sent to it",
        ("no answer to SYN within 15 s, 1 attempt",), "ping -c 3 10.1.0.4; nc -vz -w 5 10.1.0.4 22",
        where="here", kind="look",
    )  # fmt: skip
    lost_node = Finding(
        "NC001", "node-not-reached", Severity.ERROR, ("node04",), "node04 was not reached: filtered", (),
        "ncheck explain NC112", see=("NC112",),
    )  # fmt: skip
    unknown = everywhere_else("NC112", "node04", "not reached (filtered)")
    return report(summaries, [lost_node, cause], [*no_root(nodes[:3]), *unknown])


def host_key_changed() -> Report:
    nodes = names(4)
    summaries = [node(one) for one in nodes[1:]]
    summaries.insert(0, lost("node01", "host-key-changed", "the key differs from ~/.ssh/known_hosts line 12"))
    cause = Finding(
        "NC118", "host-key-changed", Severity.ERROR, ("node01",),
        "node01 shows another host key than ~/.ssh/known_hosts line 12 has: reinstalled, or not the host it says it is",
        ("known: ssh-ed25519 SHA256:u9bXkV4nJ0aQh7yC2mYJtE5hP3oWz8rL1sD6fG7hJ9k",
         "shown: ssh-ed25519 SHA256:Zk2LmN8pQrS4tUvW6xYz0aBcD1eFgH3iJkL5mNoP7qR"),
        "cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -", kind="look",
    )  # fmt: skip
    lost_node = Finding(
        "NC001", "node-not-reached", Severity.ERROR, ("node01",), "node01 was not reached: host-key-changed", (),
        "ncheck explain NC118", see=("NC118",),
    )  # fmt: skip
    unknown = everywhere_else("NC118", "node01", "not reached (host-key-changed)")
    return report(summaries, [lost_node, cause], [*no_root(nodes[1:]), *unknown])


def tie() -> Report:
    nodes = names(64)
    path = "/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
    sides = {"2.21.5": fold(nodes[::2]), "2.20.5": fold(nodes[1::2])}
    evidence = [f"{version} from {path} on {names}" for version, names in sides.items()]
    told = "2.21.5 on node[01-64/2], 2.20.5 on node[02-64/2] (32 to 32)"
    return report([node(one) for one in nodes], [nccl(nodes, told, evidence)], no_root(nodes))


def all_unknown() -> Report:
    nodes = names(4)
    reason = "not reached (deadline)"
    other = [Verdict(check, code, (one,), Outcome.UNKNOWN, reason) for code, check in CHECKS.items() for one in nodes]
    summaries = [lost(one, "deadline", "the run ended before this node was asked") for one in nodes]
    made = report(summaries, (), other)
    return replace(made, exit_code=130, interrupted=True, plan=LaunchPlan(notes=("no node was reached",)))


def thousand_lost() -> Report:
    """Return a thousand nodes, 700 of whose names do not resolve: one finding a node, as a node check makes them."""
    nodes = names(1000)
    gone = nodes[300:]
    why = "Name or service not known"
    summaries = [*(node(one) for one in nodes[:300]), *(lost(one, "name-unknown", why) for one in gone)]
    findings = [
        Finding(
            "NC110", "name-does-not-resolve", Severity.ERROR, (one,), f"{one} does not resolve to an address",
            (f"getaddrinfo {one}: Name or service not known",), f"getent hosts {one}", where="here", kind="look",
        )
        for one in gone
    ]  # fmt: skip
    other = [verdict for one in gone for verdict in everywhere_else("NC110", one, "not reached (name-unknown)")]
    return report(summaries, findings, [*no_root(nodes[:300]), *other])


def hostile() -> Report:
    """Node text that would clear the screen, retitle the window, reverse the line or pass for markup."""
    bad = replace(node("node02"), interpreter="\x1b[2J\x1b]0;owned\x07[bold red]py\u202eevil\u2066 3.11\r\nReady")
    finding = Finding(
        "NC204", "horovod-differs", Severity.WARNING, ("node02",),
        "Horovod \x1b[31mdiffers\x1b[0m [link=x]:\n \x9b2K0.28",
        ("line one\nline \x07two",), "echo '\x1b]52;c;cm0gLXJmIC8=\x07[red]safe[/red]'",
    )  # fmt: skip
    ignored = Finding(
        "NC305", "no-common-subnet", Severity.INFO, ("node01",), "node01 shares no subnet with the others", (),
        "ip -br address", ignored=True,
    )  # fmt: skip
    return replace(report([node("node01"), bad], [finding, ignored], ()), recorded=True)


REPORTS = {
    made.__name__: made
    for made in (healthy, mixed_nccl, one_down, host_key_changed, tie, all_unknown, thousand_lost, hostile)
}


@pytest.fixture(params=sorted(REPORTS))
def named_report(request: pytest.FixtureRequest, reports: dict[str, Report]) -> tuple[str, Report]:
    """Each report in turn, with its name."""
    return request.param, reports[request.param]


@pytest.fixture(scope="session")
def reports() -> dict[str, Report]:
    return {name: made() for name, made in REPORTS.items()}
