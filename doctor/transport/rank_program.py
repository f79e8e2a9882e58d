"""The rank program as one text: what `python3 -B -S -c TEXT` runs, with nothing written anywhere."""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache

_PACKAGE = "doctor.agent.turns.nccl_rank"
_ALSO = (
    "doctor.agent.boot",
    "doctor.agent.commands",
    "doctor.agent.turns.counters",
    "doctor.agent.turns.segments",
    "doctor.agent.files",
)  # what it shares with the agent
# One line without a quote that a shell, mpirun or srun could read otherwise; it begins with what tells people who look
# at a list of processes. What lies in the current folder is not imported: the user's own json.py may be there.
_LOADER = (
    '"ncheck-rank";import sys;sys.path[:]=[p for p in sys.path if p];import zlib,base64,json;'
    't=json.loads(zlib.decompress(base64.b64decode("{packed}")).decode());g={{"__name__":"boot"}};'
    'exec(t["doctor.agent.boot"],g);sys.meta_path.insert(0,g["MemoryImporter"](t));'
    "from doctor.agent.turns.nccl_rank.main import main;main(sys.argv[1:])"
)


@cache
def rank_program() -> str:
    """Return the program; what it takes and tells stands in doctor/agent/turns/nccl_rank/__init__.py. Made once."""
    from importlib.resources import files  # noqa: PLC0415  only a probe needs it

    texts = {"doctor": "", "doctor.agent": "", "doctor.agent.turns": ""}
    texts |= {name: _text(*name.rpartition(".")[::2]) for name in _ALSO}
    for entry in sorted(files(_PACKAGE).iterdir(), key=lambda entry: entry.name):
        if entry.name == "__init__.py":
            texts[_PACKAGE] = ""  # its words are for people
        elif entry.name.endswith(".py"):
            texts[f"{_PACKAGE}.{entry.name.removesuffix('.py')}"] = entry.read_text("utf-8")
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return _LOADER.format(packed=packed)


def _text(package: str, name: str) -> str:
    from importlib.resources import files  # noqa: PLC0415  only a probe needs it

    return (files(package) / f"{name}.py").read_text("utf-8")
