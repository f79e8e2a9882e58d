"""The NCCL that the job would load, and the environment in which ncclGetUniqueId and the ranks run."""

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_loaded import AskingLibraries, loaded
from ncheck.agent.commands import ENVIRONMENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional, Tuple

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Sources

# Of a program in which `library` is NCCL, and `code` what it returned: `error` is what NCCL says of that.
WHY = r"""def words(function, argument):
    call = getattr(library, function, None)
    if call is None: return ""
    call.restype, call.argtypes = ctypes.c_char_p, [type(argument)]
    return (call(argument) or b"").decode("utf-8", "replace").strip()
error = code and (words("ncclGetLastError", ctypes.c_void_p()) or words("ncclGetErrorString", ctypes.c_int(code)))
"""


def job_nccl(sources: "Sources", ends: float) -> "Tuple[str, str]":
    """Return (path, version) of the copy that the job's interpreter loads; MissingError where none can be driven.

    It is looked for once: what was found is kept for the steps to come.
    """
    found = sources.kept.get("nccl") or loaded(
        sources.job, ("a copy may be there",), AskingLibraries(sources.job, ends)
    )
    if found is None:
        raise MissingError("no NCCL that the job's interpreter would load")
    if "error" in found:
        raise MissingError(found["error"])
    sources.kept["nccl"] = found
    if found["static"]:
        raise MissingError("NCCL is {}: ncheck cannot run it".format(found["how"]))
    return found["path"], found["version"]


def child_environment(
    environment: "Environment", variables: "Mapping[str, Optional[str]]", above: "Environment"
) -> "Dict[str, str]":
    """Return a child's environment: `variables` count over the job's, None takes one away; `above` counts over all.

    Whatever names a file that NCCL would write, such as NCCL_TOPO_DUMP_FILE, is left out, and what the driver compiles
    is not kept in the home folder.
    """
    above = dict(above, CUDA_CACHE_DISABLE="1")
    merged = {name: value for name, value in environment.items() if not _dumps(name)}
    merged.update((name, value) for name, value in variables.items() if value is not None)
    gone = [name for name, value in variables.items() if value is None]
    return dict({name: value for name, value in merged.items() if name not in gone}, **dict(ENVIRONMENT, **above))


def _dumps(name: str) -> bool:
    return name.startswith("NCCL_") and "DUMP" in name
