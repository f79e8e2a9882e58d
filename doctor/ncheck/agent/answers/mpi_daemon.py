"""MPI's programs on this node: the mpirun that a job would start, and the daemon that mpirun's ssh would start here.

mpirun's ssh gets a shell that is neither interactive nor a login shell. Where that one does not find a daemon, the
shells that a person gets are asked, and the usual folders looked into: the reason lies between them.
"""

import os
import pwd
import re
import shutil
import time

from ncheck.agent.commands import run
from ncheck.agent.files import leaf, matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

    from ncheck.agent.commands import Environment, Reply
    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

STARTERS = ("mpirun", "mpiexec")
DAEMONS = ("orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy")
RSH_AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")  # what Open MPI 4 and 5 log in with, not ssh
SHELLS = (("interactive shell", "-ic"), ("login shell", "-lc"))
USUAL = ("/usr/bin", "/usr/local/bin", "/opt/*/bin", "/opt/*/*/bin", "/usr/local/*/bin", "/usr/lib64/*/bin",
         "/usr/mpi/*/*/bin")  # fmt: skip
READS = (
    "mpirun, mpiexec, {} on the PATH, and what these say: mpirun --version, orted --version, and beside them "
    "ompi_info --parsable".format(", ".join(DAEMONS)),
    "where none is found: bash -ic and bash -lc 'command -v orted' (zsh, ksh where that is the login shell), "
    "the line of ~/.bashrc that returns early, and " + ", ".join(USUAL),
    "where OMPI_MCA_* is set: ompi_info --param PART all --level 9 --parsable",
    "the user's login shell; whether the program that $" + " and $".join(RSH_AGENTS) + " name is on the PATH",
)
AT_MOST = 8  # daemons that are tried: more are no longer an answer
CANNOT_RUN = (126, 127)  # the exit status of the loader, and of a shell, for what cannot be started
_KEPT = ("ompi:version:full", "path:prefix:", "prefix_by_default")  # of ompi_info's two thousand lines
# config:cli: '--prefix=/usr' '--with-cuda=/usr/local/cuda' '--without-tm' '--with-ucx'
_OPTION = r"--with(?:out)?-(?:cuda|rocm|ucx|ucc|hcoll|verbs|ofi|libfabric)(?![\w-])(?:=no)?"
_EACH = 4.0  # seconds for one program
_NO_PARTS = {"OMPI_MCA_mca_base_component_disable_dlopen": "1"}  # ompi_info opens two hundred libraries otherwise
_PARAMETER = "OMPI_MCA_"
_LISTED = r":param:([a-z0-9_]+):value:"  # mca:btl:tcp:param:btl_tcp_if_include:value:
_ALIKE = 0.9  # of difflib's ratio: one letter in ten
_LONGEST = 600  # characters of what one says
_POSIX = ("bash", "zsh", "ksh", "dash", "sh")
_MARK = "ncheck-found:"
NO_HISTORY = "HISTFILE=/dev/null"  # an interactive bash cuts the user's own to HISTFILESIZE as soon as that is set
_LOOK = 'for name in {}; do printf \'\\n{}%s=%s\\n\' "$name" "$(command -v "$name")"; done'
# *) return;;     |     [ -z "$PS1" ] && return     |     [[ $- != *i* ]] && exit 0
_RETURN = r"(?:^|[;&|{)]|\b(?:then|else)\s)\s*(?:return|exit)\b"
# case $- in     |     if [ -z "$PS1" ]; then     |     tty -s || return
_ASKS = r"\$-|\bPS1\b|-t [012]\b|tty -s|\*i\*"
_REACH = 3  # lines above a return that may ask whether somebody is there


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"starter", "daemons", "shells", "start_up", "login_shell", "rsh_agents"}."""
    return _Search(sources.job, time.monotonic() + timeout).answer()


class _Search:
    """`places` maps each daemon's path to how it was found: "plain login", "beside mpirun" and the like."""

    def __init__(self, job: "JobSetup", ends: float) -> None:
        self.job = job
        self.ends = ends
        self.shells: "Dict[str, Dict[str, str]]" = {}
        self.places: "Dict[str, List[str]]" = {}
        self.infos: "Dict[str, str]" = {}

    def answer(self) -> "Dict[str, Any]":
        starter, by = self.starter()
        self.note("plain login", self.on_path(DAEMONS, self.job.login_environment))
        if starter:
            self.note("beside mpirun", self.beside(starter))
        if not starter or not self.served(starter):
            for name, how in SHELLS:
                self.shells[name] = self.asked(how)
                self.note(name, {n: path for n, path in self.shells[name].items() if n in DAEMONS})
            self.note("usual folder", self.installed())
        if not starter:
            starter, by = self.from_shells()
        return {
            "starter": self.started(starter, by) if starter else None,
            "daemons": [self.tried(path, found_by) for path, found_by in list(self.places.items())[:AT_MOST]],
            "shells": {name: found["error"] for name, found in self.shells.items() if "error" in found},
            "start_up": returns_early(os.path.expanduser("~/.bashrc")) if self.shells else None,
            "login_shell": pwd.getpwuid(os.getuid()).pw_shell if _known_user() else "",
            "rsh_agents": rsh_agents(self.job.login_environment),
            "parameters": self.unknown_parameters(starter) if starter else [],
        }

    def starter(self) -> "Tuple[Optional[str], str]":
        """Find the job's own mpirun, else the plain login's. An interpreter's folder that ncheck put first is none."""
        plain = self.on_path(STARTERS, self.job.login_environment)
        entered = self.job.asked.get("setup") or self.job.how.startswith("active")
        job = self.on_path(STARTERS, self.job.environment) if entered else {}
        first = next(iter(job.values()), None) or next(iter(plain.values()), None)
        return first, "plain login" if first in plain.values() else "job's environment"

    def from_shells(self) -> "Tuple[Optional[str], str]":
        for by, found in self.shells.items():
            for name in STARTERS:
                if name in found:
                    return found[name], by
        return None, ""

    def note(self, how: str, found: "Iterable[str]") -> None:
        for path in found.values() if isinstance(found, dict) else found:
            self.places.setdefault(path, []).append(how)

    def served(self, starter: str) -> bool:
        """Tell whether the plain login finds one of the daemons that lie beside mpirun."""
        names = {os.path.basename(path) for path in self.beside(starter)}
        found = {os.path.basename(path) for path, found_by in self.places.items() if "plain login" in found_by}
        return bool(names & found)

    def on_path(self, names: "Iterable[str]", environment: "Environment") -> "Dict[str, str]":
        path = environment.get("PATH", os.defpath)
        found = {name: shutil.which(name, path=path) for name in names}
        return {name: os.path.abspath(place) for name, place in found.items() if place}

    def beside(self, starter: str) -> "List[str]":
        folders = dict.fromkeys((os.path.dirname(starter), os.path.dirname(os.path.realpath(starter))))
        return _programs(folders)

    def installed(self) -> "List[str]":
        return _programs(folder for pattern in USUAL for folder in matching(pattern))

    def asked(self, how: str) -> "Dict[str, str]":
        """Ask the shell that a person would get; {"error": why} where it gives no answer."""
        shell = shell_of_user()
        look = _LOOK.format(" ".join(STARTERS + DAEMONS), _MARK)
        path = self.job.login_environment.get("PATH", os.defpath)  # as it is, with no folder of ours behind it
        reply = self.run(["env", "PATH=" + path, NO_HISTORY, shell, how, look], self.job.login_environment)
        lines = [line for line in reply.get("stdout", "").splitlines() if line.startswith(_MARK)]
        if not lines:
            words = reply.get("reason") or "it printed no answer"
            return {"error": "{} {}: {}".format(shell, how, words)}
        pairs = (line[len(_MARK) :].partition("=") for line in lines)
        return {name: path for name, _, path in pairs if os.path.isabs(path)}

    def started(self, path: str, by: str) -> "Dict[str, object]":
        return dict(self.described(path, [by]), says=self.words([path, "--version"], path), prefixed=None)

    def tried(self, path: str, found_by: "List[str]") -> "Dict[str, object]":
        """Describe a daemon and how it runs. None of them stays: they know no --version, or end for want of a job."""
        plain = self.words([path, "--version"], "" if "plain login" in found_by else path)
        lost = plain["exit_status"] in CANNOT_RUN and "plain login" in found_by
        return dict(
            self.described(path, found_by), says=plain, prefixed=self.words([path, "--version"], path) if lost else None
        )

    def described(self, path: str, found_by: "List[str]") -> "Dict[str, object]":
        real = os.path.realpath(path)
        folder = os.path.dirname(real)
        if folder not in self.infos:
            self.infos[folder] = self.info(folder)
        return {"path": path, "real_path": real, "by": found_by, "info": self.infos[folder]}

    def info(self, folder: str) -> str:
        """Return what the programs beside it say of the whole installation."""
        for name, words in (("ompi_info", "--parsable"), ("mpiexec.hydra", "--version"), ("orterun", "--version"),
                            ("mpirun", "--version")):  # fmt: skip
            program = os.path.join(folder, name)
            if os.access(program, os.X_OK):
                lines = self.words([program, words], program, _NO_PARTS)["said"].splitlines()
                kept = [_kept(line) if name == "ompi_info" else line for line in lines]
                return "\n".join(filter(None, kept))[:_LONGEST]
        return ""

    def unknown_parameters(self, starter: str) -> "List[Dict[str, str]]":
        """Return the parameters of Open MPI that variables set and ompi_info does not list, each with a name like it.

        A name that is like no other may be of a part that is not loaded here, and is left out.
        """
        program = os.path.join(os.path.dirname(os.path.realpath(starter)), "ompi_info")
        login = self.job.login_environment
        plain = {name: login[name] for name in login if not name.startswith(_PARAMETER)}  # they choose what is loaded
        frameworks: "Dict[str, List[str]]" = {}
        for name in sorted(set(login) - set(plain))[:AT_MOST]:
            frameworks.setdefault(name[len(_PARAMETER) :].partition("_")[0], []).append(name)
        found = []
        for framework, names in frameworks.items() if os.access(program, os.X_OK) else ():
            reply = self.run([program, "--param", framework, "all", "--level", "9", "--parsable"], plain)
            whole = reply["status"] == "ok" and reply.get("exit_status") == 0
            known = set(re.findall(_LISTED, reply.get("stdout", ""))) if whole else set()
            named = ((name, name[len(_PARAMETER) :]) for name in names)
            found += [{"variable": name, "near": near} for name, own in named for near in _near(own, known)]
        return found

    def words(self, argv: "Sequence[str]", path: str, more: "Optional[Environment]" = None) -> "Dict[str, Any]":
        """Run it, with its own libraries on LD_LIBRARY_PATH where a path is given, as mpirun --prefix has it."""
        environment = dict(self.job.login_environment, **(more or {}))
        if path:
            prefix = os.path.dirname(os.path.dirname(path))
            own = [os.path.join(prefix, "lib"), environment.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(part for part in own if part)
        reply = self.run(argv, environment)
        printed = (reply.get("stdout", "") + "\n" + reply.get("stderr", "")).strip()
        most = 64 * _LONGEST if argv[-1] == "--parsable" else _LONGEST
        return {"said": printed[:most], "exit_status": reply.get("exit_status"), "status": reply["status"],
                "reason": reply.get("reason", "")}  # fmt: skip

    def run(self, argv: "Sequence[str]", environment: "Environment") -> "Reply":
        left = min(_EACH, self.ends - time.monotonic())
        if left < 0.2:  # too little for any shell
            return {"status": "timeout", "reason": "no time was left for it"}
        return run(argv, left, environment)


def _near(name: str, known: "Set[str]") -> "List[str]":
    """Return the known name of the same component that one with a slip in it is like, if there is one.

    The component may be one that this Open MPI does not have, and a setting of it that waits for one that has:
    btl_sm_eager_limit is no slip of btl_smcuda_eager_limit.
    """
    own = name.split("_")[:2]
    alike = sorted(one for one in known if one.split("_")[:2] == own)
    if name in known or not alike:
        return []
    from difflib import get_close_matches

    return get_close_matches(name, alike, n=1, cutoff=_ALIKE)


def _kept(line: str) -> str:
    """Return a line of ompi_info that is sent, "" for the others; of config:cli only the options of _OPTION."""
    if line.startswith("config:cli:"):
        return " ".join(["config:cli:", *re.findall(_OPTION, line)])
    return line if any(word in line for word in _KEPT) else ""


def rsh_agents(environment: "Environment") -> "List[Dict[str, object]]":
    """Describe the programs with which variables tell Open MPI to log in: "ssh -4 : rsh" is either of two."""
    found = []
    for name in RSH_AGENTS:
        words = [part.split() for part in environment.get(name, "").split(":")]
        programs = [part[0] for part in words if part]
        there = any(shutil.which(program, path=environment.get("PATH", os.defpath)) for program in programs)
        if programs:
            found.append({"variable": name, "value": environment[name][:_LONGEST], "found": there})
    return found


def shell_of_user() -> str:
    """Return the user's own shell, bash for one that is no POSIX shell."""
    shell = pwd.getpwuid(os.getuid()).pw_shell if _known_user() else ""
    return shell if os.path.basename(shell) in _POSIX else shutil.which("bash") or "/bin/sh"


def returns_early(path: str) -> "Optional[Dict[str, object]]":
    """Return the line of a start-up file that ends it where no person is there, None where there is none."""
    text = leaf(path) if not os.path.islink(path) else leaf(os.path.realpath(path))
    lines = text.splitlines() if isinstance(text, str) else []
    for number, line in enumerate(lines):
        above = lines[max(0, number - _REACH) : number + 1]
        if re.search(_RETURN, line.partition("#")[0]) and any(re.search(_ASKS, one) for one in above):
            return {"file": "~/.bashrc", "line": number + 1, "text": line.strip()[:200]}
    return None


def _programs(folders: "Iterable[str]") -> "List[str]":
    paths = (os.path.join(folder, name) for folder in folders for name in DAEMONS)
    return [path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)]


def _known_user() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True
