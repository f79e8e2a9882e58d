"""What the agent's own functions say, one module each, as JSON values. Nothing is judged here.

A function that cannot answer raises: OSError and the like become a failed reply, `MissingError` a missing one. Each
module has `answer(sources, arguments, timeout)`. What it returns is declared on the head, by the record of the fact
that is made of it (`shape` of its Answer): null stands for what could not be read or does not exist; where why matters,
an {"error": "words"} stands in its place. Only `listen`, `connect` and the probe's answers are described on this side,
in their modules: their readers check each value.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

# What is asked under two names is one module; every other answer has the module of its own name.
_ALSO_CALLED = {"planned-nccl-pick": "nccl-pick", "later-error-counters": "error-counters"}

# What only the bandwidth test or the triage asks for lies in its own room, and travels to a node only when asked for.
ROOM_OF = "room of "  # before an answer's name: what a node requests
ROOMS = ("ncheck.probe.agent", "ncheck.triage.agent")


def module_of(name: str) -> "ModuleType":
    """Return the module that answers to a name. Raises ImportError where there is none, or its room is not here."""
    word = _ALSO_CALLED.get(name, name).replace("-", "_")
    for package in (__name__, *ROOMS):
        module = package + "." + word
        try:
            return import_module(module)
        except ImportError as error:
            if not (module + ".").startswith(str(error.name) + "."):  # one that this module imports is missing
                raise
    raise ImportError("no answer is called " + name, name=name)


WATCHED = 2.0  # seconds for which a running job is watched, by all answers at the same time


class MissingError(Exception):
    """What was asked about is not on this node: no such device, program or library."""
