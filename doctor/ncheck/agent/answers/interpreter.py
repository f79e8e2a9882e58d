"""The job's interpreter on this node: its version and packages, its torch, and the container that it is in."""

import os
import re

from ncheck.agent.answers import MissingError
from ncheck.agent.files import leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from ncheck.agent.commands import Environment
    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

READS = (
    "the job's python3, run with -B -c: its version, and the names of *.dist-info and *.egg-info; it stays until the",
    "agent ends; the same of the venv, conda and python that are active on this machine, if they exist there",
    "where PYTHONPATH or PYTHONHOME is set: modules of the standard library, imported by it with them and without",
    "the file version.py of its torch, which is not imported",
    "/.dockerenv, /run/.containerenv, /.singularity.d, /run/.nerdctl, /.enroot, /proc/1/environ, /proc/1/cgroup",
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return what the job's interpreter is; MissingError where there is none, OSError where it does not run."""
    job = sources.job
    if job.looking:
        raise OSError(job.how)
    if not job.path:
        raise MissingError("no python3 on PATH")
    found = job.described(timeout)
    return {
        "path": job.path, "version": found["version"], "how": job.how, "packages": found["packages"],
        "container": container(job.login_environment), "torch": _torch(job, timeout), "broken": job.broken,
    }  # fmt: skip


# __version__ = '2.3.0+cu121'    |    cuda: Optional[str] = '12.1'    |    hip = None
_BUILT = r"(?m)^(__version__|cuda|hip)\s*(?::[^=]*)?=\s*(?:'([^']{1,60})'|\"([^\"]{1,60})\"|None)"


def _torch(job: "JobSetup", timeout: float) -> "Optional[Dict[str, Optional[str]]]":
    """Return how torch was built, by its own version.py: the wheels of the index have no +cu121 in their names."""
    folder = (job.printed("ncheck-layout:", timeout) or {}).get("torch")
    text = leaf(os.path.realpath(os.path.join(folder, "version.py"))) if folder else None
    if not isinstance(text, str):
        return None
    built = {name: first or second or None for name, first, second in re.findall(_BUILT, text)}
    if not built.get("__version__"):
        return None
    return {"version": built["__version__"], "cuda": built.get("cuda"), "hip": built.get("hip")}


def container(environment: "Environment") -> str:
    """Name the container that this node is, by the marks that each kind leaves; "" for none."""
    marks = (
        ("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/.singularity.d", "apptainer"),
        ("/run/.nerdctl", "containerd"),
    )  # fmt: skip
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if environment.get("ENROOT_ROOTFS") or os.path.exists("/.enroot"):
        return "enroot"
    for path, name in marks:
        if os.path.exists(path):
            return name
    return _init_says() or _control_group_says()


def _init_says() -> str:
    # container=lxc     (in the environment of the first process, where it may be read)
    from ncheck.agent import proc  # a start of the agent does without it

    variables = proc.environment(1) or {}
    return (variables["container"] or "container") if "container" in variables else ""


def _control_group_says() -> str:
    # 12:devices:/docker/3b6e0c...    |    0::/kubepods.slice/kubepods-burstable.slice/...
    from ncheck.agent import proc

    text = proc.text(1, "cgroup")
    for word, name in (("kubepods", "kubernetes"), ("/docker", "docker"), ("/lxc", "lxc"), ("libpod", "podman")):
        if word in text:
            return name
    return ""
