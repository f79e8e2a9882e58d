"""Faults, really made: each takes a healthy node and hurts it. A node that was touched is made anew after the test."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from . import layers, namespaces
from .hosts import Lab
from .node import Node
from .wiring import cable_of, port_of

# Written to /run, which is memory of the node's own: no trace in its tree.
CALLED = "/run/nvidia-smi-was-called"

# The first packet of a connection.
SYN = "tcp flags & (fin | syn | rst | ack) == syn"

DISKS = ("/tmp", "/dev/shm", "/run")  # noqa: S108  names of a node's own file systems


def sshd_pid(node: Node) -> int:
    return int(node.path("/run/sshd.pid").read_text())


def restart_sshd(node: Node) -> None:
    """Let sshd read its configuration and host keys again."""
    stop_sshd(node)
    node.path("/run/sshd.pid").unlink(missing_ok=True)
    node.sh("/usr/sbin/sshd -r -E /run/sshd.log; until [ -s /run/sshd.pid ]; do sleep 0.005; done")


def stop_sshd(node: Node) -> None:
    """End the server: the port refuses."""
    node.sh(f"kill {sshd_pid(node)}; while kill -0 {sshd_pid(node)} 2>&-; do sleep 0.005; done")


def freeze_sshd(node: Node) -> None:
    """Stop the server: the kernel accepts connections, and nobody ever answers."""
    node.sh(f"kill -STOP {sshd_pid(node)}")


def firewall(node: Node, *rules: str) -> None:
    """Add nft rules to what comes in."""
    chain = "add chain inet lab input { type filter hook input priority 0; }"
    added = "; ".join(f"add rule inet lab input {rule}" for rule in rules)
    node.sh(f"nft 'add table inet lab; {chain}; {added}'")


def lose_everything(node: Node) -> None:
    firewall(node, "tcp dport { 22, 10001 } drop")


def lose_large_packets(node: Node) -> None:
    """Drop what is larger than 600 bytes: connections open, key exchanges never end."""
    firewall(node, "meta length > 600 drop")


def lose_the_way(node: Node, address: str, ports: str) -> None:
    """Send into nothing what goes from these ports to these ports of another host: "32768-60999"."""
    node.sh(f"ip rule add to {address} ipproto tcp sport {ports} dport {ports} blackhole")


def listen(node: Node, port: int) -> None:
    """Let a program take a port."""
    script = f"import socket, time; held = socket.create_server(('', {port})); print(flush=True); time.sleep(1000)"
    node.sh(f'(python3 -c "{script}" </dev/null 2>&1 &) | read -r')


def cut(node: Node) -> None:
    node.sh("ip link set eth0 down")


def refuse_keys(node: Node) -> None:
    for user in layers.USERS:
        node.write(f"{user.home}/.ssh/authorized_keys", "", 0o600, user)


def change_host_key(node: Node) -> layers.Key:
    key = layers.new_key()
    node.write("/etc/ssh/ssh_host_ed25519_key", key.private, 0o600)
    restart_sshd(node)
    return key


def start_up_file(node: Node, line: str) -> None:
    """Add a line to ~/.bashrc, which bash reads when it is sshd's child."""
    there = node.path("/root/.bashrc")
    node.write("/root/.bashrc", (there.read_text() if there.exists() else "") + line + "\n")


def login_shell(node: Node, shell: str) -> None:
    node.sh(f"sed -i 's#^\\(root:.*\\):[^:]*$#\\1:{shell}#' /etc/passwd")


def program(node: Node, name: str, script: str) -> None:
    """Put a shell script in the place of a program."""
    node.write(f"/usr/local/bin/{name}", f"#!/bin/bash\n{script}\n", 0o755)


def hang_nvidia_smi(node: Node) -> None:
    """Make it hang, deaf to polite signals, with a child in another session that holds its output."""
    program(node, "nvidia-smi", "trap '' TERM INT HUP\nsetsid sleep 1000 &\nwhile :; do sleep 1000; done")


def wait_in_nvidia_smi(node: Node, seconds: int) -> None:
    """Make nvidia-smi tell that it was called, and take its time."""
    program(node, "nvidia-smi", f"touch {CALLED}\nsleep {seconds}")


def hide_program(node: Node, path: str) -> None:
    node.sh(f"rm {path}")


def fill_disks(node: Node) -> None:
    node.sh("mount -o remount,size=64m /dev/shm")  # what fills it is this machine's memory
    for folder in ("", *DISKS):
        node.sh(f"cat /dev/zero 2>&- >{folder}/fill || :")


def lock_disks(node: Node) -> None:
    for folder in ("/", *DISKS[:2]):  # sshd's own log is open in /run
        node.sh(f"mount -o remount,ro {folder}")


def remove_python(node: Node) -> None:
    node.sh("rm /usr/bin/python3*")


