"""How much longer the nodes that answer take when others are silent, in one run. `make bench` runs it.

Of 1,000 nodes 200 drop what is sent to them, and come first in the list. What is compared is the time until the last of
the other 800 was examined, with and without the silent ones.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import loopback
from fanout import ROOT, described, environ_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Prints how many nodes were reached, and the seconds until the last of them was done.
PROGRAM = """
import json, sys, time
from ncheck.observer import Silent
from ncheck.pipeline import examine
from ncheck.settings import Settings

class Times(Silent):
    def __init__(self):
        self.done = {}
    def stage(self, node, stage, *, slow=False):
        if stage == "done":
            self.done.setdefault(node, time.monotonic())

times, began = Times(), time.monotonic()
settings = Settings(nodes_file=sys.argv[1], ssh_config=sys.argv[2], select=("NC1",), probe="none", mesh="none")
report = examine(settings, times)
reached = [node.name for node in report.nodes if node.reached]
print(json.dumps([len(reached), max(times.done[name] for name in reached) - began]))
"""


@contextmanager
def silent() -> Iterator[int]:
    """Hold a port whose queue of connections is full: what asks for another one is dropped."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("", 0))
        listener.listen(0)
        for _ in range(3):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)  # noqa: FBT003
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def seconds(listing: Path, cluster: loopback.Cluster, expected: int) -> float:
    """Return the seconds until the last node that answers was examined; end the bench where one did not."""
    argv = [sys.executable, "-c", PROGRAM, str(listing), str(cluster.config)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False,
                          env={**os.environ, **environ_of(cluster.config.parent)})  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"bench: {done.stderr[-1000:]}")
    reached, took = json.loads(done.stdout.splitlines()[-1])
    if reached != expected:
        sys.exit(f"bench: {reached} nodes of {expected} were reached")
    return float(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=loopback.MOST)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", choices=("cheap", "real"), default="cheap")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if asked.servers == "cheap" and (lacking := loopback.why_not_cheap()):
        print(f"bench: the wait for silent nodes was not measured. The cheap servers need {lacking}")
        return
    good = asked.nodes * 4 // 5
    with loopback.folder() as folder, getattr(loopback, asked.servers)(folder) as cluster, silent() as port:
        alone = cluster.listing(good)
        both = folder / "both"
        dead = (f"127.9.{number // 250}.{number % 250 + 1} port={port}\n" for number in range(asked.nodes - good))
        both.write_text("".join([*dead, alone.read_text()]))
        took: dict[Path, list[float]] = {alone: [], both: []}
        for _ in range(asked.rounds):
            for listing, times in took.items():
                times.append(seconds(listing, cluster, good))
    without, with_them = statistics.median(took[alone]), statistics.median(took[both])
    print(f"{good} nodes examined in {without:.2f} s; with {asked.nodes - good} silent ones ahead of them in "
          f"{with_them:.2f} s: {with_them / without:.2f} x")  # fmt: skip
    print(described())


if __name__ == "__main__":
    main()
