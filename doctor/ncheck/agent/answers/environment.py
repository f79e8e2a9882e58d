"""The variables that steer NCCL, MPI and gloo here, and NCCL's configuration files. Secrets never leave the node."""

import os
import re

from ncheck.agent.commands import decoded
from ncheck.agent.files import LARGEST_LEAF, fits, leaf, matching, open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Tuple, Union

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Sources

    Lines = Union[List[str], Dict[str, str], None]  # of a file, why it cannot be read, no file

# One pattern a line of thought: libraries, launchers, what a launcher sets, where programs and libraries come from.
PATTERNS = (
    "NCCL_*", "RCCL_*", "UCX_*", "UCC_*", "GLOO_*", "TP_SOCKET_*", "TORCH_NCCL_*", "FI_*", "RDMAV_*", "MLX5_*", "IBV_*",
    "OMPI_*", "OPAL_*", "PMIX_*", "PMI_*", "PRTE_*", "I_MPI_*", "MPICH_*", "HYDRA_*", "HOROVOD_*", "HCOLL_*",
    "MASTER_*", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TF_CONFIG", "SLURM_JOB_ID", "SLURM_NNODES",
    "CUDA_*", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "OMP_NUM_THREADS", "VLLM_HOST_IP", "SGLANG_HOST_IP", "RAY_ADDRESS",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    "LOADEDMODULES", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
# A partition key of InfiniBand (NCCL_IB_PKEY) is no secret: KEY counts only as a word of its own.
SECRET = (
    "*TOKEN*", "*_KEY", "*_KEY_*", "*APIKEY*", "*SECRET*", "*PASSW*", "*CREDENTIAL*", "*AUTH*", "*_PROXY",
)  # fmt: skip

# Variables whose value is a file that NCCL reads.
FILES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")

# Variables whose value is a folder without which no program of Open MPI starts (seen with 4.1.4).
FOLDERS = ("OPAL_PREFIX", "OPAL_LIBDIR", "OPAL_PKGLIBDIR", "OPAL_DESTDIR")

# Where a login may get its variables from: the shells' files, PAM's, sshd's.
START_UP_FILES = (
    "~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.profile", "~/.zshenv", "~/.ssh/environment",
    "~/.pam_environment", "/etc/environment", "/etc/security/pam_env.conf", "/etc/bash.bashrc", "/etc/bashrc",
    "/etc/profile", "/etc/profile.d/*.sh", "/etc/zsh/zshenv", "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d/*.conf",
)  # fmt: skip
# What shows that a driver is there. A machine with both has an AMD GPU for its screen.
AMD_DRIVER, NVIDIA_DRIVER = "/sys/module/amdgpu", ("/sys/module/nvidia", "/proc/driver/nvidia")
_MOST_PLACES = 8  # of one variable

READS = (
    "the agent's own environment variables, by name: " + " ".join(PATTERNS),
    "values of names like " + " ".join(SECRET) + " stay on the node",
    "$NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf; with AMD's driver alone ~/.rccl.conf, /etc/rccl.conf",
    "whether what " + ", ".join(FILES + FOLDERS) + " name is there",
    "the numbers of the lines that set one of these variables in " + " ".join(START_UP_FILES),
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return the login's variables, the job's where a set-up changed them, and the lines of the files."""
    login, secret = chosen(sources.job.login_environment)
    job, more = chosen(sources.job.environment)
    files = {path: _lines(path) for path in _paths(sources.job.environment)}
    return {
        "variables": login,
        "job_variables": job,
        "secret": sorted(set(secret + more)),
        "files": files,
        "missing": _missing(sources.job.environment, files),
        "start_up": places(set(login) | set(job)),
    }


def places(names: "Iterable[str]") -> "Dict[str, List[Dict[str, object]]]":
    """Return the lines of start-up files that set these variables, by name: file, number, and all that the line sets,
    which is nothing where it does more than that. PATH is left out: every file changes it.
    """
    names = sorted(set(names) - {"PATH"})
    if not names:
        return {}
    sets = re.compile(r"(?:^|[\s;&])({})=".format("|".join(map(re.escape, names))))
    found: "Dict[str, List[Dict[str, object]]]" = {}
    for path, text in texts(START_UP_FILES):
        for number, line in enumerate(text.splitlines(), 1):
            for name in [] if line.lstrip().startswith("#") else sets.findall(line):
                known = found.setdefault(name, [])
                if len(known) < _MOST_PLACES:
                    known.append({"file": path, "line": number, "sets": _only_sets(line)})
    return found


_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)=(?:[^\s;&|()<>#\\\"']*|\"[^\"\\]*\"|'[^']*')(?=\s|$)"
_PLAIN_LINE = re.compile(r"(?:export +)?{0}(?:\s+{0})*\s*(?:#.*)?$".format(_ASSIGNMENT.replace("([", "(?:[", 1)))


def _only_sets(line: str) -> "List[str]":
    """Return the variables of "export RANK=0 WORLD_SIZE=1  # left over"; none of a line that does anything else."""
    return re.findall(_ASSIGNMENT, line.partition(" #")[0]) if _PLAIN_LINE.match(line) else []


def texts(patterns: "Iterable[str]") -> "Iterator[Tuple[str, str]]":
    """Yield the files that match, with their texts; those of the home as "~/.bashrc"."""
    home = os.path.expanduser("~")
    for pattern in patterns:
        for path in matching(os.path.expanduser(pattern)):
            try:
                with os.fdopen(open_regular(path), "rb") as file:
                    text = decoded(file.read(LARGEST_LEAF))
            except OSError:
                continue  # what this user cannot read, its logins may read all the same: then no line is known
            yield "~" + path[len(home) :] if pattern.startswith("~") else path, text


def _missing(environment: "Environment", files: "Dict[str, Lines]") -> "List[str]":
    """Name the variables of FILES and FOLDERS that lead nowhere."""
    values = _in_force(environment, files)
    return [name for name in FILES + FOLDERS if values.get(name) and not os.path.exists(values[name])]


def _in_force(environment: "Environment", files: "Dict[str, Lines]") -> "Dict[str, str]":
    """Return the variables, in the environment or else in the first file that sets them."""
    lines = [line for found in files.values() if isinstance(found, list) for line in found]
    values = dict(line.split("=", 1) for line in reversed(lines) if "=" in line)
    return dict(values, **environment)


def of_nccl(environment: "Environment") -> "Dict[str, str]":
    """Return the variables as NCCL reads them."""
    return _in_force(environment, {path: _lines(path) for path in _paths(environment)})


def chosen(environment: "Environment") -> "Tuple[Dict[str, str], List[str]]":
    """Part the variables that matter here from those whose values are nobody's business."""
    names = [name for name in environment if any(fits(name, pattern) for pattern in PATTERNS)]
    hidden = [name for name in names if any(fits(name.upper(), word) for word in SECRET)]
    return {name: _clean(environment[name]) for name in sorted(names) if name not in hidden}, hidden


def _clean(value: str) -> str:
    """Write bytes that are not UTF-8, which Python keeps as lone surrogates, as hexadecimal numbers."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _paths(environment: "Environment") -> "List[str]":
    """Name NCCL's files, or RCCL's, in the order in which it reads them (RCCL source, misc/param.cc)."""
    name = "rccl.conf" if _is_of_amd() else "nccl.conf"
    home = os.path.join(os.path.expanduser("~"), "." + name)
    return [environment.get("NCCL_CONF_FILE") or home, "/etc/" + name]


def _is_of_amd() -> bool:
    return os.path.exists(AMD_DRIVER) and not any(map(os.path.exists, NVIDIA_DRIVER))


def _lines(path: str) -> "Lines":
    if not os.path.exists(path):
        return None
    text = leaf(path) if not os.path.islink(path) else leaf(os.path.realpath(path))
    if not isinstance(text, str):
        return text or {"error": "it is a folder"}
    return [line if not _secret_line(line) else line.partition("=")[0] + "=<hidden>" for line in text.splitlines()]


def _secret_line(line: str) -> bool:
    name = line.partition("=")[0].strip().upper()
    return any(fits(name, word) for word in SECRET)
