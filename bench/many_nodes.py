"""A recording of thousands of nodes: one recorded node of tests/recorded, made each node's own, and some with a fault.

A node's own are its name, addresses, GUIDs, UUIDs, LIDs, listening port, and which nodes it dialled, reached by ssh and
has in its ARP table. To describe each node anew would take minutes, so the text of one is written for the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncheck.model.evidence import Answer

RACK = 16  # nodes that know each other's hardware addresses
TEMPLATE = 4999  # the number of the node that is described: no other has it
PLANTED = 20  # nodes with a fault
# What a node says of an ssh that reached another one.
RAN = {"exit_status": 0, "stderr": "", "seconds": 0.19, "cut_short": False, "ran": True, "port": None}


@dataclass(frozen=True, eq=False)
class Fault:
    """What is wrong with a node: the check that finds it, and how its description differs.

    `how`: "silent" where its task starts and answers nothing, "refuses" where it refuses the others' connections.
    """

    code: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    how: str = ""

    @property
    def lost(self) -> bool:
        return self.how == "silent"


@cache
def faults() -> tuple[Fault, ...]:
    """Return the faults that are planted in turn."""
    from ncheck.model.evidence import Cause

    from tests.recorded.clusters import hcas, polling

    silent = {"cause": Cause.NO_SHELL, "detail": "the login shell did not answer within 15 s"}
    return (
        Fault("NC201", {"nccl": "2.20.5"}),
        Fault("NC501", {"gpus": 7}),
        Fault("NC402", {"hcas": polling(hcas(), "mlx5_3")}),
        Fault("NC310", how="refuses"),
        Fault("NC124", silent, "silent"),
    )


@cache
def planted(count: int) -> Mapping[int, Fault]:
    """Return which nodes have which fault, by position: spread over the list, the first node healthy."""
    step = count // (PLANTED + 1)
    return {(at + 1) * step: faults()[at % len(faults())] for at in range(PLANTED)}


def name(position: int) -> str:
    return f"gpu{position + 1:04}"


def listed(count: int) -> str:
    """Return the names of all nodes, as Slurm lists them."""
    return f"gpu[0001-{count:04}]"


def address(position: int) -> str:
    from tests.recorded.host import address

    return address(position + 1)


def neighbours(position: int, count: int) -> list[int]:
    """Return the nodes in a node's ARP table: those of its rack, and others at distances that double."""
    first = position - position % RACK
    found = dict.fromkeys(range(first, min(count, first + RACK)))
    distance = 1
    while distance < count:
        found |= dict.fromkeys([(position + distance) % count, (position - distance) % count])
        distance *= 2
    return [other for other in found if other != position]


@cache
def dialled(count: int) -> Mapping[str, Answer]:
    """Return how each node that answers is asked to `connect`, as a run over so many nodes asks it."""
    from ncheck.facts.links import ListenFacts, ask_connect
    from ncheck.facts.login import IdentityFacts, LoginFacts
    from ncheck.facts.nics import Address, Interface, NicFacts
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import Answer, Login
    from ncheck.model.node import Node
    from ncheck.parse.interface_names import Kind
    from ncheck.settings import Settings

    def known(position: int) -> dict[type[object], object]:
        if (fault := planted(count).get(position)) and fault.lost:
            return {LoginFacts: LoginFacts(Login(reached=False))}
        wire = Interface(
            "eno1", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(address(position), 16),),
            default_route=True,
        )  # fmt: skip
        return {
            LoginFacts: LoginFacts(Login(reached=True)),
            IdentityFacts: IdentityFacts(name(position), name(position), "", 0),
            NicFacts: NicFacts((wire,)), ListenFacts: ListenFacts({address(position): port(position)}),
        }  # fmt: skip

    names = list(map(name, range(count)))
    cluster = Cluster(tuple(map(Node, names)), {one: known(position) for position, one in enumerate(names)})
    asked = ask_connect(cluster, Settings(), 40.0)
    return {one: ask for one, (ask,) in asked.items() if isinstance(ask, Answer)}


def write_recording(folder: Path, count: int) -> None:
    """Write the recording of so many nodes."""
    folder.mkdir(parents=True)
    for position in range(count):
        (folder / f"{name(position)}.json").write_text(recorded(position, count))


def recorded(position: int, count: int) -> str:
    """Return the file of one node of a recording of so many."""
    first, replies = template(planted(count).get(position))
    own = own_replies(position, count) if replies else {}
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(own[key]) if key in own else reply}" for key, reply in replies.items()
    )
    first = re.sub(r'"position": \d+, "of": \d+', f'"position": {position}, "of": {count}', first, count=1)
    return renamed(f"{first}\n{lines}", position) + "}}}\n"


@cache
def template(fault: Fault | None) -> tuple[str, dict[str, str]]:
    """Return the file of a node: its first line, and the JSON of each reply by its key."""
    from ncheck.fleet.recording import encode

    from tests.recorded.clusters import hcas, nics
    from tests.recorded.host import Host
    from tests.recorded.make import evidence

    own = {"nics": nics(TEMPLATE, prefix=16), "hcas": hcas(), **(fault.changes if fault else {})}
    host = Host(f"gpu{TEMPLATE}", TEMPLATE, **own)
    text = encode(evidence(host, TEMPLATE), 0, 1)
    text = re.sub(r'(?<=gc_thresh3": ")1024', "16384", text)  # as whoever sets up so many nodes in one subnet has it
    first, *lines = text.removesuffix("}}}\n").splitlines()
    pairs = (json.JSONDecoder().raw_decode(line) for line in lines)
    return first, {key: line[end + 2 :].removesuffix(",") for line, (key, end) in zip(lines, pairs, strict=True)}


