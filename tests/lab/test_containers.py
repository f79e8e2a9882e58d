"""docs/containers.md, typed from top to bottom: hosts of the lab with Docker's default capabilities are containers."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from . import faults
from .command import built
from .conftest import this_interpreter
from .hosts import Lab
from .launching import launched
from .layers import CHECKOUT
from .node import Node
from .promises import PATIENT

PAGE = (CHECKOUT / "docs/containers.md").read_text(encoding="utf-8")
FILES = CHECKOUT / "docs/examples/container"
IMAGE_PATH = "/opt/train/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
OF_DOCKER = (
    "audit_write,chown,dac_override,fowner,fsetid,kill,mknod,net_bind_service,net_raw,setfcap,setgid,setpcap,setuid,"
    "sys_chroot"
)


def block(text: str) -> str:
    """Return the one code block of the page that has this text."""
    found: str
    (found,) = [body for body in re.findall(r"^```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if text in body]
    return found


def docker_run(node: Node, keys: dict[str, str]) -> str:
    """Start a node's container, as far as that is its files and entrypoint; return what docker logs would show."""
    faults.stop_sshd(node)
    node.sh("rm -r /root/.ssh /etc/ssh && mkdir -p /etc/ssh/keys && touch /.dockerenv")
    copied = {f"/{place}": (FILES / Path(place).name).read_text() for place in ("etc/ssh/sshd_config", "entrypoint.sh")}
    for name, text in {**keys, **copied}.items():
        node.write(name, text)
    rights = f"setpriv --bounding-set=-all,+{OF_DOCKER.replace(',', ',+')}"
    return node.sh(
        f"env -i PATH={IMAGE_PATH} setsid {rights} sh /entrypoint.sh </dev/null >/run/logs 2>&1 &"
        " until grep -q 'Server listening on 0.0.0.0 port 10001' /run/logs || ! kill -0 $!; do sleep 0.01; done;"
        " cat /run/logs"
    ).stdout


def typed(node: Node, command: str) -> str:
    """Type a command of the page in a container, with all the time it needs; return its standard output."""
    patient = command.strip().replace("nodes.txt -p 10001", f"nodes.txt -p 10001 {shlex.join(PATIENT)}")
    done = launched(node, f"cd /workspace && {{ {patient}; }} 2>/run/errors")
    assert done.exit_code == 0, f"{done}{node.path('/run/errors').read_text()}"
    return done.said


def test_the_page_leads_from_containers_without_keys_to_a_job_that_runs(lab: Lab) -> None:
    nodes = lab.nodes[:3]
    lab.remake(*nodes, real=this_interpreter())
    first = nodes[0]
    first.write("/workspace/nodes.txt", block("10.77.0.1\n"))
    typed(first, block("-f keys/id_ed25519"))
    keys = {f"/keys/{path.name}": path.read_text() for path in first.path("/workspace/keys").iterdir()}
    logs = [docker_run(node, keys) for node in nodes]
    first.write("/usr/local/bin/ncheck", f'#!/bin/sh\nexec {shlex.join(built())} "$@"\n', 0o755)

    typed(first, block("ssh-keyscan -t ed25519 -p 10001"))
    collected = typed(first, block("ssh-keygen -l -f ~/.ssh/known_hosts"))
    # 256 SHA256:... [10.77.0.1]:10001 (ED25519)
    assert set(re.findall("SHA256:\\S+", collected)) == set(re.findall("SHA256:\\S+", "".join(logs)))
    assert typed(first, f"ssh -p 10001 {nodes[1].address} 'echo $PATH'") == f"{IMAGE_PATH}\n"

    report = json.loads(typed(first, block("ncheck nodes.txt -p 10001\n").strip() + " --probe none -o json"))
    assert (report["findings"], report["exit_code"]) == ([], 0)
    assert {(node["user"], node["port"], node["container"]) for node in report["nodes"]} == {("root", 10001, "docker")}

    line = typed(first, block("ncheck plan nodes.txt -p 10001 -- python train.py"))
    assert line == block("mpirun --allow-run-as-root")
    said = typed(first, line.replace("python train.py", "allreduce"))
    ranks = {f"rank {rank} on node0{1 + rank // 2}" for rank in range(6)}
    assert set(said.splitlines()) == ranks | {"8 bytes over 6 ranks", "8388608 bytes over 6 ranks"}
