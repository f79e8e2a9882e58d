"""Which network plug-in NCCL would load in the job's environment, and what it is, by its file. It is not opened.

NCCL gives the names to the dynamic loader (NCCL source, plugin/plugin_open.cc and plugin/net.cc): libnccl-net.so, or
each name in NCCL_NET_PLUGIN as it is, and then with libnccl-net- before and .so behind it.
"""

import os
import re

from ncheck.agent import loader
from ncheck.agent.answers.environment import of_nccl
from ncheck.agent.elf import Library
from ncheck.agent.files import leaf, line_of, matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Container, Dict, Iterable, Iterator, List, Optional, Tuple

    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

HCAS = "/sys/class/infiniband"
EFA_MODULE = "/sys/module/efa"
# Where the installers of clouds and HPC-X put theirs, which jobs reach by LD_LIBRARY_PATH.
PLACES = (
    "/opt/amazon/ofi-nccl/lib*", "/opt/amazon/aws-ofi-nccl/lib*", "/opt/aws-ofi-nccl/lib*", "/usr/local/gib/lib64",
    "/usr/local/tcpx/lib64", "/usr/local/nvidia/lib64", "/var/lib/tcpx*/lib64", "/opt/hpcx*/nccl_rdma_sharp_plugin/lib",
)  # fmt: skip
READS = (
    "NCCL_NET_PLUGIN and NCCL_TUNER_PLUGIN in the job's environment and in NCCL's files",
    "libnccl-net*.so and libnccl-tuner*.so where the loader would find them (LD_LIBRARY_PATH, ldconfig -p); not run",
    "libnccl-net*.so in " + ", ".join(PLACES),
    "whether the libraries that they need are there; the release of libfabric in libfabric.pc beside it",
    "{}/*/device/driver, {}/version".format(HCAS, EFA_MODULE),
)

_NET, _TUNER = "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN"
_MOST = 8  # names in a list; NCCL itself takes fewer
# What a process that uses GPUs has loaded before, wherever from: the loader does not look for it again.
_LOADED = ("libcuda", "libnv", "libnccl", "librccl", "libamdhip", "libhsa", "ld-linux")
# A text in each plug-in, and the rest of it: "NET/OFI Initializing aws-ofi-nccl 1.16.3", "NET/GPUDirectTCPX ver. 3.1.8"
_KINDS = (
    ("aws-ofi-nccl", b"NET/OFI Initializing aws-ofi-nccl "),
    ("aws-ofi-nccl", b"NET/OFI Using aws-ofi-nccl "),
    ("GPUDirect-TCPX", b"NET/GPUDirectTCPX ver. "),
    ("GPUDirect-TCPX", b"NET/GPUDirectTCPX"),
    ("GPUDirect-TCPXO (FasTrak)", b"NET/FasTrak"),
    ("gIB", b"NET/gIB"),
    ("nccl-rdma-sharp", b"P2P plugin "),
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"named", "off", "plugins": [PLUGIN], "tuner": PLUGIN|None, "elsewhere", "efa": [names], "efa_driver"}.

    A plug-in that is not found has no path; one that is no library has an "error". "elsewhere" are those where the
    loader does not look, where it finds none or there is EFA. "efa_driver" is null for that of the kernel itself.
    """
    job = sources.job
    values = of_nccl(job.environment)
    named, tuner = values.get(_NET, ""), values.get(_TUNER, "")
    off = named.lower() == "none"
    names = [] if off else [name for name in named.split(",") if name][:_MOST]
    plugins = [_plugin(job, "libnccl-net", name) for name in names or ([] if off else [""])]
    found, efa = [one["path"] for one in plugins if one.get("path")], sorted(_efa())
    return {
        "named": names,
        "off": off,
        "plugins": plugins,
        "tuner": None if tuner.lower() == "none" else _plugin(job, "libnccl-tuner", tuner),
        "elsewhere": [] if found and not efa else _elsewhere(found),
        "efa": efa,
        "efa_driver": line_of(EFA_MODULE + "/version"),
    }


def _efa() -> "Iterator[str]":
    for folder in matching(HCAS + "/*"):
        if os.path.basename(os.path.realpath(folder + "/device/driver")) == "efa":
            yield os.path.basename(folder)


def _elsewhere(found: "Container[str]") -> "List[str]":
    paths = {path for place in PLACES for path in matching(place + "/libnccl-net*.so")}
    return sorted(path for path in paths if os.path.realpath(path) not in found)[:_MOST]


def _plugin(job: "JobSetup", beginning: str, named: str) -> "Dict[str, Any]":
    """Return what the loader would open by the first name that leads to a file."""
    names = [named or beginning + ".so"]
    if named and "/" not in named and not (named.startswith("lib") and named.endswith(".so")):
        names.append("{}-{}.so".format(beginning, named))
    for name in names:
        path = name if "/" in name else _found(job, None, name)
        if path and os.path.isfile(path):
            return dict(_described(job, os.path.realpath(path)), name=name)
    return {"name": names[-1], "path": None, "sure": loader.cache_is_known() or "/" in names[-1]}


def _found(job: "JobSetup", library: "Optional[Library]", name: str) -> "Optional[str]":
    """Return where the loader finds what a library asks for, None where it does not.

    The interpreter's own path counts for all that it opens: conda's leads to the folder beside it.
    """
    own = [os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(job.path))), "lib")] if job.path else []
    return loader.resolve(job, library, name, [*loader.DEFAULT, *own])[0]


def _described(job: "JobSetup", path: str) -> "Dict[str, object]":
    try:
        library = Library(path)
        needed = library.needed()
        found = {name: _found(job, library, name) for name in needed}
        kind, version = _kind(library, needed)
        symbols = library.exported(b"ncclNetPlugin_v"), library.exported(b"ncclTunerPlugin_v")
        build = library.build()
        library.close()
    except (OSError, ValueError) as error:
        return {"error": str(error)}
    fabric = [place for name, place in found.items() if place and name.startswith("libfabric.so")]
    missing = [name for name, place in found.items() if not place and not name.startswith(_LOADED)]
    numbers = [[name.rpartition("_v")[2] for name in own] for own in symbols]
    net, tuner = [sorted(int(number) for number in own if re.match(r"[0-9]{1,3}$", number)) for own in numbers]
    return {
        "path": path,
        "kind": kind,
        "version": version,
        "build": build,
        "net": net,
        "tuner": tuner,
        "missing": missing if loader.cache_is_known() else [],
        "libfabric": _libfabric(fabric[0]) if fabric else None,
    }


def _kind(library: "Library", needed: "Iterable[str]") -> "Tuple[str, str]":
    for kind, text in _KINDS:
        found = library.constant(text)
        if found:
            version = re.match(r"\d[\w.+-]*", found[len(text) :])
            return kind, version.group().rstrip(".") if version else ""
    return "aws-ofi-nccl" if any(name.startswith("libfabric.so") for name in needed) else "", ""


def _libfabric(path: str) -> "Dict[str, str]":
    """Return {"path", "version"}: by the file for compilers beside it, else the name of the file itself."""
    path = os.path.realpath(path)
    text = leaf(os.path.join(os.path.dirname(path), "pkgconfig", "libfabric.pc"))
    # Version: 1.22.0amzn4.0
    version = re.search(r"(?m)^Version: (\S+)", text) if isinstance(text, str) else None
    return {"path": path, "version": version.group(1) if version else os.path.basename(path)}
