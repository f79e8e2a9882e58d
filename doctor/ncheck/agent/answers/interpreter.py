"""The job's interpreter on this node, asked by a child, and what is installed for it, without importing any of it."""

import json
import os
import re

from ncheck.agent.answers import MissingError
from ncheck.agent.commands import run
from ncheck.agent.files import leaf
from ncheck.agent.standing import SERVE, Standing

PACKAGES = (
    "torch", "tensorflow", "tensorflow-gpu", "horovod", "jax", "jaxlib", "oneflow", "paddlepaddle", "paddlepaddle-gpu",
    "deepspeed", "mpi4py", "accelerate", "lightning", "pytorch-lightning", "transformers", "megatron-core",
    "mxnet", "mxnet-cu*", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "jax-cuda*-plugin", "jax-rocm*-plugin",
    "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cudnn-cu*", "nvidia-cublas",
    "nvidia-cublas-cu*", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu*", "nvidia-dali-cuda*", "apex", "flash-attn",
    "transformer-engine", "transformer-engine-*", "torchvision", "torchaudio",
)  # fmt: skip

# What a job trains with; their packages may be called tensorflow-gpu, paddlepaddle, mxnet-cu112.
FRAMEWORKS = ("torch", "tensorflow", "jax", "paddle", "oneflow", "mxnet")

# Runs in the job's interpreter, which may be old: 2.7 answers too. The folder that it starts in is no part of its path.
# Whatever fails in its second half ends it: an interpreter that cannot look for torch is not one without torch.
_ASK = r"""
import sys, os, json, re
sys.path = [p for p in sys.path if p]
names = [name.partition("*") for name in sys.argv[1:]]
def like(name, first, star, last): return name.startswith(first) and name.endswith(last) and (star or name == first)
def plain(name): return re.sub(r"[-_.]+", "-", name).lower()
found = {}
for folder in sys.path:
    try: entries = os.listdir(folder)
    except OSError: continue
    for entry in entries:
        # torch-2.3.0+cu121.dist-info   mpi4py-3.1.4.egg-info   horovod-0.28.1-py3.10.egg-info
        m = re.match(r"(.+?)-(\d[^-]*)(-py[\d.]+)?\.(dist-info|egg-info)$", entry)
        if m: found.setdefault(plain(m.group(1)), m.group(2))
wanted = dict((n, found[n]) for n in found if any(like(n, *pattern) for pattern in names))
print("ncheck:" + json.dumps({"version": ".".join(map(str, sys.version_info[:3])), "packages": wanted}))
sys.stdout.flush()
import importlib.util
spec = importlib.util.find_spec("torch")
torch = list(spec.submodule_search_locations)[0] if spec and spec.submodule_search_locations else None
print("ncheck-layout:" + json.dumps({"path": sys.path, "prefix": sys.prefix, "torch": torch}))
"""

READS = (
    "the job's python3, run with -B -c: its version, and the names of *.dist-info and *.egg-info; it stays until the",
    "agent ends; the same of the venv, conda and python that are active on this machine, if they exist there",
    "where PYTHONPATH or PYTHONHOME is set: modules of the standard library, imported by it with them and without",
    "the file version.py of its torch, which is not imported",
    "/.dockerenv, /run/.containerenv, /.singularity.d, /run/.nerdctl, /.enroot, /proc/1/environ, /proc/1/cgroup",
)


def answer(sources, arguments, timeout):
    """Return what the job's interpreter is; MissingError where there is none, OSError where it does not run."""
    job = sources.job
    if job.looking:
        raise OSError(job.how)
    if not job.path:
        raise MissingError("no python3 on PATH")
    said = asked_of(job, timeout)
    return {
        "path": job.path, "version": said["version"], "how": job.how, "packages": said["packages"],
        "container": container(job.login_environment), "torch": _torch(job, timeout), "broken": job.broken,
    }  # fmt: skip


# __version__ = '2.3.0+cu121'    |    cuda: Optional[str] = '12.1'    |    hip = None
_BUILT = r"(?m)^(__version__|cuda|hip)\s*(?::[^=]*)?=\s*(?:'([^']{1,60})'|\"([^\"]{1,60})\"|None)"


def _torch(job, timeout):
    """Return how torch was built, by its own version.py: the wheels of the index have no +cu121 in their names."""
    folder = (printed(job, "ncheck-layout:", timeout) or {}).get("torch")
    text = leaf(os.path.realpath(os.path.join(folder, "version.py"))) if folder else None
    if not isinstance(text, str):
        return None
    built = {name: first or second or None for name, first, second in re.findall(_BUILT, text)}
    if not built.get("__version__"):
        return None
    return {"version": built["__version__"], "cuda": built.get("cuda"), "hip": built.get("hip")}


def asked_of(job, timeout):
    """Return what the interpreter says of itself; OSError where it does not run."""
    said = printed(job, "ncheck:", timeout)
    if said is None:
        words = job.said.get("stderr", "").strip().splitlines()
        why = words[-1] if words else job.said.get("reason") or "no answer"
        raise OSError("{} does not run: {}".format(job.path, why))
    return said


def printed(job, mark, timeout):
    """Return what the interpreter prints behind a mark, or None. It is asked once, as the job would start it."""
    with job.asking:
        if job.said is None:
            job.said = ask(job.path, timeout, job.environment)
        job.start_seconds = job.said.get("seconds", 0.0)
    return _behind(mark, job.said)


def ask(path, timeout, environment):
    """Start an interpreter, and return the reply that `printed` reads, with what it runs from then on."""
    standing = Standing([path, "-B", "-c", _ASK + SERVE, *PACKAGES], timeout, environment)
    return dict(standing.reply, standing=standing)


def run_in(job, text, words, timeout, environment, *, flags=("-B", "-S")):  # noqa: PLR0913  words of one call
    """Let the job's interpreter run a program: the one that was asked before, else one that is started for it."""
    standing = job.said and job.said["standing"]
    reply = standing and standing.run(text, words, timeout, environment)
    return reply or run([job.path, *flags, "-c", text, *words], timeout, environment)


def has_framework(said):
    """Tell whether an interpreter that was asked has a framework; None where it does not run."""
    found = _behind("ncheck:", said)
    return found and any(name.startswith(FRAMEWORKS) for name in found["packages"])


def _behind(mark, said):
    # ncheck:{"version": "3.10.12", ...}     after whatever a sitecustomize prints
    lines = [line for line in said.get("stdout", "").splitlines() if line.startswith(mark + "{")]
    return json.loads(lines[-1][len(mark) :]) if lines else None


def container(environment):
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


def _init_says():
    # container=lxc     (in the environment of the first process, where it may be read)
    text = leaf("/proc/1/environ")
    for variable in text.split("\0") if isinstance(text, str) else ():
        if variable.startswith("container="):
            return variable[len("container=") :] or "container"
    return ""


def _control_group_says():
    # 12:devices:/docker/3b6e0c...    |    0::/kubepods.slice/kubepods-burstable.slice/...
    text = leaf("/proc/1/cgroup")
    for word, name in (("kubepods", "kubernetes"), ("/docker", "docker"), ("/lxc", "lxc"), ("libpod", "podman")):
        if isinstance(text, str) and word in text:
            return name
    return ""
