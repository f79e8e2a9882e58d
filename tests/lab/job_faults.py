"""What goes wrong in running jobs, really made: each is a block in which the job stands as it would for its user.

A fault's truth says which causes are right, and which ranks and nodes are at fault.
"""

# ruff: noqa: D401, D403  the docstring of a fault says what is wrong

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from . import faults
from .command import Run
from .hosts import Lab
from .layers import compiled
from .node import Node
from .running_jobs import Job, Running, running
from .stuck import stuck_folder

SURE = 0.8  # confidence from which an answer is no guess


@dataclass(frozen=True)
class Truth:
    """What a diagnosis has to say: one of the causes; of the ranks and nodes at least one, and no others.

    No cause at all: nothing is wrong, and nobody is accused. `alike` are causes that look the same while triage looks:
    one of them may come first, as something that is not certain, if a right one comes after it. `at_most`: a job that
    waits for a rank that works is well, and triage may say no more than what it waits for, below this confidence.
    """

    causes: Collection[str] = ()
    ranks: Collection[int] = ()
    nodes: Collection[str] = ()
    alike: Collection[str] = ()
    at_most: float = 1.0
    at_least: float = 0.0

    def wrong(self, diagnoses: list[dict[str, Any]]) -> str:
        """Return what is wrong in diagnoses; nothing if the first one is right."""
        if not self.causes:
            return "".join(f"accused of {one['cause']}" for one in diagnoses[:1])
        if not diagnoses:
            return "no diagnosis"
        first = diagnoses[0]
        if not self.at_least <= first["confidence"] <= self.at_most:
            return f"{first['cause']} with a confidence of {first['confidence']}"
        undecided = first["cause"] in self.alike and first["confidence"] < SURE
        undecided = undecided and any(one["cause"] in self.causes for one in diagnoses)
        if first["cause"] not in self.causes and not undecided:
            return f"{first['cause']} is none of {', '.join(self.causes)}"
        for kind, truth in (("ranks", self.ranks), ("nodes", self.nodes)):
            if truth and not (set(first[kind]) and set(first[kind]) <= set(truth)):
                return f"{first['cause']}, with {kind} {first[kind]}, where {list(truth)} are at fault"
        return ""


Block = Callable[[Lab], AbstractContextManager[Running]]


@dataclass(frozen=True)
class Fault:
    """One fault. `torch`: its job needs torch."""

    name: str
    truth: Truth
    torch: bool
    job: Block
    about: str


FAULTS: dict[str, Fault] = {}


def fault(
    truth: Truth, *, torch: bool = True
) -> Callable[[Callable[[Lab], Iterator[Running]]], Callable[[Lab], Iterator[Running]]]:
    """Register a fault under its function's name."""

    def register(block: Callable[[Lab], Iterator[Running]]) -> Callable[[Lab], Iterator[Running]]:
        name = block.__name__.replace("_", "-")
        about = (block.__doc__ or "").splitlines()[0]
        FAULTS[name] = Fault(name, truth, torch, contextmanager(block), about)
        return block

    return register


def held(run: Run, fault: str) -> None:
    """Hold what was said to the truth of a fault."""
    truth = FAULTS[fault].truth
    wrong = truth.wrong(run.report["diagnoses"])
    assert not wrong, f"{wrong}: {run.report}"
    assert run.exit_code == (1 if truth.causes else 0)


NOBODY = Truth()


def of_first(*causes: str) -> Truth:
    """Return the truth of a fault of rank 0."""
    return Truth(causes, (0,), ("node01",))


def of_second(*causes: str, alike: Collection[str] = (), at_least: float = 0.0) -> Truth:
    """Return the truth of a fault of rank 1."""
    return Truth(causes, (1,), ("node02",), alike, at_least=at_least)


def of_third(*causes: str) -> Truth:
    """Return the truth of a fault of rank 2."""
    return Truth(causes, (2,), ("node03",))


