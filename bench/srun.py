"""What `ncheck --via srun` sends to srun, which copies all of it to every node: it must not grow with their square.

srun is simulated: it says that all tasks have started, and throws away what it is sent. The questions are those of a
real run: the first phase's, and then each node's own list of all addresses of the others.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fanout import ROOT, write

MARK = ("<!-- srun: written by bench/srun.py --write -->", "<!-- end of srun -->")
MOST_EACH = 400  # bytes for one more node, beyond what is sent once
SRUN = """#!{python}
import sys
marker = ""
def say(stream, line):
    print(line, file=stream, flush=True)
for number in range({count}):
    say(sys.stderr, f"srun: launching StepId=7.0 on host n{{number}}, 1 tasks: {{number}}")
for number in range({count}):
    say(sys.stdout, f"{{number}}: ncheck-task")
script = sys.stdin.buffer.readline().decode()
first, second = script.split(";")[:2]
marker = first[2:] + second.partition("}}")[2]
for number in range({count}):
    say(sys.stdout, f"{{number}}: {{marker}} shared {{number:016X}}")
while sys.stdin.buffer.read(65536):
    pass
"""


@dataclass(frozen=True)
class Cost:
    """Bytes that one run sends, in three parts, what the messages of all nodes are together, and seconds of CPU."""

    nodes: int
    once: int
    first: int
    mesh: int
    whole: int
    cpu: float


def measure(count: int) -> Cost:
    """Send what a run over so many nodes does."""
    from ncheck.facts.learning import sources_for
    from ncheck.facts.links import ListenFacts, ask_connect
    from ncheck.facts.login import IdentityFacts, LoginFacts
    from ncheck.facts.nics import Address, Interface, NicFacts
    from ncheck.fleet.bootstrap import bootstrap
    from ncheck.fleet.engines.step import SrunStep, StepStream
    from ncheck.fleet.session import Request
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import Login
    from ncheck.model.node import Node
    from ncheck.parse.interface_names import Kind
    from ncheck.settings import Settings
    from ncheck.steps.phases import wanted_facts
    from ncheck.steps.registry import load_checks

    def nics(number: int) -> NicFacts:
        wires = (Address(f"10.{wire}.{number // 250}.{number % 250 + 1}", 16) for wire in range(2))
        return NicFacts(tuple(
            Interface(f"eth{wire}", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(address,),
                      default_route=wire == 0)
            for wire, address in enumerate(wires)
        ))  # fmt: skip

    settings, names = Settings(via="srun"), [f"n{number}" for number in range(count)]
    known = {}
    for number, name in enumerate(names):
        held = nics(number)
        addresses = [address.ip for nic in held.interfaces for address in nic.addresses]
        ports = {ip: 32768 + (number * 7919 + place * 4001) % 28000 for place, ip in enumerate(addresses)}
        known[name] = {
            LoginFacts: LoginFacts(Login(reached=True)), IdentityFacts: IdentityFacts(name, name, "net:[1]", 0),
            NicFacts: held, ListenFacts: ListenFacts(ports),
        }  # fmt: skip
    cluster = Cluster(tuple(map(Node, names)), known, token="0f3a")  # noqa: S106  no secret
    sources = sources_for(wanted_facts(load_checks().select(()), settings))
    first = Request(sources).frame
    asked = ask_connect(cluster, settings, 40.0)
    different = {id(question): question for (question,) in asked.values()}
    frames = {number: Request((question,)).frame for number, question in different.items()}
    mesh = {name: frames[id(question)] for name, (question,) in asked.items()}
    script = bootstrap("0f3a99bc12d4e5f6", 60.0, shared=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "srun")
        path.write_text(SRUN.format(python=sys.executable, count=count))
        path.chmod(0o755)
        step = SrunStep([str(path)], os.environ, names)
        if not step.settled(60):
            sys.exit("bench: the simulated srun did not start")
        began, sent = time.process_time(), []
        streams = {name: StepStream(step, step.by_node[name], Login(reached=True)) for name in names}
        for message in (script.script.encode() + b"\n", script.rest):
            for stream in streams.values():
                stream.send(message, 60)
        sent.append(step.sent)
        for stream in streams.values():
            stream.send(first, 60)
        sent.append(step.sent)
        for name, stream in streams.items():
            stream.send(mesh[name], 60)
        sent.append(step.sent)
        cpu = time.process_time() - began
        for stream in streams.values():
            stream.close()
    once = sent[0]
    whole = count * once + count * len(first) + sum(map(len, mesh.values()))
    return Cost(count, once, sent[1] - sent[0], sent[2] - sent[1], whole, cpu)


def section(costs: list[Cost]) -> str:
    """Return what was measured, in Markdown."""
    rows = [
        f"| {c.nodes} | {c.once / 1e3:.0f} | {c.first / 1e3:.1f} | {c.mesh / 1e3:.0f} "
        f"| {(c.once + c.first + c.mesh) / 1e3:.0f} | {c.whole / 1e3:.0f} | {c.cpu:.2f} |"
        for c in costs
    ]
    text = (
        "Two addresses per node, all tried from all others, of more than 256 nodes from some forty others. srun is "
        "simulated; it copies its input to every node."
    )
    return "\n".join([
        "## Slurm: what srun is sent", "", text, "",
        "| nodes | script and agent, kB | first questions, kB | addresses, kB | in all, kB | unshared, kB | CPU, s |",
        "|---|---|---|---|---|---|---|", *rows,
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="16,64,256,1000,4096", help="how many nodes, comma-separated")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    costs = []
    for size in map(int, asked.nodes.split(",")):
        costs.append(measure(size))
        print(costs[-1], flush=True)
    print("", section(costs), sep="\n")
    least, most = costs[0], costs[-1]
    each = (most.first + most.mesh - least.first - least.mesh) / max(1, most.nodes - least.nodes)
    if most.nodes > least.nodes and each > MOST_EACH:
        sys.exit(f"bench: one more node costs {each:.0f} bytes, more than {MOST_EACH}")
    if asked.write:
        write(section(costs), ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
