"""What is sent to a node: a line of POSIX shell that greets, a second one that starts a python3, the agent as one blob
of zlib, and on request a module more.

The first line fits into one small packet. A node that answers it and not the second one loses large packets.

Each line of the shell begins with the run's marker. The node joins it from two halves, so that a shell or a terminal
that echoes the script does not look like an answer:

    MARK hello | MARK command NAME | MARK forced [yes] | MARK host NAME | MARK boot ID | MARK net NAMESPACE |
    MARK uid N | MARK end                    the greeting; NAME is the shell's $0, forced: sshd ran another command
    MARK in                                  inside --enter's container
    MARK started                             the second line came, too
    MARK files N                             how many files a process may open
    MARK try PYTHON                          this python3 exists and is started now
    MARK go VERSION PATH                     a python3 runs; its frames follow
    MARK shared ADDRESS                      with `shared`: they follow as agent/broadcast.py says
    MARK none [PYTHON]                       no python3 here can run the agent; this one exists, and fails at its start
    MARK left STATUS                         --enter's command ended with this status
"""

from __future__ import annotations

import base64
import json
import pkgutil
import re
import shlex
import threading
import zlib
from functools import cache

from ncheck.agent import answers
from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass

# Where python3 is on nodes whose bare PATH has none: RHEL 8 keeps one for itself, images for training use conda.
CANDIDATES = (
    "python3", "/usr/bin/python3", "/usr/local/bin/python3", "/usr/libexec/platform-python", "/opt/conda/bin/python3",
    '"$HOME/miniconda3/bin/python3"', '"$HOME/anaconda3/bin/python3"', "/opt/venv/bin/python3",
)  # fmt: skip

BLOB = "agent.zlib"  # in this package, where it comes from a wheel
_BLOB_LOCK = threading.Lock()

# Any Python from 2.6 on must be able to read this and refuse: 86 and 1 make the shell try the next one. The first
# argument is the marker, then the blob's size, the agent's own deadline in seconds, and "shared" where many share one
# input.
_LOADER = r"""
import sys,os
try:
 v=sys.version_info
 if v<(3,6):
  sys.stderr.write("%s: it is Python %d.%d, and 3.6 is the oldest that will do\n"%((sys.executable,)+v[:2]))
  sys.exit(86)
 import zlib,json,threading,subprocess
except ImportError as e:
 sys.stderr.write("%s: %s\n"%(sys.executable,e))
 sys.exit(1)
try:
 __import__("signal").alarm(60)
 os.write(1,("%s go %d.%d.%d %s\n"%((sys.argv[1],)+v[:3]+(sys.executable,))).encode("utf-8","replace"))
 d=[]
 n=int(sys.argv[2])
 while n:
  c=os.read(0,n)
  if not c: os._exit(4)
  d.append(c)
  n-=len(c)
 t=json.loads(zlib.decompress(b"".join(d)).decode())
 g={"__name__":"boot"}
 exec(t["ncheck.agent.boot"],g)
 g["boot"](t,float(sys.argv[3]))
except BaseException as e:
 sys.stderr.write("%s: %r\n"%(sys.executable,e))
 os._exit(3)
"""

_GREETING = (
    "m={first};m=${{m}}{second};h=;b=;u=;{{ read -r h</proc/sys/kernel/hostname||h=`uname -n`;"
    "read -r b</proc/sys/kernel/random/boot_id;s=`readlink /proc/self/ns/net`;"
    "while read -r k u v;do case $k in Uid:)break;;esac;done</proc/self/status||u=`id -u`;}} 2>/dev/null;"
    'printf \'\\n%s hello\\n\' "$m";for l in "command $0" "forced ${{SSH_ORIGINAL_COMMAND+yes}}" "host $h" '
    '"boot $b" "net $s" "uid $u" end;'
    'do printf \'%s %s\\n\' "$m" "$l";done;'
)

_NEXT_LINE = 'n={size};IFS= read -r l&&eval "$l"'
_STARTED = "printf '%s started\\n' \"$m\";"

# 86: it is too old. One that is broken does not hide another that works.
_PYTHON = (
    'b=;printf \'%s files %s\\n\' "$m" "`ulimit -n`";l={loader};'
    'for p in {candidates};do command -v "$p">/dev/null 2>&1||continue;printf \'%s try %s\\n\' "$m" "$p";'
    '"$p" -I -B -u -c "$l" "$m" {size} {seconds};case $? in 86);;1|2|126|127)b="${{b:-$p}}";;*)exit;;esac;done;'
)

# Where only the user's set-up provides a python3 (module load python on RHEL 7), that one runs the agent.
_AFTER_SETUP = (
    'export l m;export s={setup};bash -lc \'eval "$s">&2;command -v python3>/dev/null||exit 86;'
    'exec python3 -I -B -u -c "$l" "$m" {size} {seconds}\';case $? in 1|2|86|126|127);;*)exit;;esac;'
)