def in_code(trouble: str, **more: Any) -> Callable[[Lab], Iterator[Running]]:
    """Return a block in which the program itself goes wrong from step 5 on."""

    def block(lab: Lab) -> Iterator[Running]:
        with running(lab, Job(trouble, **more)) as run:
            run.await_stillness()
            yield run

    return block


def drop(node: Node, *sources: Node) -> None:
    """Lose what comes in from these nodes, but for ssh."""
    faults.firewall(node, *(f"ip saddr {one.address} tcp dport != 22 tcp sport != 22 drop" for one in sources))


# Nothing is wrong


@fault(NOBODY)
def healthy(lab: Lab) -> Iterator[Running]:
    """A training that runs."""
    with running(lab, Job()) as run:
        yield run


@fault(NOBODY)
def healthy_under_torchrun(lab: Lab) -> Iterator[Running]:
    """A training that torchrun started."""
    with running(lab, Job(torchrun=True)) as run:
        yield run


@fault(NOBODY)
def slow_but_balanced(lab: Lab) -> Iterator[Running]:
    """Steps of 3 seconds, the same on all ranks."""
    with running(lab, Job(variables={"PAUSE": "3"}, steps=2)) as run:
        yield run


@fault(NOBODY)
def slow_first_step(lab: Lab) -> Iterator[Running]:
    """A first step that computes for a minute on every rank, as a compiler does."""
    with running(lab, Job(variables={"FIRST": "60"}, steps=0)) as run:
        run.await_words(0, "compiling")
        yield run


@fault(NOBODY, torch=False)
def healthy_mpi(lab: Lab) -> Iterator[Running]:
    """An Open MPI program that runs."""
    with running(lab, Job(mpi=True)) as run:
        yield run


# A rank


@fault(of_second("rank_stopped"))
def stopped(lab: Lab) -> Iterator[Running]:
    """A rank is stopped by SIGSTOP."""
    with running(lab, Job()) as run:
        run.signal(1, "STOP")
        run.await_stillness()
        yield run


@fault(of_second("rank_stopped"))
def stopped_under_torchrun(lab: Lab) -> Iterator[Running]:
    """A rank of torchrun's is stopped by SIGSTOP."""
    with running(lab, Job(torchrun=True)) as run:
        run.signal(1, "STOP")
        run.await_stillness()
        yield run


@fault(of_second("rank_stopped"), torch=False)
def stopped_mpi(lab: Lab) -> Iterator[Running]:
    """A rank of Open MPI's is stopped by SIGSTOP."""
    with running(lab, Job(mpi=True)) as run:
        run.signal(1, "STOP")
        run.await_stillness()
        yield run


@fault(Truth(["rank_missing", "rank_crashed"], ranks=[1]))
def killed(lab: Lab) -> Iterator[Running]:
    """A rank is killed by SIGKILL, while the others wait for a key in torch's store."""
    with running(lab, Job("wait-in-store@1:5")) as run:
        run.await_steps(5)
        run.signal(1, "KILL")
        run.await_stillness()
        yield run


@fault(Truth(["rank_missing", "rank_crashed"], ranks=[2]))
def never_started(lab: Lab) -> Iterator[Running]:
    """A rank was never started."""
    with running(lab, Job(absent=(2,), steps=0)) as run:
        run.await_words(0, "started")
        run.await_stillness()
        yield run


@fault(Truth(["rank_missing", "rank_crashed"], ranks=[1]))
def raised_early(lab: Lab) -> Iterator[Running]:
    """A rank ends by an exception before it meets the others."""
    with running(lab, Job("raised-early@1:0", steps=0)) as run:
        run.await_words(1, "FileNotFoundError")
        run.await_stillness()
        yield run


@fault(of_second("deadlock", "slow_rank", "slow_rank_timeout"))
def stopped_early(lab: Lab) -> Iterator[Running]:
    """A rank waits for something of its own before it meets the others."""
    with running(lab, Job("stopped-early@1:0", steps=0)) as run:
        run.await_words(1, "licence server")
        run.await_stillness()
        yield run


