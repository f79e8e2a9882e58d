"""Slurm's programs for bench/scale.py, by the name that it is started with: srun answers in the name of all agents.

No task and no agent is started. What a recorded node said to a question, it says here; what is asked about other nodes
is answered as the question wants it. $SIMULATED_SLURM names the recording; srun leaves there what it cost itself.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import many_nodes
from ncheck.agent.broadcast import AGAIN, DELTA, HEADER, KEPT, LENGTH, LINE, NUMBER, PART, Keeping
from ncheck.agent.frames import framed, inflated, packed, unpacked
from ncheck.fleet.bootstrap import parse_script
from ncheck.fleet.engine import COMMAND_NAME
from ncheck.fleet.engines.step import STARTED

FOLDER = Path(os.environ["SIMULATED_SLURM"])
COUNT = len(list(FOLDER.glob("gpu*.json")))
NOT_THERE = '{"status": "missing", "reason": "not recorded"}'
PYTHON = "3.10.12 /usr/bin/python3"


def squeue() -> None:
    print(many_nodes.listed(COUNT))


def sinfo() -> None:
    for position in range(COUNT):
        print(f"{many_nodes.name(position)}|allocated|{many_nodes.address(position)}|none")


@dataclass
class Agent:
    """One node's agent: the task that it is of the step, and what came for it and is no whole frame yet."""

    task: int
    position: int
    came: bytearray = field(default_factory=bytearray)

    @property
    def name(self) -> str:
        return many_nodes.name(self.position)

    def replies(self) -> dict[str, str]:
        """Return what the node answered, as JSON, by the keys of the questions."""
        _, *lines = (FOLDER / f"{self.name}.json").read_text().removesuffix("}}}\n").splitlines()
        pairs = [json.JSONDecoder().raw_decode(line) for line in lines]
        return {key: line[end + 2 :].removesuffix(",") for line, (key, end) in zip(lines, pairs, strict=True)}

    def answered(self, sources: list[dict[str, Any]]) -> bytes:
        """Return the frame that answers these questions."""
        known = self.replies()
        replies = []
        for source in sources:
            own = self.asked_of_others(source.get("name", ""), source.get("arguments"))
            reply = json.dumps({"status": "ok", "value": own}) if own is not None else known.get(source["key"])
            if reply is None:
                UNKNOWN.add(source["key"])
            replies.append(f"{json.dumps(source['key'])}:{reply or NOT_THERE}")
        frame: bytes = framed(f'{{"is":"replies","replies":{{{",".join(replies)}}}}}'.encode())
        return frame

    def asked_of_others(self, name: str, asked: Any) -> Any:  # noqa: ANN401  JSON
        """Return the answer to a question that says about whom it is; None for any other."""
        if name == "listen":
            ports = dict.fromkeys(asked["addresses"], many_nodes.port(self.position))
            needed = [{**one, "free": True, "taken_by": "", "error": ""} for one in asked["ports"]]
            return {"ports": ports, "failed": {}, "needed": needed}
        if name == "connect":
            return many_nodes.connected(self.name, asked, COUNT)
        if name == "names":
            return {"names": {one: {"addresses": [many_nodes.address(int(one[3:]) - 1)]} for one in asked["names"]}}
        if name == "ssh-peers":
            return {"peers": dict.fromkeys((one["target"] for one in asked["peers"]), many_nodes.RAN)}
        return None


UNKNOWN: set[str] = set()
message_of = lru_cache(maxsize=8)(unpacked)  # many nodes get the same one