def shift_clock(node: Node, by: str) -> None:
    """Let every program that starts on the node see another time: "+1h".

    sshd itself, which started before, does not: its sandbox does not let libfaketime in.
    """
    (library,) = list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")) or [Path("libfaketime-is-missing")]
    node.write("/etc/faketimerc", by + "\n")
    node.write("/etc/ld.so.preload", f"{library}\n")


def schedule_shutdown(node: Node, seconds: int) -> None:
    """Announce a shutdown as systemd does."""
    text = f"USEC={(int(time.time()) + seconds) * 10**6}\nWARN_WALL=1\nMODE=poweroff\nUID=0\n"
    node.sh(f"mkdir -p -m 755 /run/systemd/shutdown; printf %s '{text}' > /run/systemd/shutdown/scheduled")


def limit_startups(node: Node, value: str) -> None:
    """Let sshd drop logins that come at once: MaxStartups start:rate:full."""
    node.sh(f"sed -i 's/^LoginGraceTime.*/LoginGraceTime 600\\nMaxStartups {value}/' /etc/ssh/sshd_config")
    restart_sshd(node)


@contextmanager
def half_open(lab: Lab, node: Node, connections: int, seconds: float) -> Iterator[None]:
    """Hold connections to a node's sshd that never log in, for so long at most."""
    held = "for n in $(seq {}); do exec {{fd}}<>/dev/tcp/{}/22; read -r _ <&$fd; done; echo held; read -t {} -r _"
    script = held.format(connections, node.address, seconds)
    holder = namespaces.start(namespaces.enter(lab.pid, ["bash", "-c", script]))
    try:
        namespaces.expect(holder, "held")
        yield
    finally:
        namespaces.end(holder)


@contextmanager
def load(lab: Lab, node: Node, logins: int) -> Iterator[None]:
    """Log in to a node again and again from the head, so many at once."""
    script = f"""
for n in $(seq {logins}); do (while ssh -n -o BatchMode=yes {node.name} true >&- 2>&-; :; do :; done) & done
echo begun
read -r _
"""
    together = ["unshare", "--pid", "--fork", "--kill-child=KILL", "bash", "-c", script]  # ended together
    loader = namespaces.start(namespaces.enter(lab.pid, together))
    try:
        namespaces.expect(loader, "begun")
        yield
    finally:
        namespaces.end(loader)


def serve_http(node: Node) -> None:
    """Put a server that is no SSH server on the port."""
    stop_sshd(node)
    words = "HTTP/1.1 400 Bad Request\\r\\nServer: lab\\r\\nConnection: close\\r\\n\\r\\n"
    serve = f"""
import socket, threading
server = socket.create_server(("", 22))
print(flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"{words}")
    client.close()
"""
    node.write("/run/http.py", serve)
    node.sh("(exec -a http python3 /run/http.py </dev/null 2>&1 &) | read -r")


def unplug_fast(lab: Lab, node: Node) -> None:
    """Pull the fast cable out of the switch and leave its other end lit: the NIC is up and goes nowhere."""
    lab.head("ip", "link", "set", port_of(node), "nomaster")
    node.touched = True


def shrink_switch_port(lab: Lab, node: Node) -> None:
    """Let the switch carry 1500 bytes to a node whose fast NIC sends 9000, with nobody cutting them smaller."""
    for each in lab.nodes:  # a packet that is still to be cut slips through, however large
        lab.head("ethtool", "-K", cable_of(each), "tso", "off", "gso", "off", "gro", "off")
        each.touched = True
    lab.head("ip", "link", "set", port_of(node), "mtu", "1500")


def docker_bridge(node: Node) -> None:
    """Add docker0 with the address that it has on every host."""
    node.sh("ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up")


def container_veth(node: Node) -> None:
    """Add the node's end of a container's veth pair: up, with nothing but a link-local address."""
    node.sh(
        "set -e; sysctl -qw net.ipv6.conf.default.accept_dad=0; ip link add veth3f9a1c2 type veth peer name inside; "
        "sysctl -qw net.ipv6.conf.inside.disable_ipv6=1; ip link set inside up; ip link set veth3f9a1c2 up"
    )