@fault(of_second("deadlock"))
def interpreter_held(lab: Lab) -> Iterator[Running]:
    """A thread of a rank stays in C and keeps Python's global lock."""
    yield from in_code("interpreter-held@1:5")(lab)


@fault(of_second("deadlock", "slow_rank", "slow_rank_timeout", "rank_crashed"))
def exception_caught(lab: Lab) -> Iterator[Running]:
    """A rank catches an exception and sleeps."""
    yield from in_code("caught@1:5")(lab)


@fault(of_second("rank_crashed", "deadlock"))
def exception_with_thread_left(lab: Lab) -> Iterator[Running]:
    """An exception ends a rank's main thread; another thread keeps the process and its sockets."""
    yield from in_code("thread-left@1:5")(lab)


@fault(of_second("deadlock"))
def lock(lab: Lab) -> Iterator[Running]:
    """A rank waits for a lock that it holds itself."""
    yield from in_code("lock@1:5")(lab)


@fault(of_second("deadlock", at_least=SURE))
def endless_loop(lab: Lab) -> Iterator[Running]:
    """A rank loops in Python for ever."""
    yield from in_code("loop@1:5")(lab)


@fault(Truth(("slow_rank",), (0,), ("node01",), at_most=0.49))
def evaluation_on_one_rank(lab: Lab) -> Iterator[Running]:
    """Rank 0 evaluates, alone, for hours."""
    yield from in_code("evaluation@0:5")(lab)


@fault(of_second("slow_rank", "slow_rank_timeout", alike=("deadlock",)))
def slow_rank(lab: Lab) -> Iterator[Running]:
    """A rank computes 100 times as long as the others in each step."""
    with running(lab, Job("slow@1:3", steps=5)) as run:
        yield run


@fault(of_first("deadlock", "rank_stopped"))
def debugger(lab: Lab) -> Iterator[Running]:
    """Rank 0 waits in a breakpoint of pdb."""
    yield from in_code("debugger@0:5")(lab)


@fault(of_first("deadlock", "rank_stopped"))
def question(lab: Lab) -> Iterator[Running]:
    """Rank 0 waits for an answer on its standard input."""
    yield from in_code("question@0:5")(lab)


@fault(of_second("deadlock"))
def full_pipe(lab: Lab) -> Iterator[Running]:
    """A rank prints into a pipe that nobody reads."""
    with running(lab, Job("full-pipe@1:5", unread=(1,), steps=0)) as run:
        run.await_words(0, "step 4")
        run.await_stillness()
        yield run


@fault(of_second("clock_skew", "deadlock", "slow_rank", "slow_rank_timeout"))
def clock_behind(lab: Lab) -> Iterator[Running]:
    """The clock of a node is an hour behind, and its rank waits for a time of day."""
    lab.nodes[1].write("/usr/local/lib/clock.so", compiled("clock.c"), 0o755)
    own = {1: {"LD_PRELOAD": "/usr/local/lib/clock.so", "CLOCK_BY": "-3600"}}
    with running(lab, Job("late-start@1:5", variables={"START_AT": str(time.time())}, own=own)) as run:
        run.await_stillness()
        yield run


# Collectives


@fault(of_second("collective_mismatch"))
def other_collective(lab: Lab) -> Iterator[Running]:
    """A rank calls barrier where the others call all_reduce."""
    yield from in_code("other-collective@1:5")(lab)


@fault(of_second("collective_mismatch"))
def fewer_batches(lab: Lab) -> Iterator[Running]:
    """A rank has fewer batches than the others, and waits at the end of the epoch."""
    yield from in_code("fewer-batches@1:5")(lab)


# Data and checkpoints


@fault(of_second("data_loader"))
def slow_loader(lab: Lab) -> Iterator[Running]:
    """The loader of one rank takes 2 seconds for each sample."""
    with running(lab, Job("slow-loader@1:3", steps=5)) as run:
        yield run


