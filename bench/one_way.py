"""The agent for a launcher that cannot hold a conversation: all its questions travel with it, and it ends by itself.

What clush is compared with: the same modules, the same sources, four at a time as ever.
"""

from __future__ import annotations

import json
import zlib

from ncheck.facts.learning import sources_for
from ncheck.fleet.bootstrap import agent_blob
from ncheck.fleet.framing import on_the_wire
from ncheck.model.evidence import Answer
from ncheck.steps.judge import facts_wanted
from ncheck.steps.registry import load_checks

# Runs on the node: the texts of the modules and the sources come on standard input, zlib over JSON.
NODE = """
import sys, json, zlib, os
from concurrent.futures import ThreadPoolExecutor
given = json.loads(zlib.decompress(sys.stdin.buffer.read()).decode())
boot = {"__name__": "boot"}
exec(given["texts"]["ncheck.agent.boot"], boot)
sys.meta_path.insert(0, boot["MemoryImporter"](given["texts"]))
from ncheck.agent.frames import packed
from ncheck.agent.sources import Sources
sources = Sources()
sources.start({"command_timeout": 10.0, "sudo": False, "setup_timeout": 30.0, "environment": {}})
with ThreadPoolExecutor(4) as pool:
    for reply in pool.map(lambda source: sources.respond(source, lambda name: None), given["sources"]):
        sys.stdout.write(packed(reply).hex() + "\\n")
"""


def input_of_all() -> bytes:
    """Return what is written to each node's standard input."""
    wanted = sources_for(facts_wanted(load_checks().select(())))
    asked = [on_the_wire(source) for source in wanted if source not in (Answer("ssh-peers"), Answer("clock"))]
    texts = json.loads(zlib.decompress(agent_blob()))
    return zlib.compress(json.dumps({"texts": texts, "sources": asked}).encode(), 9)


def command() -> str:
    """Return the remote command: one word of shell holds the program."""
    lines = NODE.strip().replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f"python3 -I -B -c 'exec(\"{lines}\")'"
