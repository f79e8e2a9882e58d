"""From descriptions to files: the evidence of each node, and the folders of fixtures/."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.learning import sources_for
from ncheck.facts.maintenance import RESERVATIONS
from ncheck.facts.os_release import OS_RELEASE
from ncheck.facts.ssh_peers import FROM_HERE, PEERS
from ncheck.facts.tools import TOOLS
from ncheck.fleet.recording import encode
from ncheck.model.evidence import Answer, Evidence, Greeting, JsonValue, Login, Note, Reply, Status

from tests.every_fact import every_fact

from .amd import no_amd
from .clusters import CLUSTERS
from .efa import PLUG_IN, of_efa, without_plug_in
from .fabric import fabric_replies
from .gpu_health import gpu_health_replies
from .gpus import gpu_replies
from .hcas import hca_replies
from .host import address
from .host_state import host_state_replies
from .links import link_replies
from .machine import machine_replies
from .nccl_pick import pick_replies
from .net import net_replies
from .network import network_replies
from .nvlinks import nvlink_replies
from .pci import pci_replies
from .pcie import pcie_replies
from .probe import answered, none_asked
from .software import PYTHON, software_replies
from .storage import storage_replies
from .unasked import unasked_replies

if TYPE_CHECKING:
    from pathlib import Path

    from .host import Host

NAMESPACE = "net:[4026531840]"  # the first of every kernel: the nodes are no containers
UNCERTAINTY = 0.0003  # seconds
SSH_PORT = 22
_NO_PEERS = Reply(Status.NOT_ASKED, "no ssh to other nodes to test from here")
_UBUNTU = 'PRETTY_NAME="Ubuntu 22.04.4 LTS"\nID=ubuntu\nID_LIKE=debian\n'


def evidence(host: Host, place: int) -> Evidence:
    """Return all that this node answered."""
    listed = (f"nodes.txt:{place}",)
    if host.cause:
        login = Login(reached=False, cause=host.cause, detail=host.detail, transport="paramiko", port=host.port)
        return Evidence(host.name, login, places=listed, slots=host.gpus)
    login = Login(
        reached=True, transport="paramiko", address=address(host.number), port=host.port, user="train", seconds=0.06
    )
    known = replies(host)
    greeting = Greeting(host.name, host.identifier("boot"), NAMESPACE, 1001, f"{PYTHON} ({host.python})", host.noise)
    node = Evidence(
        host.name,
        login,
        greeting,
        answered(known),
        clock_offset=host.clock,
        clock_uncertainty=UNCERTAINTY,
        places=listed,
        slots=host.gpus,
        notes={key: note for key, note in known.items() if isinstance(note, Note)},
    )
    return without_plug_in(of_efa(node), elsewhere=[PLUG_IN]) if host.efa else node


def replies(host: Host) -> dict[str, Reply | Note]:
    """Return the answers to every source of every reader, or a note, and to nothing else."""
    known = {
        **gpu_replies(host),
        **no_amd(),
        **machine_replies(host),
        **gpu_health_replies(host),
        **pci_replies(host),
        **nvlink_replies(host),
        **host_state_replies(host),
        **pcie_replies(host),
        **fabric_replies(host),
        **hca_replies(host),
        **network_replies(host),
        **net_replies(host),
        **link_replies(host),
        **software_replies(host),
        **storage_replies(),
        **pick_replies(host),
        **unasked_replies(host),
        **_asked_by_us(host),
    }
    wanted = {source.key for source in sources_for(every_fact())}
    probe = none_asked() if host.probe is None else host.probe
    return {**{key: reply for key, reply in known.items() if key in wanted}, **probe}


def _asked_by_us(host: Host) -> dict[str, Reply]:
    """Return what the session itself settles: the clock, ssh from the node to the others and from here to it, Slurm."""
    port = None if host.port == SSH_PORT else host.port
    ran: dict[str, JsonValue] = {
        "exit_status": 0,
        "stderr": "",
        "seconds": 0.19,
        "cut_short": False,
        "ran": True,
        "port": port,
    }
    refused: dict[str, JsonValue] = {
        **ran,
        "exit_status": 255,
        "stderr": "Permission denied (publickey).",
        "ran": False,
    }
    said: dict[str, JsonValue] = dict.fromkeys(host.ssh_peers, refused if host.keys_refused else ran)
    reserved: JsonValue = {"lines": [], "now": 1767225600.0, "user": "train", "job": None}
    clock: JsonValue = {"offset": host.clock, "uncertainty": UNCERTAINTY}
    return {
        Answer("clock").key: Reply(Status.OK, value=clock),
        OS_RELEASE.key: Reply(Status.OK, value=_UBUNTU, seconds=0.001),
        TOOLS.key: Reply(Status.OK, value={"tools": {}}, seconds=0.01),
        PEERS.key: Reply(Status.OK, value={"peers": said}, seconds=0.6) if said else _NO_PEERS,
        RESERVATIONS.key: Reply(Status.OK, value=reserved, seconds=0.01),
        FROM_HERE.key: Reply(Status.OK, value={"peers": {host.name: ran}}),
    }


def files() -> dict[str, str]:
    """Return every file of fixtures/: its path there, and its text."""
    made = {}
    for name, hosts in CLUSTERS.items():
        for position, host in enumerate(hosts):
            made[f"{name}/{host.name}.json"] = encode(evidence(host, position + 1), position, len(hosts))
    return made


def write(folder: Path) -> None:
    """Write them."""
    for path, text in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="ascii")
