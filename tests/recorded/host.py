"""What a recorded node is like: the description from which everything that it answers is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import NAMESPACE_DNS, uuid5

from ncheck.model.evidence import Cause, Note, Reply
from ncheck.network.ssh_edges import ALL_PAIRS_UP_TO, edges

H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-80GB"


IN_A_SUBNET = 245  # nodes with addresses of 10.20.0.0/24; more are in 10.20.0.0/16


def address(number: int) -> str:
    """Return the address of a node's Ethernet NIC."""
    block, place = divmod(number, IN_A_SUBNET)
    return f"10.20.{block}.{10 + place}"


def mac(number: int, index: int) -> str:
    """Return a hardware address, locally administered: nobody's card."""
    return f"02:5e:10:{number >> 8:02x}:{number & 0xFF:02x}:{index:02x}"


@dataclass(frozen=True)
class Nic:
    """One interface; what a description leaves out is what a 25G Ethernet NIC on the PCI bus has."""

    name: str
    ip: str = ""
    prefix: int = 24
    link_local: bool = False  # it has such an address, although it has no other
    running: bool = True
    driver: str = "bnxt_en"
    pci: str = "0000:05:00.0"
    speed: int | None = 25000
    mtu: int = 1500
    numa: int | None = 0
    type: int = 1
    bridge: bool = False
    lower: tuple[str, ...] = ()
    master: str | None = None
    peer_index: int | None = None
    hca: str | None = None
    default_route: bool = False

    @property
    def loopback(self) -> bool:
        return self.name == "lo"


@dataclass(frozen=True)
class Hca:
    """One single-port HCA with what its port says."""

    name: str
    pci: str
    numa: int
    state: str = "Active"
    physical: str = "LinkUp"
    rate: int = 400


@dataclass(frozen=True)
class Host:
    """One node. `number` makes its addresses and GUIDs; `peers` are the nodes that it reached by its own ssh.

    `picked` is the address that NCCL picks by itself where that is not the node's own; `planned` the interface that the
    plan names, "" where it names none.
    """

    name: str
    number: int
    nics: tuple[Nic, ...]
    hcas: tuple[Hca, ...]
    gpu: str = H100
    gpus: int = 8
    driver: str = "550.127.08"
    cuda: str = "12.4"
    python: str = "3.10.12"
    torch: str = "2.5.1+cu124"
    nccl: str = "2.21.5"
    mpi: str = "4.1.6"
    horovod: str = "0.28.1"
    memlock: int | None = None
    shm: int = 1081101176832
    clock: float = 0.0004
    noise: str = ""
    cause: Cause | None = None
    detail: str = ""
    port: int = 22  # of its sshd
    container: str = ""  # "docker" in one
    commit: str = ""  # of the job's code; "" where no --workdir was given
    horovod_with: tuple[str, ...] = ("NCCL", "MPI", "Gloo")
    held_gpu: int | None = None  # the GPU on which a process of an earlier job is left
    cuda_fails: str = ""  # the loader's words on libcuda.so.1
    efa: bool = False  # EFA in the place of its HCAs, and the plug-in for it where the loader does not look
    port_holder: str = ""  # who has the job's port
    orted_on_path: bool = True  # of a login that is not interactive
    name_leads_to: str = ""  # its own hostname, where that is not its address
    keys_refused: bool = False  # by all other nodes, when it logs in to them
    peers: tuple[str, ...] = ()
    lost_peers: tuple[str, ...] = ()
    picked: str = ""
    planned: str = ""
    broken: tuple[tuple[str, str, str], ...] = ()  # links that failed: the other node, its address, the cause
    probe: Mapping[str, Reply | Note] | None = None  # what it told of the probe; None: nothing was to be measured

    @property
    def ssh_peers(self) -> tuple[str, ...]:
        """The peers that ncheck asks it to reach by ssh: in large clusters those that a launch starts from it."""
        if len(self.peers) < ALL_PAIRS_UP_TO:
            return self.peers
        names = sorted((self.name, *self.peers))
        return tuple(names[other] for other in edges(len(names), "auto").get(self.number - 1, ()))

    def identifier(self, what: str) -> str:
        """Return a UUID that is this node's own and the same at every making."""
        return str(uuid5(NAMESPACE_DNS, f"{what}.{self.name}.example"))
