"""What a node answers about its software: interpreter, NCCL, environment, limits, Open MPI, Horovod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.cuda import CUDA
from ncheck.facts.environment import ENVIRONMENT
from ncheck.facts.folders import FOLDERS
from ncheck.facts.horovod import CHECK_BUILD
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.libraries import LIBRARIES as JOB_LIBRARIES
from ncheck.facts.limits import LIMITS
from ncheck.facts.mounts import MOUNTS
from ncheck.facts.mpi import MPIEXEC, MPIRUN, REAL_PATH
from ncheck.facts.mpi_daemon import MPI_DAEMON
from ncheck.facts.mpi_settings import SYSTEM_FILES, USERS_FILE
from ncheck.facts.nccl import NCCL
from ncheck.facts.net_plugin import NET_PLUGIN
from ncheck.model.evidence import Answer, JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host

PYTHON = "/usr/bin/python3"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
MPI_PREFIX = "/usr/mpi/gcc/openmpi"


def software_replies(host: Host) -> dict[str, Reply]:
    """Return the answers about software. NCCL is the system's, as in images whose torch was built against it."""
    printed = {
        MPIRUN: f"mpirun (Open MPI) {host.mpi}\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
        REAL_PATH: f"{MPI_PREFIX}/bin/orterun\n",
        CHECK_BUILD: check_build(host),
        MOUNTS: "10.20.0.2:/export/home /home nfs4 rw,relatime,vers=4.2,hard,proto=tcp 0 0\n",
    }
    said: dict[Answer, JsonValue] = {
        INTERPRETER: _interpreter(host),
        NCCL: _nccl(host),
        CUDA: _cuda(),
        NET_PLUGIN: _no_plugin(),
        ENVIRONMENT: _environment(),
        LIMITS: _limits(host),
        FOLDERS: _folders(),
        JOB_LIBRARIES: _job_libraries(host),
        MPI_DAEMON: mpi_programs(host),
    }
    return {
        MPIEXEC.key: Reply(Status.OK, exit_status=0, stdout=printed[MPIRUN], seconds=0.02),
        USERS_FILE.key: Reply(Status.MISSING, reason="No such file or directory", seconds=0.001),
        SYSTEM_FILES.key: Reply(Status.OK, value={}, seconds=0.001),
        **{source.key: Reply(Status.OK, exit_status=0, stdout=text, seconds=0.03) for source, text in printed.items()},
        **{source.key: Reply(Status.OK, value=value, seconds=0.02) for source, value in said.items()},
    }


def _interpreter(host: Host) -> JsonValue:
    return {
        "path": PYTHON,
        "real_path": PYTHON + ".10",
        "version": host.python,
        "prefix": "/usr",
        "how": "python3 on PATH",
        "packages": {"horovod": host.horovod, "torch": host.torch, "torchvision": "0.18.1"},
        "container": host.container,
        "host_name": host.name,
        "torch": {"version": host.torch, "cuda": host.cuda, "hip": None},
    }


def _job_libraries(host: Host) -> JsonValue:
    hcas: list[JsonValue] = [hca.name for hca in host.hcas]
    return {"verbs": "", "uverbs": {hca.name: "" for hca in host.hcas}, "listed": hcas, "mpi": ""}


def _nccl(host: Host) -> JsonValue:
    path = f"{LIBRARIES}/libnccl.so.{host.nccl}"
    copy: JsonValue = {
        "path": path,
        "origin": "loader",
        "seen_as": [f"{LIBRARIES}/libnccl.so.2"],
        "version": host.nccl,
        "cuda": host.cuda,
    }
    loaded: JsonValue = {"version": host.nccl, "path": path, "static": False, "how": "torch's libraries name it"}
    return {"copies": [copy], "loaded": loaded}


def _no_plugin() -> JsonValue:
    net: JsonValue = {"name": "libnccl-net.so", "path": None, "sure": True}
    tuner: JsonValue = {"name": "libnccl-tuner.so", "path": None, "sure": True}
    return {"named": [], "off": False, "plugins": [net], "tuner": tuner, "elsewhere": [], "efa": [], "efa_driver": None}