@fault(of_second("data_loader"))
def loader_killed(lab: Lab) -> Iterator[Running]:
    """The process that reads ahead for a rank was killed."""
    with running(lab, Job("dead-worker@1:5")) as run:
        run.ranks[1].sh(f"kill -KILL {run.worker(1)}")
        run.await_stillness()
        yield run


@fault(of_second("data_loader", "rank_stopped"))
def loader_stopped(lab: Lab) -> Iterator[Running]:
    """The worker of a rank's loader is stopped by SIGSTOP."""
    with running(lab, Job()) as run:
        run.ranks[1].sh(f"kill -STOP {run.worker(1)}")
        run.await_stillness()
        yield run


@fault(of_second("storage_hang"))
def loader_on_stuck_mount(lab: Lab) -> Iterator[Running]:
    """The worker of a rank's loader reads from a mount that does not answer."""
    with stuck_folder(lab.nodes[1], "/data"):
        yield from in_code("stuck-mount@1:8")(lab)


@fault(of_first("disk_full", "checkpoint_write"))
def full_disk(lab: Lab) -> Iterator[Running]:
    """Rank 0 cannot write its checkpoint, tries again and again, and the others wait."""
    lab.nodes[0].sh("mkdir -p /ckpt; mount -t tmpfs -o size=1m full /ckpt")
    yield from in_code("full-disk@0:5", variables={"CHECKPOINTS": "/ckpt"})(lab)


@fault(of_first("checkpoint_write"))
def slow_checkpoint(lab: Lab) -> Iterator[Running]:
    """Rank 0 writes its checkpoint through a pipe into a program that takes 4 KB a second."""
    lab.nodes[0].sh(
        "mkdir -p /ckpt; mkfifo /ckpt/weights.pt;"
        "(while head -c 4096; do sleep 1; done </ckpt/weights.pt >/dev/null 2>&1 &) >/dev/null 2>&1"
    )
    yield from in_code("slow-checkpoint@0:5", variables={"CHECKPOINTS": "/ckpt"})(lab)


@fault(of_first("storage_hang"))
def checkpoint_on_stuck_mount(lab: Lab) -> Iterator[Running]:
    """Rank 0 writes its checkpoint to a mount that does not answer."""
    with stuck_folder(lab.nodes[0], "/ckpt"):
        yield from in_code("stuck-checkpoint@0:5", variables={"CHECKPOINTS": "/ckpt"})(lab)


# Memory


@fault(of_second("host_memory"))
def memory_limit(lab: Lab) -> Iterator[Running]:
    """A rank reaches the limit of its memory cgroup, and waits there."""
    with (
        faults.memory_cgroup(lab.nodes[1], 400 << 20) as cgroup,
        running(lab, Job("memory@1:5", cgroups={1: cgroup})) as run,
    ):
        run.await_stillness()
        yield run


# Ranks that work while the others wait: slow or well, and not hung


WAITED_FOR = Truth(("slow_rank", "checkpoint_write"), (0,), ("node01",), at_most=0.49)


@fault(WAITED_FOR)
def compiles(lab: Lab) -> Iterator[Running]:
    """Rank 0 waits for a program that it started, and that computes."""
    yield from in_code("compiles@0:5")(lab)


@fault(WAITED_FOR)
def evaluates_in_python(lab: Lab) -> Iterator[Running]:
    """Rank 0 evaluates, alone, in a loop of Python's."""
    yield from in_code("evaluates-in-python@0:5")(lab)


@fault(WAITED_FOR)
def saves_much(lab: Lab) -> Iterator[Running]:
    """Rank 0 writes 10 MB of a checkpoint in each second."""
    lab.nodes[0].sh("mkdir -p /ckpt; mount -t tmpfs -o size=2g room /ckpt")
    yield from in_code("saves-much@0:5", variables={"CHECKPOINTS": "/ckpt"})(lab)


@fault(WAITED_FOR)
def downloads(lab: Lab) -> Iterator[Running]:
    """Rank 0 downloads, and data arrives."""
    lab.nodes[2].write("/usr/local/bin/trickle", TRICKLE, 0o755)
    lab.nodes[2].sh("(trickle </dev/null >/dev/null 2>&1 &)")
    yield from in_code("downloads@0:5")(lab)


