"""The CUDA toolkit: `nvcc --version`, and the files version.json and version.txt in its folder."""

from __future__ import annotations

import json
import re

from ncheck.expression import expression
from ncheck.parse.capture import lines_of, plain_text

Record = dict[str, object]

# Cuda compilation tools, release 12.1, V12.1.105
_NVCC = expression(r"Cuda compilation tools, release (\d+\.\d+)(?:, V(\d+\.\d+\.\d+))?")

# Built on Mon_Apr__3_17:16:06_PDT_2023
_BUILT = expression(r"^[ \t]*Built on[ \t]+(\S+)", re.MULTILINE)

# Build cuda_12.1.r12.1/compiler.32688072_0
_BUILD = expression(r"^[ \t]*Build (cuda_\S+)", re.MULTILINE)

# CUDA Version 10.2.89
_TXT = expression(r"^[ \t]*CUDA Version (\d+\.\d+(?:\.\d+)?)[ \t]*$", re.MULTILINE)


def parse_toolkit(text: str) -> Record | None:
    """Return `cuda` ("12.1"), with `nvcc` and `build` of nvcc or the `components` of version.json; None for others."""
    plain = "\n".join(lines_of(text))
    if found := _NVCC.search(plain):
        build, built = _BUILD.search(plain), _BUILT.search(plain)
        return {
            "cuda": found[1],
            "nvcc": found[2] or found[1],
            "build": build[1] if build else None,
            "built_on": built[1] if built else None,
        }
    if found := _TXT.search(plain):
        return {"cuda": ".".join(found[1].split(".")[:2]), "toolkit": found[1]}
    return _version_json(text)


def _version_json(text: str) -> Record | None:
    start = text.find("{")
    if start < 0 or '"cuda"' not in text:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(plain_text(text)[start:])
    except (json.JSONDecodeError, RecursionError):
        return None
    versions = {
        name: part["version"]
        for name, part in (found.items() if isinstance(found, dict) else ())
        if isinstance(part, dict) and isinstance(part.get("version"), str)
    }
    if "cuda" not in versions:
        return None
    cuda = ".".join(versions["cuda"].split(".")[:2])
    return {"cuda": cuda, "toolkit": versions["cuda"], "nvcc": versions.get("cuda_nvcc"), "components": versions}