def _cuda() -> JsonValue:
    cudnn: JsonValue = {"path": f"{LIBRARIES}/libcudnn.so.9.1.0", "version": "9.1.0"}
    return {"toolkit": {"path": "/usr/local/cuda-12.4", "version": "12.4.1"}, "cudnn": cudnn, "copies": ["9.1.0"]}


def _environment() -> JsonValue:
    variables: JsonValue = {"PATH": f"{MPI_PREFIX}/bin:/usr/local/bin:/usr/bin:/bin"}
    files: JsonValue = {"/home/train/.nccl.conf": None, "/etc/nccl.conf": None}
    return {"variables": variables, "job_variables": variables, "secret": [], "files": files, "missing": []}


def mpi_programs(host: Host) -> JsonValue:
    """Return what the plain login finds of Open MPI: mpirun, and the daemon beside it."""
    info = f"ompi:version:full:{host.mpi}\npath:prefix:{MPI_PREFIX}\nconfig:cli: --with-cuda --with-ucx"
    info += "\nmpirun:prefix_by_default:no"
    mpirun = f"mpirun (Open MPI) {host.mpi}\n\nReport bugs to http://www.open-mpi.org/community/help/"
    orted = "orted: Error: unknown option \"--version\"\nType 'orted --help' for usage."
    starter = _program("mpirun", "orterun", ["plain login"], info, mpirun, 0)
    plain = host.orted_on_path
    daemon = _program(
        "orted", "orted", ["plain login" if plain else "interactive shell", "beside mpirun"], info, orted, 213
    )
    early: JsonValue = {"file": "/home/train/.bashrc", "line": 6, "text": "case $- in *i*) ;; *) return;; esac"}
    return {"starter": starter, "daemons": [daemon], "shells": {}, "start_up": None if plain else early,
            "login_shell": "/bin/bash", "rsh_agents": []}  # fmt: skip


def _program(  # noqa: PLR0913, PLR0917  the members of one record
    name: str, real: str, by: list[JsonValue], info: str, said: str, ended: int
) -> JsonValue:
    says: JsonValue = {"said": said, "exit_status": ended, "status": "ok", "reason": ""}
    paths = {"path": f"{MPI_PREFIX}/bin/{name}", "real_path": f"{MPI_PREFIX}/bin/{real}"}
    return {**paths, "by": by, "info": info, "says": says, "prefixed": None}


def _limits(host: Host) -> JsonValue:
    return {
        "memlock": host.memlock,
        "open_files": 1048576,
        "processes": 8253117,
        "address_space": None,
        "cpu_seconds": None,
        "file_size": None,
        "shm": {"total": host.shm, "free": host.shm - 1048576},
    }


def _folders() -> JsonValue:
    def folder(path: str, free: int, files_free: int | None) -> JsonValue:
        described: JsonValue = {
            "path": path, "named_by": "", "exists": True, "writable": path != "/", "read_only": False, "free": free,
            "files_free": files_free, "size": sizes[path], "kind": "nfs4" if path == "/home/train" else "ext4",
        }  # fmt: skip
        return described

    sizes = {"/tmp": 1886218649600, "/": 1886218649600, "/home/train": 109951162777600, "/dev/shm": 1081936521216}  # noqa: S108

    return {
        "temporary": [folder("/tmp", 812347392000, 58120333)],  # noqa: S108  only a name
        "home": folder("/home/train", 45811200000000, None),
        "shm": folder("/dev/shm", 1081100128256, 263940000),  # noqa: S108
        "root": folder("/", 812347392000, 58120333),
    }


def check_build(host: Host) -> str:
    """Return what `horovodrun --check-build` prints."""
    known = ("NCCL", "DDL", "CCL", "MPI", "Gloo")
    operations = "".join(f"    [{'X' if name in host.horovod_with else ' '}] {name}\n" for name in known)
    return f"""\
Horovod v{host.horovod}:

Available Frameworks:
    [ ] TensorFlow
    [X] PyTorch
    [ ] MXNet

Available Controllers:
    [X] MPI
    [X] Gloo

Available Tensor Operations:
{operations}"""
