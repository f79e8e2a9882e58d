"""Ranks that talk over real sockets between hosts, and what triage says of their connections when these are hurt."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from ncheck.model.job import Target
from ncheck.observer import Silent
from ncheck.pipeline import triage
from ncheck.settings import JobEnvironment, RunContext, Settings
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.jobs import job_of
from ncheck.triage.live import cluster_of, counters, rendezvous, sockets

from tests.skips import cannot

from .conftest import why_not
from .promises import eventually
from .wires import BareHost, BareHosts, bare_hosts

RANK = Path(__file__).with_name("standins") / "talking_rank.py"
PORTS = {"busy": 21000, "idle": 21100, "oneway": 21200, "deaf": 21300, "syn": 21400, "docker": 21500, "nobody": 21600}


@pytest.fixture(scope="module")
def signs() -> Iterator[Mapping[str, list[Sign]]]:
    """Three hosts, and a job on them for each fault; all are looked at while they run."""
    if why := why_not():
        cannot(why)
    with ExitStack() as stack:
        made = stack.enter_context(bare_hosts(3))
        first, second, third = made.hosts
        first.sh("ip link add docker0 type bridge; ip address add 172.18.0.1/16 dev docker0; ip link set docker0 up")
        first.sh("echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore")  # as behind a router: docker0 is not known on eth0
        for host in made.hosts:
            host.sh("ip route add default dev eth0")
        block(second, f"tcp dport {PORTS['syn'] + 2}")
        joined = [job(stack, made, "busy"), job(stack, made, "idle", kind="idle"), job(stack, made, "oneway"),
                  job(stack, made, "deaf", kind1="deaf")]  # fmt: skip
        for rank in (rank for ranks in joined for rank in ranks):
            met(rank)
        block(second, f"ip saddr {third.addresses[0]} tcp dport {PORTS['oneway'] + 2}")
        job(stack, made, "syn")
        job(stack, made, "docker", says0="172.18.0.1")
        job(stack, made, "nobody", master="10.80.77.77")
        for name in ("syn", "docker", "nobody"):
            assert eventually(partial(waits, made, name), wanted=True, seconds=20), name
        silent = (
            "import socket, time; held = socket.create_server(('', 22)); print('met', flush=True); time.sleep(1000)"
        )
        met(started(stack, third, ["python3", "-c", silent], {}))
        mpirun = [
            "mpirun",
            "--allow-run-as-root",
            "--mca",
            "orte_keep_fqdn_hostnames",
            "1",
            "--host",
            third.addresses[0],
        ]
        started(stack, first, [*mpirun, "-np", "1", "sleep", "1000"], {})
        assert eventually(lambda: ":22" in first.sh("ss -tnH state established dport = 22"), wanted=True, seconds=20)
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda name: looked_at(made, name), (*PORTS, "mpirun"))
            yield dict(zip((*PORTS, "mpirun"), found, strict=True))


def job(stack: ExitStack, made: BareHosts, name: str, **words: str) -> list[subprocess.Popen[str]]:
    """Start one rank on each host. `words`: the kind of all ranks or of one, MASTER_ADDR, and what one SAYS."""
    ranks = []
    for rank, host in enumerate(made.hosts):
        variables = {
            "RANK": str(rank), "WORLD_SIZE": str(len(made.hosts)), "MASTER_PORT": str(PORTS[name]),
            "MASTER_ADDR": words.get("master", made.hosts[0].addresses[0]), "SAYS": words.get(f"says{rank}", ""),
        }  # fmt: skip
        kind = words.get(f"kind{rank}", words.get("kind", "busy"))
        ranks.append(started(stack, host, ["python3", str(RANK), name, kind], variables))
    return ranks


def met(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert process.stdout.readline() == "met\n"


def started(stack: ExitStack, host: BareHost, argv: list[str], variables: Mapping[str, str]) -> subprocess.Popen[str]:
    begun = subprocess.Popen(
        host.argv(*argv), env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    process = stack.enter_context(begun)
    stack.callback(host.sh, "kill -KILL -1 2>&- || :")  # all of the host but its init; nsenter ends with them
    return process


def block(host: BareHost, match: str) -> None:
    """Drop what comes in and fits."""
    chain = "add chain inet t i { type filter hook input priority 0; }"
    host.sh(f"nft 'add table inet t; {chain}; add rule inet t i {match} drop'")


def waits(made: BareHosts, name: str) -> bool:
    ports = range(PORTS[name], PORTS[name] + 9)
    shown = "".join(host.sh("ss -tnH state syn-sent") for host in made.hosts)
    return any(f":{port}" in shown for port in ports)


def looked_at(made: BareHosts, name: str) -> list[Sign]:
    """Return what both readers of sockets say of a job."""
    target = Target(match=rf"(^|/){name} .*sleep" if name == "mpirun" else rf"talking_rank.py {name} ", stacks=False)
    settings = Settings(
        hosts=",".join(host.name for host in made.hosts), environment=JobEnvironment(rsh=made.rsh),
        connect_timeout=60.0, command_timeout=60.0, deadline=120.0, run=RunContext(target=target),
    )  # fmt: skip
    cluster = cluster_of(triage(settings, Silent()))
    found = job_of(cluster, target)
    assert found is not None
    counted = counters.signs(found, cluster) if name == "busy" else ()  # of interfaces that all jobs here share
    return [*sockets.signs(found, cluster), *rendezvous.signs(found, cluster), *counted]


def clues(found: list[Sign]) -> set[tuple[str, Grade, tuple[int, ...], tuple[str, ...]]]:
    """Return what is suspected, without what is only a consequence."""
    named = [one for one in found if isinstance(one, Clue) and one.grade > Grade.ECHO]
    return {(one.cause, one.grade, one.ranks, one.nodes) for one in named}


def motions(found: list[Sign]) -> dict[int | None, bool]:
    return {one.rank: one.moves for one in found if isinstance(one, Motion)}


def texts(found: list[Sign]) -> str:
    return "\n".join(one.text for one in found if isinstance(one, Clue))


def test_a_job_that_exchanges_data_is_suspected_of_nothing(signs: Mapping[str, list[Sign]]) -> None:
    assert [one for one in signs["busy"] if isinstance(one, Clue)] == []
    assert motions(signs["busy"]) == {0: True, 1: True, 2: True}  # what the nodes exchange may be another job's


def test_a_job_that_waits_with_open_connections_is_suspected_of_nothing(signs: Mapping[str, list[Sign]]) -> None:
    assert [one for one in signs["idle"] if isinstance(one, Clue)] == []
    assert motions(signs["idle"]) == {0: False, 1: False, 2: False}


def test_packets_that_are_dropped_one_way_stall_two_nodes(signs: Mapping[str, list[Sign]]) -> None:
    assert clues(signs["oneway"]) == {("network_stalled", Grade.CERTAIN, (), ("host003", "host002"))}
    assert motions(signs["oneway"]) == {0: False, 1: False, 2: False}


def test_a_rank_that_does_not_read_is_blamed_and_not_the_network(signs: Mapping[str, list[Sign]]) -> None:
    ((cause, _, ranks, nodes),) = clues(signs["deaf"])
    assert (cause, ranks, nodes) == ("slow_rank_timeout", (1,), ("host002",))
    assert "which ranks 0 and 2 sent" in texts(signs["deaf"])


def test_a_firewall_between_workers_is_named_by_both_nodes(signs: Mapping[str, list[Sign]]) -> None:
    assert clues(signs["syn"]) == {("firewall", Grade.CERTAIN, (), ("host002", "host003"))}


def test_the_rank_that_gave_out_its_address_on_docker0_is_named(signs: Mapping[str, list[Sign]]) -> None:
    assert clues(signs["docker"]) == {("wrong_nic", Grade.CERTAIN, (0,), ("host001",))}
    assert "172.18.0.1:21501, an address of docker0 on host001, which other nodes cannot reach" in texts(
        signs["docker"]
    )


def test_a_master_address_that_no_node_has_is_a_wrong_rendezvous(signs: Mapping[str, list[Sign]]) -> None:
    assert clues(signs["nobody"]) == {("rendezvous_misconfig", Grade.CERTAIN, (), ())}


def test_mpirun_without_any_rank_is_a_job_whose_ssh_waits_for_a_silent_server(signs: Mapping[str, list[Sign]]) -> None:
    (clue,) = (one for one in signs["mpirun"] if isinstance(one, Clue))
    assert (clue.cause, clue.grade) == ("ssh_auth", Grade.CERTAIN)
    assert "is connected to 10.80.0.4:22, and the server has not sent a single byte" in clue.text
