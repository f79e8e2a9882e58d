"""Modules that travel to a node only when its agent asks for them."""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache

_TRAVEL = frozenset({"pynvml"})  # one pure file; a node gets nothing else, whatever it asks for


RANK_PROGRAM = "rank-program"


@cache
def module_text(name: str) -> str | None:
    """Return the text of a module that may travel; None for any other, and where it is not installed here."""
    if name == RANK_PROGRAM:
        return rank_program()
    if name not in _TRAVEL:
        return None
    from importlib.util import find_spec

    spec = find_spec(name)
    source = getattr(spec.loader, "get_source", None) if spec else None
    text = source(name) if source else None
    return text if isinstance(text, str) else None


_PACKAGE = "ncheck.agent.tasks.nccl_rank"


_ALSO = (
    "ncheck.agent.boot",
    "ncheck.agent.commands",
    "ncheck.agent.tasks.counters",
    "ncheck.agent.tasks.segments",
    "ncheck.agent.files",
)  # what it shares with the agent


# One line without a quote that a shell, mpirun or srun could read otherwise; it begins with what tells people who look
# at a list of processes. What lies in the current folder is not imported: the user's own json.py may be there.
_LOADER = (
    '"ncheck-rank";import sys;sys.path[:]=[p for p in sys.path if p];import zlib,base64,json;'
    't=json.loads(zlib.decompress(base64.b64decode("{packed}")).decode());g={{"__name__":"boot"}};'
    'exec(t["ncheck.agent.boot"],g);sys.meta_path.insert(0,g["MemoryImporter"](t));'
    "from ncheck.agent.tasks.nccl_rank.main import main;main(sys.argv[1:])"
)


@cache
def rank_program() -> str:
    """Return the program; what it takes and tells stands in agent/tasks/nccl_rank/__init__.py. Made once."""
    from importlib.resources import files

    texts = {"ncheck": "", "ncheck.agent": "", "ncheck.agent.tasks": ""}
    texts |= {name: _text(*name.rpartition(".")[::2]) for name in _ALSO}
    for entry in sorted(files(_PACKAGE).iterdir(), key=lambda entry: entry.name):
        if entry.name == "__init__.py":
            texts[_PACKAGE] = ""  # its words are for people
        elif entry.name.endswith(".py"):
            texts[f"{_PACKAGE}.{entry.name.removesuffix('.py')}"] = entry.read_text("utf-8")
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return _LOADER.format(packed=packed)


def _text(package: str, name: str) -> str:
    from importlib.resources import files

    return (files(package) / f"{name}.py").read_text("utf-8")