_NONE = 'printf \'%s none %s\\n\' "$m" "$b"'


@dataclass(frozen=True)
class Bootstrap:
    """One node's script (a line), and what follows it: the line that starts the agent, and the agent, the same for all
    nodes. Both are empty where no agent is needed.
    """

    marker: str
    script: str
    start: str = ""
    blob: bytes = b""

    @property
    def rest(self) -> bytes:
        """What is sent once the node greeted."""
        return self.start.encode() + b"\n" + self.blob

    def quoted_by(self, messages: bytes) -> bool:
        """Tell whether error messages quote the script: a program read it that cannot run it, such as csh or fish."""
        return self.script.partition(";")[0].encode() in messages


def bootstrap(  # noqa: PLR0913  what differs between nodes
    nonce: str,
    seconds: float | None,
    *,
    enter: str | None = None,
    python: str | None = None,
    setup: str | None = None,
    shared: bool = False,
) -> Bootstrap:
    """Make the script for one node. `seconds` is the agent's own deadline there; None asks for the greeting only.

    `nonce` is 8 or more letters and digits that no earlier run used. `enter` is the user's own shell words and is
    read by the shell; everything else is quoted. `shared`: many nodes read what is sent (agent/broadcast.py).
    """
    first, second = "ncheck-" + nonce[:4], nonce[4:]
    script = _GREETING.format(first=first, second=second)
    if seconds is None:
        return Bootstrap(first + second, script + "exit 0")
    agent = agent_blob()
    start = _start(len(agent), f"{seconds:.0f}{' shared' if shared else ''}", python, setup)
    line = _STARTED + (_entered(enter, first, second, start) if enter else start)
    return Bootstrap(first + second, script + _NEXT_LINE.format(size=len(line.encode()) + 1 + len(agent)), line, agent)


def _start(size: int, seconds: str, python: str | None, setup: str | None) -> str:
    candidates = " ".join((*CANDIDATES, *((shlex.quote(python),) if python else ())))
    numbers = {"size": size, "seconds": seconds}
    start = _PYTHON.format(candidates=candidates, loader=_loader(), **numbers)
    if setup:
        start += _AFTER_SETUP.format(setup=shlex.quote(";".join(setup.strip().split("\n"))), **numbers)
    return start + _NONE


def _entered(enter: str, first: str, second: str, start: str) -> str:
    inner = f"m={first};m=${{m}}{second};printf '%s in\\n' \"$m\";{start}"
    return f"{' '.join(enter.split(chr(10)))} /bin/sh -c {shlex.quote(inner)};printf '%s left %s\\n' \"$m\" $?"


@cache
def _loader() -> str:
    """Return the loader as one word of shell: a newline would end the script's only line."""
    escaped = _LOADER.strip().replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return shlex.quote(f'exec("{escaped}")')


def agent_blob() -> bytes:
    """Return the agent's modules, name to text, as zlib over JSON; made once for all nodes."""
    with _BLOB_LOCK:
        return _agent_blob()


@cache
def _agent_blob() -> bytes:
    try:
        made = pkgutil.get_data(__package__, BLOB)
    except FileNotFoundError:
        made = None
    return made or made_blob()


def made_blob() -> bytes:
    """Make the agent's modules into what is sent. A wheel has it ready."""
    return zlib.compress(json.dumps({"ncheck": "", **_texts("ncheck.agent"), **_texts(answers.__name__)}).encode())


def _texts(package: str) -> dict[str, str]:
    """Return the modules of a package, name to text as it is sent."""
    from importlib.resources import files

    from ncheck.fleet.without_notes import without_notes

    entries = sorted((entry.name, entry) for entry in files(package).iterdir() if entry.name.endswith(".py"))
    return {
        f"{package}.{name[:-3]}".removesuffix(".__init__"): without_notes(entry.read_text("utf-8"))
        for name, entry in entries
    }


@cache
def _rooms() -> dict[str, str]:
    """Return for each answer that a room has the modules of its room, as JSON."""
    rooms: dict[str, str] = {}
    for package in answers.ROOMS:
        texts = _texts(package)
        names = (name.removeprefix(f"{package}.").replace("_", "-") for name in texts)
        rooms |= dict.fromkeys(names, json.dumps({package.rpartition(".")[0]: "", **texts}))
    return rooms


def parse_script(script: str) -> tuple[str, int | None]:
    """Return the marker of a script that was received, and the size of what follows it (None: greeting only).

    For servers that replay a recorded node: they answer as a shell would, and run no shell.
    """
    # m=ncheck-0f3a;m=${m}99bc12;h=;...   |   ... done;n=21034;IFS= read -r l&&eval "$l"
    halves = re.match(r"m=(ncheck-\w+);m=\$\{m\}(\w+);", script)
    if halves is None:
        raise ValueError("not a script of ncheck")
    size = re.search(r";n=(\d+);IFS= read ", script)
    return halves[1] + halves[2], int(size[1]) if size else None