TRICKLE = """#!/usr/bin/python3
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(bytes(100000))
            time.sleep(0.1)
http.server.HTTPServer(("", 8000), Handler).serve_forever()
"""


@fault(of_second("slow_rank", at_least=0.5))
def slow_data(lab: Lab) -> Iterator[Running]:
    """A rank takes 1.5 s more for each step than the others: it waits for data."""
    with running(lab, Job("slow-data@1:3", steps=6)) as run:
        yield run


@fault(of_second("slow_rank", at_least=0.5))
def slow_processor(lab: Lab) -> Iterator[Running]:
    """A rank computes 15 times as long as the others in each step."""
    with running(lab, Job("slow-cpu@1:3", steps=6)) as run:
        yield run


# More of what programs do


@fault(of_second("deadlock", at_least=SURE))
def file_lock(lab: Lab) -> Iterator[Running]:
    """Another program holds the lock of a file that a rank needs."""
    lab.nodes[1].sh("mkdir -p /run/job; (flock /run/job/data.lock sleep 100000 </dev/null >/dev/null 2>&1 &)")
    yield from in_code("file-lock@1:5")(lab)


@fault(of_second("deadlock", "slow_rank"))
def event_loop(lab: Lab) -> Iterator[Running]:
    """A rank waits in asyncio for something that never happens."""
    yield from in_code("event-loop@1:5")(lab)


@fault(of_second("collective_mismatch"))
def new_group_on_one_rank(lab: Lab) -> Iterator[Running]:
    """A rank calls new_group, which all ranks have to call."""
    yield from in_code("new-group@1:5")(lab)


@fault(of_second("rendezvous_misconfig", "deadlock"))
def store_key(lab: Lab) -> Iterator[Running]:
    """A rank waits for a key in torch's store that nobody sets."""
    yield from in_code("store-key@1:5")(lab)


@fault(of_second("deadlock", at_least=SURE))
def regular_expression(lab: Lab) -> Iterator[Running]:
    """A regular expression of a rank's does not come to an end."""
    yield from in_code("pattern@1:5")(lab)


@fault(Truth(("collective_mismatch", "deadlock"), (0, 1), ("node01", "node02")))
def both_receive(lab: Lab) -> Iterator[Running]:
    """Ranks 0 and 1 each wait to receive from the other."""
    yield from in_code("both-receive@0:5")(lab)


@fault(of_third("collective_mismatch", "slow_rank"))
def uneven_destroy(lab: Lab) -> Iterator[Running]:
    """A rank of DDP has fewer batches, ends its process group and goes on alone."""
    yield from in_code("destroy@2:5", program="ddp.py")(lab)


@fault(of_third("collective_mismatch"))
def uneven_broadcast(lab: Lab) -> Iterator[Running]:
    """A rank of DDP has fewer batches and waits in a broadcast."""
    yield from in_code("broadcast@2:5", program="ddp.py")(lab)


# The network


@fault(Truth(["network_stalled", "firewall"], nodes=["node01", "node02"]))
def one_way_loss(lab: Lab) -> Iterator[Running]:
    """What node02 sends to node01 is lost; the other way is open."""
    with running(lab, Job()) as run:
        drop(lab.nodes[0], lab.nodes[1])
        run.await_stillness()
        yield run


@fault(Truth(["network_stalled", "firewall"], nodes=["node01", "node02"]))
def two_way_loss(lab: Lab) -> Iterator[Running]:
    """Nothing passes between node01 and node02."""
    with running(lab, Job()) as run:
        drop(lab.nodes[0], lab.nodes[1])
        drop(lab.nodes[1], lab.nodes[0])
        run.await_stillness()
        yield run