def own_replies(position: int, count: int) -> dict[str, Any]:
    """Return what a node says of the others: whom it dialled, and reached by ssh, and its ARP table."""
    from ncheck.network.ssh_edges import edges

    from tests.recorded.host import mac
    from tests.recorded.links import TORCH_PORT

    table = "IP address       HW type     Flags       HW address            Mask     Device\n"
    table += "".join(
        f"{address(at):16} 0x1         0x2         {mac(at + 1, 2)}     *        eno1\n"
        for at in neighbours(position, count)
    )
    needed = [{"port": TORCH_PORT, "assumed": True, "free": True, "taken_by": "", "error": ""}]
    asked = dialled(count)[name(position)]
    lost = {at for at, fault in planted(count).items() if fault.lost}
    targets = [at for at in edges(count, "auto").get(position, ()) if at not in lost]
    names = {name(at): {"addresses": [address(at)]} for at in sorted({0, position, *targets})}
    said = {
        "file:/proc/net/arp": table,
        "answer:names": {"names": names},
        "answer:listen": {
            "ports": {address(position): port(position)},
            "failed": {},
            "needed": needed * (not position),
        },
        "answer:connect": connected(name(position), asked.arguments, count),
    }
    if targets:
        said["answer:ssh-peers"] = {"peers": dict.fromkeys(map(name, targets), RAN)}
    replies = {key: {"status": "ok", "value": value, "seconds": 0.01} for key, value in said.items()}
    if asked.kept:  # of many nodes each dials some: with the reply is kept which
        replies["answer:connect"]["asked"] = asked.kept[name(position)]
    return replies


def port(position: int) -> int:
    """Return where a node listens for the others."""
    return 32768 + position * 7919 % 28000


def connected(own: str, asked: Any, count: int) -> dict[str, Any]:  # noqa: ANN401  JSON
    """Return what a node answers that is asked to connect to others: agent/answers/connect.py describes both."""
    from ncheck.agent.answers import connect

    links = list(connect.rows(connect.part_of(own, asked)))
    refusing = {name(at) for at, fault in planted(count).items() if fault.how == "refuses"}
    tried: dict[tuple[str, str], list[bool]] = {}
    for node, source, _, _, subnet, job in links:
        if not job:
            tried.setdefault((subnet, source), []).append(node not in refusing)
    broken = [
        {"source": source, "target": node, "address": ip, "subnet": subnet, "cause": "refused",
         "detail": "connection refused", "port": number if job else 0}
        for node, source, ip, number, subnet, job in links if node in refusing
    ]  # fmt: skip
    reaches = [
        {"subnet": subnet, "source": source, "tried": len(reached), "reached": sum(reached)}
        for (subnet, source), reached in tried.items()
    ]
    tried_to = sorted({node for node, *_ in links})
    return {"reaches": reaches, "broken": broken, "tried": tried_to, "lossy": [], "counted": True, "late": []}


def renamed(text: str, position: int) -> str:
    """Return a text of the template with what is this node's own in the place of what is the template's."""
    from tests.recorded.host import mac

    old, new, of_old, of_new = TEMPLATE, position + 1, address(TEMPLATE - 1), address(position)
    for before, after in (
        (f"gpu{old}", name(position)), (of_old, of_new), (_hex(of_old), _hex(of_new)),
        (f"nodes.txt:{old}", f"nodes.txt:{new}"), (mac(old, 0)[:-2], mac(new, 0)[:-2]),
        (f"fe80::{old:x}:", f"fe80::{new:x}:"),
        (f"025e1003{old:04x}", f"025e1003{new:04x}"), (f"025e:1003:{old:04x}:", f"025e:1003:{new:04x}:"),
        (f'"clock_error": {120000 + old}', f'"clock_error": {120000 + new}'),
        (_boot(f"gpu{old}"), _boot(name(position))),
    ):  # fmt: skip
        text = text.replace(before, after)
    text = re.sub(r"GPU-[0-9a-f]{8}(?=-)", f"GPU-{new:08x}", text)
    text = re.sub(r"(?<=Base lid: )\d+", lambda lid: str(_lid(int(lid[0]), new)), text)
    return re.sub(r'(?<=/lid": ")0x[0-9a-f]+', lambda lid: f"{_lid(int(lid[0], 16), new):#x}", text)


def _boot(node: str) -> str:
    from tests.recorded.host import Host

    return Host(node, 0, (), ()).identifier("boot")


def _hex(ip: str) -> str:
    """Return an address as NCCL's id has it."""
    return "".join(f"{int(part):02x}" for part in ip.split("."))


def _lid(lid: int, number: int) -> int:
    """Return the LID of the same port on another node; that of a port that is down is none."""
    place = lid - TEMPLATE * 16
    return number * 8 + place if 0 <= place < 8 else lid  # noqa: PLR2004  one for each HCA