def infiniband(  # noqa: PLR0913  each is one fault
    node: Node,
    *,
    polling: tuple[str, ...] = (),
    lost: tuple[str, ...] = (),
    driverless: tuple[str, ...] = (),
    closed: bool = False,
    files: Mapping[str, str] | None = None,
) -> None:
    """Show two HDR adapters on the PCI bus, in /sys/class/infiniband and in /dev.

    Those named are down and polling, gone from the bus, or there without a driver. `closed`: /dev lacks the devices, as
    in a container. `files` are what differs: {"mlx5_0/fw_ver": "20.28.1002"}.
    """
    made, bus = node.path("/run/class"), node.path("/run/bus/pci")
    (bus / "drivers/mlx5_core").mkdir(parents=True)
    for number, name in enumerate(name for name in ("mlx5_0", "mlx5_1") if name not in lost):
        card = f"0000:{0x3B + int(name[-1]):02x}:00.0"
        _card(bus / "devices" / card, driver=name not in driverless)
        if name not in driverless:
            _hca(made / "infiniband" / name, 2 * node.number + number, up=name not in polling)
            (made / "infiniband" / name / "device").symlink_to(f"/sys/bus/pci/devices/{card}")
            _verbs(made / f"infiniband_verbs/uverbs{number}", name)
    for place, text in (files or {}).items():
        layers.write(made / "infiniband" / place, text + "\n")
    layers.write(made / "infiniband_mad/abi_version", "5\n")
    layers.write(made / "infiniband_verbs/abi_version", "6\n")
    for over, under in (("/run/class", "/sys/class"), ("/run/bus", "/sys/bus")):
        mount = ["mount", "-t", "overlay", "-o", f"lowerdir={over}:{under}", "lab", under]
        namespaces.run(namespaces.enter(node.pid, mount, rooted=True))
    node.touched = True
    if not closed:
        node.sh(_DEVICES)


def _card(folder: Path, *, driver: bool) -> None:
    """Lay out a ConnectX-6 on the PCI bus; libibverbs chooses its own driver by the modalias."""
    files = {
        "class": "0x020700", "vendor": "0x15b3", "device": "0x101b", "numa_node": "-1",
        "modalias": "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00",
    }  # fmt: skip
    for name, text in files.items():
        layers.write(folder / name, text + "\n")
    if driver:
        (folder / "driver").symlink_to("../../drivers/mlx5_core")


# What is mounted on a folder does not shine through an overlay on it. The devices are those of /dev/null.
_DEVICES = """
mkdir -p /run/dev/infiniband /run/pts /run/shm
for device in uverbs0 uverbs1 rdma_cm; do mknod -m 666 /run/dev/infiniband/$device c 1 3; done
mount --bind /dev/pts /run/pts && mount --bind /dev/shm /run/shm
mount -t overlay -o lowerdir=/run/dev:/dev lab /dev
mount --bind /run/pts /dev/pts && mount --bind /run/shm /dev/shm
"""


def _hca(folder: Path, number: int, *, up: bool) -> None:
    guid = f"0c42:a103:00aa:{number:04x}"
    device = {
        "node_type": "1: CA", "fw_ver": "20.31.1014", "hw_rev": "0", "hca_type": "MT4123", "board_id": "MT_0000000223",
        "node_guid": guid, "sys_image_guid": guid, "node_desc": folder.name,
    }  # fmt: skip
    port = {
        "lid": hex(number) if up else "0xffff", "sm_lid": "0x1" if up else "0x0", "lid_mask_count": "0",
        "sm_sl": "0", "cap_mask": "0x2651e848", "rate": "200 Gb/sec (4X HDR)" if up else "10 Gb/sec (4X SDR)",
        "state": "4: ACTIVE" if up else "1: DOWN", "phys_state": "5: LinkUp" if up else "2: Polling",
        "link_layer": "InfiniBand", "gids/0": f"fe80:0000:0000:0000:{guid}", "pkeys/0": "0xffff",
    }  # fmt: skip
    for name, text in (*device.items(), *((f"ports/1/{name}", text) for name, text in port.items())):
        layers.write(folder / name, text + "\n")


def _verbs(folder: Path, hca: str) -> None:
    """Lay out what libibverbs reads to find an HCA."""
    number = int(folder.name.removeprefix("uverbs"))
    files = {"ibdev": hca, "dev": f"231:{192 + number}", "abi_version": "1"}
    for name, text in files.items():
        layers.write(folder / name, text + "\n")


def nccl(node: Node, version: str) -> None:
    """Install another NCCL on this node."""
    layers.nccl(node.root, version)
    node.touched = True


def remove_nccl(node: Node) -> None:
    layers.forget_nccl(node.root)
    node.touched = True


@contextmanager
def memory_cgroup(node: Node, limit: int) -> Iterator[str]:
    """Make a memory cgroup with a limit in bytes, and without the kernel's killer; yield what a shell types to enter.

    Only version 1 of cgroups can do without it: who needs more waits in the kernel. The node sees the limit.
    """
    made = f"/sys/fs/cgroup/memory/ncheck-lab-{node.pid}"
    Path(made).mkdir()
    seen = "/sys/fs/cgroup"
    node.sh(f"mount -t tmpfs cgroup {seen}; mkdir {seen}/memory; mount -t cgroup -o memory memory {seen}/memory")
    try:
        Path(made, "memory.limit_in_bytes").write_text(str(limit))
        Path(made, "memory.oom_control").write_text("1")
        yield made
    finally:
        while Path(made, "cgroup.procs").read_text():  # those that were killed take a while to give their memory back
            time.sleep(0.05)
        Path(made).rmdir()