# Modules of one pure file that a node may request, with the modules of the agent that use each.
_ON_REQUEST = {
    "pynvml": (
        ("ncheck.agent.answers", "gpus"), ("ncheck.agent.answers", "nvml_health"),
        ("ncheck.triage.agent", "gpu_activity"), ("ncheck.probe.agent", "gpu_test"),
    ),
}  # fmt: skip

# @convertStrBytes
# def nvmlDeviceGetName(handle):
_PART = expression(r"^(?:@.*\n){0,4}(?:def|class) (\w+).*\n(?:(?:[ \t].*)?\n)*", re.MULTILINE)
RANK_PROGRAM, GPU_PROGRAM = "rank-program", "gpu-program"


def module_text(name: str) -> str | None:
    """Return the text of a module that a node may request; None for any other, and where it is not installed here."""
    if name in (RANK_PROGRAM, GPU_PROGRAM):
        return rank_program() if name == RANK_PROGRAM else gpu_program()
    if name.startswith(answers.ROOM_OF):
        return _rooms().get(name.removeprefix(answers.ROOM_OF))
    return _pure_module(name) if name in _ON_REQUEST else None


@cache
def _pure_module(name: str) -> str | None:
    from importlib.resources import files
    from importlib.util import find_spec

    spec = find_spec(name)
    source = getattr(spec.loader, "get_source", None) if spec else None
    text = source(name) if source else None
    user = "".join(files(package).joinpath(f"{module}.py").read_text("utf-8") for package, module in _ON_REQUEST[name])
    return cut(text, user) if isinstance(text, str) else None


def cut(text: str, user: str) -> str:
    """Return a module's text with those functions and classes only that `user` leads to, by any word of its text.

    A node compiles what it gets at each run: all of pynvml takes it longer than the start of a Python.
    """
    parts: dict[str, str] = {}
    for part in _PART.finditer(text):
        parts[part[1]] = parts.get(part[1], "") + part[0]
    kept, new = set[str](), {user, _PART.sub("", text)}
    while new:
        named = {word for words in new for word in re.findall(r"\w+", words)} & parts.keys() - kept
        kept |= named
        new = {parts[name] for name in named}
    shorter = _PART.sub(lambda part: part[0] if part[1] in kept else "", text)
    try:
        compile(shorter, "<cut>", "exec")
    except SyntaxError:  # not laid out as expected
        return text
    return shorter


_RANK_PACKAGE, _GPU_PACKAGE = "ncheck.probe.agent.nccl_rank", "ncheck.probe.agent.gpu_alone"

# Modules of the agent that they need.
_OF_GPU = ("ncheck.agent.boot", "ncheck.agent.proc", "ncheck.probe.agent.segments")
_OF_RANK = (*_OF_GPU, "ncheck.agent.files", "ncheck.agent.traffic")

# One line without a quote that a shell, mpirun or srun could read otherwise; its first word explains the process in a
# list of processes. Nothing is imported from the current folder: the user's own json.py may be there.
_LOADER_OF_PROGRAM = (
    '"{name}";import sys;sys.path[:]=[p for p in sys.path if p];import zlib,base64,json;'
    't=json.loads(zlib.decompress(base64.b64decode("{packed}")).decode());g={{"__name__":"boot"}};'
    'exec(t["ncheck.agent.boot"],g);sys.meta_path.insert(0,g["MemoryImporter"](t));'
    "from {package}.main import main;main(sys.argv[1:])"
)


@cache
def rank_program() -> str:
    """Return the program of a rank; probe/agent/nccl_rank/__init__.py describes its input and output. Made once."""
    return _program("ncheck-rank", _OF_RANK, _RANK_PACKAGE)


@cache
def gpu_program() -> str:
    """Return the program that tests one GPU; probe/agent/gpu_alone/__init__.py describes its input and output."""
    return _program("ncheck-gpu", _OF_GPU, _GPU_PACKAGE, _RANK_PACKAGE)


def _program(name: str, shared: tuple[str, ...], package: str, *others: str) -> str:
    from importlib.resources import files

    from ncheck.fleet.without_notes import without_notes

    texts = {"ncheck": "", "ncheck.agent": "", "ncheck.probe": "", "ncheck.probe.agent": ""}
    for each in shared:
        folder, _, module = each.rpartition(".")
        texts[each] = without_notes((files(folder) / f"{module}.py").read_text("utf-8"))
    for one in (package, *others):
        texts |= {**_texts(one), one: ""}  # its own text is documentation
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return _LOADER_OF_PROGRAM.format(name=name, packed=packed, package=package)
