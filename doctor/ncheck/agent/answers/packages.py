"""Every package in the job's interpreter, by the names of *.dist-info and *.egg-info; none of them is imported."""

import json

from ncheck.agent.answers import MissingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Sources

MOST = 2000  # packages of one interpreter

# Runs in the job's interpreter, which may be old. The first folder of its path that has a package is the one that it
# would import it from.
_ASK = r"""
import sys, os, json, re, errno, platform
most = int(sys.argv[1])
def text(path):
    try:
        with open(path, "rb") as file: return file.read(65536).decode("utf-8", "replace")
    except (IOError, OSError): return ""
def origin(folder):
    try: said = json.loads(text(os.path.join(folder, "direct_url.json")) or "{}")
    except ValueError: return ""
    commit = (said.get("vcs_info") or {}).get("commit_id")
    if commit: return "commit " + str(commit)[:12]
    return "editable" if (said.get("dir_info") or {}).get("editable") else ""
def version(path):
    for name in ("METADATA", "PKG-INFO", ""):
        m = re.search(r"^Version: *(\S+)", text(os.path.join(path, name) if name else path), re.M)
        if m: return m.group(1)
    return ""
found = {}
for folder in [p for p in sys.path if p]:
    try: entries = sorted(os.listdir(folder))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR): continue  # a folder that is named and not there, or a zip
        sys.exit(str(error))
    for entry in entries:
        # torch-2.3.0+cu121.dist-info   horovod-0.28.1-py3.10.egg-info   mypackage.egg-info   not ~orch-2.3.0.dist-info
        m = re.match(r"([A-Za-z0-9].*?)(?:-(\d[^-]*)(?:-py[\d.]+)?)?\.(?:dist-info|egg-info)$", entry)
        name = re.sub(r"[-_.]+", "-", m.group(1)).lower() if m else ""
        if name and name not in found:
            if len(found) == most: sys.exit("more than %d packages" % most)
            path = os.path.join(folder, entry)
            found[name] = [m.group(2) or version(path), origin(path)]
print("ncheck-packages:" + json.dumps({"packages": found, "markers": {
    "implementation_name": getattr(getattr(sys, "implementation", None), "name", ""),
    "implementation_version": platform.python_version(), "os_name": os.name, "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(), "platform_release": platform.release(),
    "platform_system": platform.system(), "platform_version": platform.version(),
    "python_full_version": platform.python_version(), "python_version": ".".join(platform.python_version_tuple()[:2]),
    "sys_platform": sys.platform}}))
"""

READS = (
    "the job's python3, in a fork of the one that was started: the names of *.dist-info and *.egg-info",
    "direct_url.json in them, of which a commit, or that a package is editable, is sent",
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"packages": {name: [version, origin]}, "markers": {name: value}}."""
    job = sources.job
    if job.looking or not job.path:
        raise MissingError("no python3 on PATH")
    job.described(timeout)
    reply = job.run(_ASK, [str(MOST)], timeout, job.environment, flags=("-B",))
    mark = "ncheck-packages:"
    lines = [line for line in reply.get("stdout", "").splitlines() if line.startswith(mark)]
    if not lines:
        words = reply.get("stderr", "").strip().splitlines()
        why = words[-1] if words else reply.get("reason") or "no answer"
        raise OSError("{} did not list its packages: {}".format(job.path, why))
    found: "Dict[str, Any]" = json.loads(lines[-1][len(mark) :])
    return found