class Srun:
    """The step: what came for whom, and what each agent says."""

    def __init__(self, names: list[str]) -> None:
        positions = [int(name[3:]) - 1 for name in names]
        self.agents = [Agent(task, position) for task, position in enumerate(positions)]
        self.by_address = {struct.pack(">Q", agent.position): agent for agent in self.agents}
        self.kept = Keeping()
        self.texts: dict[int, bytes] = {}
        self.said = self.read = 0
        self.raw = bytearray()
        self.waiting: SimpleQueue[bytes] = SimpleQueue()

    def run(self) -> None:
        """Answer until the input ends. As with srun, output that nobody reads holds up no input."""
        writer = threading.Thread(target=self.write)
        writer.start()
        try:
            self.answer()
        finally:
            self.waiting.put(b"")
            writer.join()

    def write(self) -> None:
        with suppress(BrokenPipeError):
            while data := self.waiting.get():
                view = memoryview(data)
                while view:
                    view = view[os.write(1, view) :]

    def answer(self) -> None:
        error = "".join(f"srun: launching StepId=7.0 on host {a.name}, 1 tasks: {a.task}\n" for a in self.agents)
        sys.stderr.write(error)
        sys.stderr.flush()
        for agent in self.agents:
            self.say(agent, STARTED)
        line = self.exactly_to(b"\n")
        marker, size = parse_script(line.decode())
        for agent in self.speaking():
            lines = ["", "hello", f"command {COMMAND_NAME}", f"host {agent.name}", f"boot {agent.position:036x}",
                     "net net:[4026531840]", "uid 1001", "end"]  # fmt: skip
            self.say(agent, b"", *(f"{marker} {one}".encode() for one in lines[1:]))
        self.exactly(size or 0)
        for agent in self.speaking():
            lines = ["started", "files 1048576", "try python3", f"go {PYTHON}", f"shared {agent.position:016X}"]
            self.say(agent, *(f"{marker} {one}".encode() for one in lines))
        while self.record():
            pass

    def speaking(self) -> list[Agent]:
        planted = many_nodes.planted(COUNT)
        return [one for one in self.agents if one.position not in planted or planted[one.position].how != "silent"]

    def record(self) -> bool:
        """Take one record of agent/broadcast.py; tell whether there was one."""
        header = self.exactly(HEADER.size)
        if len(header) < HEADER.size:
            return False
        address, kind, number = HEADER.unpack(header)
        data = b"" if kind == AGAIN else self.exactly(number)
        if kind == KEPT:
            self.kept.keep(data)
        elif kind == AGAIN:
            data = self.kept.items[number]
        elif kind == DELTA:
            data = self.put_together(data)
        if agent := self.by_address.get(address):
            agent.came += data
            self.hear(agent)
        return True

    def put_together(self, parts: bytes) -> bytes:
        (number,) = NUMBER.unpack_from(parts)
        if number not in self.texts:
            self.texts = {number: inflated(self.kept.items[number][LENGTH:])}
        base, at, pieces = self.texts[number], NUMBER.size, []
        while at < len(parts):
            offset, length, own = PART.unpack_from(parts, at)
            at += PART.size
            pieces += base[offset : offset + length], parts[at : at + own]
            at += own
        frame: bytes = framed(b"".join(pieces))
        return frame

    def hear(self, agent: Agent) -> None:
        """Answer the whole frames that came for an agent."""
        while len(agent.came) >= LENGTH:
            end = LENGTH + int.from_bytes(agent.came[:LENGTH], "big")
            if len(agent.came) < end:
                return
            message = message_of(bytes(agent.came[LENGTH:end]))
            del agent.came[:end]
            if message["do"] == "start":
                self.frame(agent, packed({"is": "started"}))
            elif message["do"] == "ping":
                self.frame(agent, packed({"is": "pong", "time": time.time()}))
            elif message["do"] == "collect":
                self.frame(agent, agent.answered(message["sources"]))

    def frame(self, agent: Agent, data: bytes) -> None:
        self.say(agent, *(base64.b64encode(data[at : at + LINE]) for at in range(0, len(data), LINE)))

    def say(self, agent: Agent, *lines: bytes) -> None:
        data = b"".join(b"%d: %s\n" % (agent.task, line) for line in lines)
        self.waiting.put(data)
        self.said += len(data)

    def exactly(self, wanted: int) -> bytes:
        """Return that many bytes of standard input, fewer at its end."""
        while len(self.raw) < wanted and (data := os.read(0, 1 << 20)):
            self.raw += data
        data = bytes(self.raw[:wanted])
        del self.raw[:wanted]
        self.read += len(data)
        return data

    def exactly_to(self, end: bytes) -> bytes:
        while end not in self.raw:
            self.raw += os.read(0, 1 << 16)
        return self.exactly(self.raw.index(end) + 1)


def srun() -> None:
    from ncheck.hostlist import unfold

    (nodes,) = (word.partition("=")[2] for word in sys.argv if word.startswith("--nodelist="))
    step = Srun(list(unfold(nodes)))
    try:
        step.run()
    finally:
        cost = {"read": step.read, "said": step.said, "cpu": time.process_time(), "unknown": sorted(UNKNOWN)}
        (FOLDER / "srun-cost").write_text(json.dumps(cost))


{"srun": srun, "squeue": squeue, "sinfo": sinfo}[Path(sys.argv[0]).name]()
