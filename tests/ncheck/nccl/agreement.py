"""Which interface a real NCCL picks under many settings, and which one ncheck's own rules pick.

`python agreement.py FOLDER...` compares the two for the libnccl.so.2 in each folder, and ends with 1 where they differ.
test_made_interfaces.py runs it where interfaces are made for it.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ncheck.agent.answers import nccl_pick
from ncheck.agent.answers.nccl_loaded import spelled
from ncheck.agent.sources import Sources
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.learning import facts_of
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.evidence import Answer, Evidence, JsonValue, Login, Reply, Status
from ncheck.nccl.choice import Choice, located, nccl_choice
from ncheck.nccl.settings import release_of, settings_in_force
from ncheck.plan.planned_pick import PLANNED, PlannedPickFacts

# Before 2.28.3 a link's state did not count.
RELEASES = ("2.19.3", "2.28.3")

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"NCCL_SOCKET_IFNAME": "lo"},
    {"NCCL_SOCKET_IFNAME": "=lo"},
    {"NCCL_SOCKET_IFNAME": "^lo"},
    {"NCCL_SOCKET_IFNAME": "^nothing"},
    {"NCCL_SOCKET_IFNAME": "nothing"},
    {"NCCL_SOCKET_IFNAME": "^docker0"},
    {"NCCL_SOCKET_IFNAME": "^lo,docker"},
    {"NCCL_SOCKET_IFNAME": "eth1"},
    {"NCCL_SOCKET_IFNAME": "=eth1"},
    {"NCCL_SOCKET_IFNAME": "eth10,eth1"},
    {"NCCL_SOCKET_IFNAME": "e"},
    {"NCCL_SOCKET_IFNAME": "ETH0"},
    {"NCCL_SOCKET_IFNAME": " eth0"},
    {"NCCL_SOCKET_IFNAME": "10.1.0.7"},
    {"NCCL_SOCKET_FAMILY": "AF_INET"},
    {"NCCL_SOCKET_FAMILY": "AF_INET6"},
)
RENDEZVOUS = ("127.0.0.1:4444", "10.4.0.99:4444", "[fd00::99]:4444")

Pick = Callable[[dict[str, str]], NcclPickFacts]


def compared(nics: NicFacts, environment: EnvironmentFacts, release: str, picked: Pick) -> tuple[object, object]:
    """Return what NCCL picks under each setting and what our rules do; several interfaces may have its address."""
    actual, reasoned = {}, {}
    for settings in SETTINGS:
        pick = picked(settings)
        choice = reasoned_out(nics, environment, release, settings)
        owners = located(nics, pick) if pick.address else ()
        actual[str(settings)] = (pick.version, choice.picked if choice.picked in owners else owners[:1] or None)
        reasoned[str(settings)] = (release, choice.picked)
    return actual, reasoned


def compared_rendezvous(
    nics: NicFacts, environment: EnvironmentFacts, release: str, picked: Pick, rendezvous: str
) -> tuple[object, object]:
    """Return the same for an address that NCCL_COMM_ID gives: NCCL echoes it, or refuses it."""
    pick = picked({"NCCL_COMM_ID": rendezvous})
    choice = reasoned_out(nics, environment, release, {"NCCL_COMM_ID": rendezvous})
    return (pick.address, pick.rendezvous, bool(pick.error)), ("", rendezvous, choice.picked is None)


def reasoned_out(nics: NicFacts, environment: EnvironmentFacts, release: str, settings: dict[str, str]) -> Choice:
    numbers = release_of(release)
    return nccl_choice(nics, {**settings_in_force(environment, numbers), **settings}, numbers)


def read_pick(variables: dict[str, str], reply: Reply) -> NcclPickFacts:
    """Return the pick in the agent's answer, read as the head reads it."""
    fact = facts_of(Evidence("here", Login(reached=True), replies={PLANNED.key: reply}), (PlannedPickFacts,))
    tried = fact[PlannedPickFacts]
    assert isinstance(tried, PlannedPickFacts), tried
    assert tried.variables == variables
    return tried.pick


def main(folders: list[str]) -> int:
    replies = {}
    sources = Sources(dict(os.environ))
    sources.start({"environment": {"python": sys.executable}})
    for source in (Answer("interfaces"), Answer("environment")):
        answer = sources.respond({"kind": "answer", "name": source.name, "timeout": 60.0, "arguments": None})
        replies[source.key] = Reply(Status(answer["status"]), str(answer.get("reason")), value=answer.get("value"))
    facts = facts_of(Evidence("here", Login(reached=True), replies=replies), (NicFacts, EnvironmentFacts))
    nics, environment = facts[NicFacts], facts[EnvironmentFacts]
    assert isinstance(nics, NicFacts), nics
    assert isinstance(environment, EnvironmentFacts), environment
    differing = 0
    for folder in map(Path, folders):
        found = json.loads(_in_child(lambda folder=folder: _compare(nics, environment, folder)))  # type: ignore[misc]
        print(*found, sep="\n")  # noqa: T201  for the one who started this
        differing += len(found)
    return 1 if differing else 0


def _compare(nics: NicFacts, environment: EnvironmentFacts, folder: Path) -> str:
    """Return as JSON what differs for one release. Its library is opened once, in this process; no other one is."""
    library = str(folder / "libnccl.so.2")
    ctypes.CDLL(library)

    def picked(settings: dict[str, str]) -> NcclPickFacts:
        """Ask in a child of its own, by the agent's own program: NCCL reads its settings once in a process."""
        lines = _in_child(lambda: _ask(library, settings)).splitlines()
        (line,) = (line for line in lines if line.startswith("ncheck:"))
        answer = json.loads(line.removeprefix("ncheck:"))
        asked: JsonValue = {"variables": dict(settings), "interfaces": []}
        value = {name: answer[name] for name in ("code", "id", "words", "rendezvous", "path")}
        return read_pick(
            settings, Reply(Status.OK, value={**value, "version": spelled(answer["number"]), "asked": asked})
        )

    release = folder.name
    pairs = [compared(nics, environment, release, picked)]
    pairs += [compared_rendezvous(nics, environment, release, picked, where) for where in RENDEZVOUS]
    return json.dumps([f"NCCL {release}: {one}\nncheck: {other}" for one, other in pairs if one != other])


def _ask(library: str, settings: dict[str, str]) -> str:
    os.environ.update({**settings, **nccl_pick._QUIET})
    sys.argv = ["ask", library]
    exec(nccl_pick._ASK, {})  # noqa: S102  prints its answer and ends this child
    return ""


def _in_child(function: Callable[[], str]) -> str:
    """Return what a fork of this process prints and returns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(writing, 1)
        os.close(reading)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stdout.write(function())
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, text
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
