"""What every host of the lab has in common, as layers of an overlay: users, keys, names, tools."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.compiled import compiled as kept_compiled

STANDINS = Path(__file__).parent / "standins"
NCCL = Path(__file__).parents[1] / "standins" / "nccl"  # of the library and of the driver: together they all-reduce
CHECKOUT = Path(__file__).parents[2]
# Folders of the real machine that no host of the lab shows: homes, local programs, and the tree under test.
HIDDEN = ("root", "home", "opt", "srv", "usr/local", "etc/ssh", str(CHECKOUT).lstrip("/"))
PACKAGES = "usr/lib/python3/dist-packages"  # on the path of Debian's and Ubuntu's python3, whatever its version

SSHD_CONFIG = """\
Port 22
Port 10001
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile .ssh/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org
UseDNS no
LoginGraceTime 8
UsePAM no
PidFile /run/sshd.pid
"""


@dataclass(frozen=True)
class User:
    """One who logs in; the names are the same on all hosts."""

    name: str
    uid: int
    home: str


ROOT = User("root", 0, "/root")
ADA = User("ada", 4242, "/home/ada")
USERS = (ROOT, ADA)


@dataclass(frozen=True)
class Key:
    """A key pair in OpenSSH's own formats."""

    private: str
    public: str


def new_key() -> Key:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return Key(private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() + "\n")


def write(path: Path, text: str | bytes, mode: int = 0o644, uid: int = 0) -> None:
    """Write one file with its folders; the mode and the owner are the file's alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    os.chown(path, uid, uid)


def hide(folder: Path) -> None:
    """Make a folder of a layer that covers all that lies below it in the layers underneath."""
    folder.mkdir(parents=True, exist_ok=True)
    os.setxattr(folder, "trusted.overlay.opaque", b"y")


def bare(layer: Path) -> None:
    """Fill the layer that hides what is this machine's own."""
    for name in HIDDEN:
        hide(layer / name)
    os.mknod(layer / ".dockerenv", stat.S_IFCHR)  # how an overlay says that a file is not there