@fault(Truth(["network_stalled", "firewall"], nodes=["node03"]))
def node_cut_off(lab: Lab) -> Iterator[Running]:
    """Nothing but ssh passes between node03 and all others."""
    with running(lab, Job()) as run:
        drop(lab.nodes[2], *lab.nodes[:2])
        run.await_stillness()
        yield run


@fault(Truth(["rank_missing", "node_failed", "network_stalled"], nodes=["node02"]))
def node_dead(lab: Lab) -> Iterator[Running]:
    """A node loses its power: nothing of it answers."""
    with running(lab, Job()) as run:
        lab.nodes[1].sh("ip link set eth0 down")
        run.await_stillness()
        yield run


@fault(Truth(["firewall", "network_stalled", "rendezvous_misconfig"], nodes=["node01", "node02", "node03"]))
def master_firewalled(lab: Lab) -> Iterator[Running]:
    """The port of the rendezvous is closed on node01, without an answer."""
    faults.firewall(lab.nodes[0], "tcp dport 29500 ip saddr != 10.77.0.1 drop")
    with running(lab, Job(steps=0)) as run:
        for rank in range(3):
            run.await_words(rank, "started")
        run.await_stillness()
        yield run


@fault(Truth(["firewall", "network_stalled", "routing"], nodes=["node01", "node02", "node03"]))
def workers_firewalled(lab: Lab) -> Iterator[Running]:
    """The rendezvous works; between the workers all other ports are closed, without an answer."""
    for node in lab.nodes:
        faults.firewall(
            node,
            "tcp dport 29500 accept",
            "tcp sport 29500 accept",
            "tcp flags & (syn | ack) == syn tcp dport > 1024 drop",
        )
    with running(lab, Job(steps=0)) as run:
        for rank in range(3):
            run.await_words(rank, "started")
        run.await_stillness()
        yield run


@fault(Truth(["wrong_nic", "rank_missing", "rank_crashed"]))
def docker0(lab: Lab) -> Iterator[Running]:
    """gloo is set to use docker0, which has the same address on all nodes."""
    for node in lab.nodes:
        faults.docker_bridge(node)
    with running(lab, Job(variables={"GLOO_SOCKET_IFNAME": "docker0"}, steps=0)) as run:
        run.await_words(0, "started")
        run.await_stillness(4)
        yield run


@fault(Truth(["hostname_loopback", "rank_missing", "rank_crashed"]))
def own_name_127_0_1_1(lab: Lab) -> Iterator[Running]:
    """The own name of each node means 127.0.1.1, as Debian sets it up."""
    for node in lab.nodes:
        node.sh(f"sed '1a 127.0.1.1 {node.name}' /etc/hosts >/run/hosts; cat /run/hosts >/etc/hosts")
    with running(lab, Job(steps=0)) as run:
        run.await_words(0, "started")
        run.await_stillness(4)
        yield run


@fault(Truth(["no_interface", "rank_missing", "rank_crashed"], ranks=[1]))
def no_such_interface(lab: Lab) -> Iterator[Running]:
    """GLOO_SOCKET_IFNAME names no interface of node02."""
    with running(lab, Job(own={1: {"GLOO_SOCKET_IFNAME": "eth7"}}, steps=0)) as run:
        run.await_words(1, "eth7")
        run.await_stillness()
        yield run


# What the launcher was given


@fault(of_second("rendezvous_misconfig"))
def other_master_port(lab: Lab) -> Iterator[Running]:
    """One rank was given another MASTER_PORT."""
    with running(lab, Job(own={1: {"MASTER_PORT": "29511"}}, steps=0)) as run:
        run.await_words(1, "started")
        run.await_stillness()
        yield run


@fault(of_second("rendezvous_misconfig"))
def other_master_address(lab: Lab) -> Iterator[Running]:
    """One rank was given a MASTER_ADDR that no host has."""
    with running(lab, Job(own={1: {"MASTER_ADDR": "10.77.0.77"}}, steps=0)) as run:
        run.await_words(1, "started")
        run.await_stillness()
        yield run


