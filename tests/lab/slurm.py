"""Slurm over a lab's hosts: the real slurmctld on the head, slurmd on each node, munged on all, one allocation."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import layers, namespaces
from .command import Run, Running
from .hosts import Lab
from .layers import ROOT, User
from .node import Node
from .promises import HANGS, eventually

# Memory of each host's own, so that a host's tree stays as it was: sockets, logs, state.
HOME = "/mnt"
SOCKET = f"{HOME}/munge.socket"

CONF = f"""\
ClusterName=lab
SlurmctldHost=head(10.77.0.254)
SlurmUser=root
AuthInfo=socket={SOCKET}
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
SlurmdParameters=config_overrides
ReturnToService=2
MessageTimeout=3
KillWait=1
StateSaveLocation={HOME}/state
SlurmdSpoolDir={HOME}/spool
SlurmctldPidFile={HOME}/slurmctld.pid
SlurmdPidFile={HOME}/slurmd.pid
SlurmctldLogFile={HOME}/slurmctld.log
SlurmdLogFile={HOME}/slurmd.log
"""

MUNGED = f"""
mount -t tmpfs -o mode=755,size=32m slurm {HOME}
mkdir {HOME}/state {HOME}/spool
install -m 600 /etc/slurm/munge.key {HOME}/munge.key
munged --force --key-file={HOME}/munge.key --socket={SOCKET} --pid-file={HOME}/munged.pid \
  --log-file={HOME}/munged.log --seed-file={HOME}/munged.seed --num-threads=2
"""

# slurmd insists on a hierarchy of its own: in a node's mount namespace nobody else sees it.
SLURMD = """
mount -t tmpfs cgroup /sys/fs/cgroup
for name in freezer memory cpuset cpuacct devices; do
  mkdir /sys/fs/cgroup/$name
  mount -t cgroup -o $name $name /sys/fs/cgroup/$name
done
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
slurmd
"""


class Slurm:
    """Slurm on a running lab. `job` is an allocation of all nodes, which a node that fails does not end."""

    job: str

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.key = secrets.token_bytes(128)
        half = (len(lab.names) + 1) // 2
        leaves = {"leaf1": lab.names[:half], "leaf2": lab.names[half:]}
        self.leaves = {leaf: nodes for leaf, nodes in leaves.items() if nodes}

    def start(self) -> None:
        """Start all daemons, and allocate all nodes."""
        self._configure(self.lab.root)
        namespaces.run(namespaces.enter(self.lab.pid, ["sh", "-ec", MUNGED + "slurmctld"]))
        self._start_slurmd(self.lab.nodes)
        self.allocate()

    def _configure(self, root: Path) -> None:
        rows = [f"NodeName={name} NodeAddr={at} CPUs=4 State=UNKNOWN" for name, at in self.lab.addresses.items()]
        partition = "PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
        layers.write(root / "etc/slurm/slurm.conf", CONF + "\n".join([*rows, partition, ""]))
        layers.write(root / "etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        leaves = [f"SwitchName={name} Nodes={','.join(nodes)}" for name, nodes in self.leaves.items()]
        spine = f"SwitchName=spine Switches={','.join(self.leaves)}"
        layers.write(root / "etc/slurm/topology.conf", "\n".join([*leaves, spine, ""]))
        layers.write(root / "etc/slurm/munge.key", self.key, 0o600)

    def _start_slurmd(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._configure(node.root)
            node.sh(f"set -e\n{MUNGED}{SLURMD}")
            node.touched = False

    def allocate(self, user: User = ROOT) -> None:
        """Allocate all nodes, once they are idle."""
        states = eventually(lambda: self.states() - {"idle"}, set[str](), 30)
        assert not states, f"nodes are {states}: {self.lab.head('sinfo', '-N', '-l').stdout}"
        who = ["setpriv", "--reuid", str(user.uid), "--regid", str(user.uid), "--clear-groups"]
        asked = self.lab.head(*who, "salloc", "--no-shell", "--no-kill", f"--nodes={len(self.lab.nodes)}")
        # salloc: Granted job allocation 7
        (self.job,) = re.findall(r"Granted job allocation (\d+)", asked.stderr)

    def states(self) -> set[str]:
        return set(self.lab.head("sinfo", "--noheader", "--Node", "--format=%T").stdout.split())

    def steps(self) -> str:
        """Return the steps that run now."""
        return self.lab.head("squeue", "--steps", "--noheader", "--format=%j %N").stdout.strip()

    def tell(self, *words: str) -> None:
        self.lab.head("scontrol", *words, check=False)  # also what is so already

    def heal(self) -> None:
        """Make nodes anew that were touched, bring all of them back, and allocate them again."""
        hurt = [node for node in self.lab.nodes if node.touched]
        for node in hurt:  # slurmctld would wait for its slurmd to end the job
            self.tell("update", f"nodename={node.name}", "state=down", "reason=made anew")
        self.lab.head("scancel", self.job)
        self.lab.remake(*hurt)
        self._start_slurmd(hurt)
        for node in self.lab.nodes:
            if self.lab.head("sinfo", "-h", "-N", "-n", node.name, "-o", "%T").stdout.strip() != "idle":
                self.tell("update", f"nodename={node.name}", "state=resume")
        self.allocate()

    def begin(self, *argv: str, user: User = ROOT, nodes: Sequence[str] = ()) -> Running:
        """Start ncheck on the head as a shell in the allocation would, or in one of these nodes."""
        nodes = nodes or self.lab.names
        job = [f"SLURM_JOB_ID={self.job}", f"SLURM_JOB_NODELIST={','.join(nodes)}"]
        return Running(self.lab, argv, user, "", [*job, f"SLURM_TASKS_PER_NODE=1(x{len(nodes)})"])

    def ncheck(self, *argv: str, user: User = ROOT, waits: Sequence[str] = (), nodes: Sequence[str] = ()) -> Run:
        asked = ("check", "-o", "json", "--probe", "none", *waits, *argv)
        return self.begin(*asked, user=user, nodes=nodes).wait(HANGS)