def common(layer: Path, addresses: Mapping[str, str], host_keys: Mapping[str, Key]) -> None:
    """Fill the layer of what all hosts share. `addresses` maps the names of all hosts to their addresses."""
    write(layer / "etc/hosts", "127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in addresses.items()))
    write(layer / "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    write(layer / "etc/passwd", _with("passwd", f"ada:x:{ADA.uid}:{ADA.uid}::{ADA.home}:/bin/bash\n"))
    write(layer / "etc/group", _with("group", f"ada:x:{ADA.uid}:\n"))
    write(layer / "etc/shadow", _with("shadow", "ada:*:19000:0:99999:7:::\n"), 0o640)
    hide(layer / "etc/ssh")
    write(layer / "etc/ssh/sshd_config", SSHD_CONFIG)
    known = "".join(known_host(name, addresses[name], key) for name, key in host_keys.items())
    for user in USERS:
        _home(layer / user.home.lstrip("/"), user, known)


def known_host(name: str, address: str, key: Key) -> str:
    """Return a host's line of known_hosts."""
    return f"{name},{address},[{name}]:10001,[{address}]:10001 {key.public}"


def _with(name: str, line: str) -> str:
    """Return a file of /etc as this machine has it, and one line more."""
    ours = [entry for entry in Path("/etc", name).read_text().splitlines() if not entry.startswith("ada:")]
    return "\n".join(ours) + "\n" + line


def _home(home: Path, user: User, known: str) -> None:
    key = new_key()
    hide(home / ".ssh")
    for name, text in (("id_ed25519", key.private), ("authorized_keys", key.public), ("known_hosts", known)):
        write(home / ".ssh" / name, text, 0o600, user.uid)
    for folder, mode in ((home, 0o755), (home / ".ssh", 0o700)):
        os.chown(folder, user.uid, user.uid)
        folder.chmod(mode)


def software(layer: Path) -> None:
    """Add a training node's software, the same everywhere: torch with its NCCL wheel, Horovod, a real MPI program."""
    write(layer / "usr/local/bin/horovodrun", (STANDINS / "horovodrun").read_bytes(), 0o755)
    write(layer / "usr/local/bin/allreduce", mpi_program(), 0o755)
    torch(layer)
    package(layer, "horovod", "0.28.1", "__version__ = '0.28.1'\n")
    nccl(layer, "2.20.5")


def gpus(layer: Path, sysfs: Path) -> None:
    """Add two GPUs, as far as a driver's library, its program and the PCI bus show them."""
    write(layer / "usr/local/bin/nvidia-smi", (STANDINS / "nvidia-smi").read_bytes(), 0o755)
    write(layer / "usr/lib/libnvidia-ml.so.1", compiled("nvml.c"), 0o755)
    write(layer / "usr/lib/libcuda.so.1", compiled(NCCL / "cuda.c"), 0o755)
    write(layer / "etc/standin-cuda", "devices=2,memory=67108864\n")
    for address in ("0000:0f:00.0", "0000:10:00.0"):
        for name, text in (("vendor", "0x10de"), ("device", "0x20b2"), ("class", "0x030200"), ("numa_node", "0")):
            write(sysfs / "bus/pci/devices" / address / name, text + "\n")


def torch(layer: Path) -> None:
    """Put a torch for CUDA there, as far as ncheck looks at it: nothing of it can be used."""
    package(layer, "torch", "2.3.1", "__version__ = '2.3.1'\n")
    write(layer / PACKAGES / "torch/version.py", "__version__ = '2.3.1+cu121'\ncuda = '12.1'\nhip = None\n")


def package(layer: Path, name: str, version: str, text: str) -> None:
    """Install a distribution that is a name, a version and one module."""
    write(layer / PACKAGES / name / "__init__.py", text)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    write(layer / PACKAGES / f"{name}-{version}.dist-info/METADATA", metadata)


def nccl(layer: Path, version: str) -> None:
    """Put a stand-in libnccl of this version where the wheel has it, with the wheel's metadata, and no other there."""
    forget_nccl(layer)
    write(layer / PACKAGES / "nvidia/nccl/lib/libnccl.so.2", nccl_library(version), 0o755)
    metadata = f"Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: {version}\n"
    write(layer / PACKAGES / f"nvidia_nccl_cu12-{version}.dist-info/METADATA", metadata)


def forget_nccl(layer: Path) -> None:
    for folder in (layer / PACKAGES).glob("nvidia*"):
        shutil.rmtree(folder)


@cache
def mpi_program() -> bytes:
    """Compile a real MPI program that all-reduces 8 bytes and 8 MiB."""
    return compiled("allreduce.c", compiler="mpicc")


@cache
def nccl_library(version: str) -> bytes:
    """Compile a libnccl of this version, whose ranks sum over TCP; a host's /etc/standin-nccl makes it sick."""
    major, minor, patch = (int(part) for part in version.split("."))
    return compiled(NCCL / "nccl.c", f"-DCODE={major * 10000 + minor * 100 + patch}", f'-DTEXT="{version}+cuda12.4"')


def compiled(source: str | Path, *options: str, compiler: str = "cc -shared -fPIC -pthread") -> bytes:
    """Return what a compiler makes of a C file of standins/: a shared library, where none other is named."""
    return kept_compiled([*compiler.split(), "-O1", *options], [str(STANDINS / source)]).read_bytes()


def listing(folder: Path, *, but: Iterable[str] = ()) -> dict[str, tuple[object, ...]]:
    """Map every path under `folder` to kind, mode, owner and contents: equal listings are equal trees."""
    found: dict[str, tuple[object, ...]] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            where = str(path.relative_to(folder))
            if where not in but:
                found[where] = _described(path)
    return found


def _described(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    owner = (oct(status.st_mode), status.st_uid, status.st_gid)
    if path.is_symlink():
        return (*owner, str(path.readlink()))
    return (*owner, hashlib.sha256(path.read_bytes()).hexdigest()) if path.is_file() else owner