@fault(of_second("rendezvous_misconfig", "launcher_mismatch"))
def other_world_size(lab: Lab) -> Iterator[Running]:
    """One rank was given another WORLD_SIZE."""
    with running(lab, Job(own={1: {"WORLD_SIZE": "4"}}, steps=0)) as run:
        run.await_words(1, "started")
        run.await_stillness()
        yield run


# Open MPI


@fault(of_second("deadlock", "slow_rank", "slow_rank_timeout"), torch=False)
def mpi_endless_loop(lab: Lab) -> Iterator[Running]:
    """A rank of Open MPI's computes for ever."""
    with running(lab, Job("loop@1:5", mpi=True)) as run:
        run.await_stillness()
        yield run


@fault(Truth(["network_stalled", "firewall"], nodes=["node01", "node02"]), torch=False)
def mpi_one_way_loss(lab: Lab) -> Iterator[Running]:
    """What node02 sends to node01 is lost while Open MPI works."""
    with running(lab, Job(mpi=True)) as run:
        drop(lab.nodes[0], lab.nodes[1])
        run.await_stillness()
        yield run


@fault(Truth(["firewall", "network_stalled"], nodes=["node01", "node02", "node03"]), torch=False)
def mpi_workers_firewalled(lab: Lab) -> Iterator[Running]:
    """Between the nodes of Open MPI's ranks the ports of its data are closed, without an answer."""
    for node in lab.nodes:
        faults.firewall(node, "tcp dport 1024-1100 ip saddr 10.77.0.0/24 drop")
    with running(lab, Job(mpi=True, steps=0)) as run:
        run.await_ranks()
        run.await_stillness(4)
        yield run


@fault(Truth(["wrong_nic"]), torch=False)
def mpi_docker0(lab: Lab) -> Iterator[Running]:
    """Open MPI is set to use docker0."""
    for node in lab.nodes:
        faults.docker_bridge(node)
    with running(lab, Job(mpi=True, variables={"OMPI_MCA_btl_tcp_if_include": "docker0"}, steps=0)) as run:
        for rank in range(3):
            run.await_words(rank, "started")
        run.await_stillness()
        yield run


@fault(Truth(["firewall", "network_stalled"], nodes=["node01"]), torch=False)
def mpi_head_firewalled(lab: Lab) -> Iterator[Running]:
    """The daemons of mpirun cannot connect to it, and it prints nothing."""
    faults.firewall(lab.nodes[0], "tcp dport > 1023 ip saddr 10.77.0.0/24 tcp flags & (syn | ack) == syn drop")
    with running(lab, Job(mpi=True, steps=0)) as run:
        run.await_processes("orted")
        yield run


@fault(Truth(["ssh_auth", "node_failed", "firewall", "rank_missing"], nodes=["node03"]), torch=False)
def mpi_sshd_frozen(lab: Lab) -> Iterator[Running]:
    """The sshd of node03 takes connections and never answers: mpirun waits for ever."""
    faults.freeze_sshd(lab.nodes[2])
    with running(lab, Job(mpi=True, steps=0)) as run:
        run.await_processes("orted", 1)
        yield run


@fault(Truth(("collective_mismatch",), (0, 1), ("node01", "node02")), torch=False)
def mpi_tags(lab: Lab) -> Iterator[Running]:
    """Rank 1 waits for a message with another tag than the one that rank 0 sends."""
    yield from in_code("tags@0:5", program="halo.py", mpi=True)(lab)


@fault(Truth(("collective_mismatch", "deadlock"), (0, 1), ("node01", "node02")), torch=False)
def mpi_both_send(lab: Lab) -> Iterator[Running]:
    """Ranks 0 and 1 both send first, and more than MPI takes before somebody receives it."""
    yield from in_code("sends@0:5", program="halo.py", mpi=True)(lab)


@fault(of_second("collective_mismatch"), torch=False)
def mpi_other_communicator(lab: Lab) -> Iterator[Running]:
    """Rank 1 waits in a barrier of another communicator."""
    yield from in_code("communicator@1:5", program="halo.py", mpi=True)(lab)
