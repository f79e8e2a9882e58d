"""The recorded clusters: a healthy one, and what is wrong with each of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.model.evidence import Cause

from .gpus import BUSES, numa
from .host import IN_A_SUBNET, Hca, Host, Nic, address
from .network import LOOPBACK_TYPE
from .probe import measured

INFINIBAND_TYPE = 32


def cluster(*names: str) -> tuple[Host, ...]:
    """Return healthy nodes of 8 H100s with NVLink, 8 HCAs and a 25G Ethernet NIC each, that all reach each other."""
    prefix = 24 if len(names) < IN_A_SUBNET else 16
    hosts = (Host(name, number, nics(number, prefix=prefix), hcas()) for number, name in enumerate(names, 1))
    return tuple(replace(host, peers=tuple(name for name in names if name != host.name)) for host in hosts)


def hcas() -> tuple[Hca, ...]:
    """Return eight HCAs, one beside each GPU."""
    return tuple(Hca(f"mlx5_{i}", f"0000:{int(bus, 16) + 1:02x}:00.0", numa(i)) for i, bus in enumerate(BUSES))


def nics(number: int, ethernet: str = "eno1", prefix: int = 24) -> tuple[Nic, ...]:
    """Return the interfaces of a healthy node: its Ethernet NIC carries the addresses, IPoIB has none."""
    lo = Nic("lo", driver="", pci="", speed=None, mtu=65536, type=LOOPBACK_TYPE)
    wire = Nic(ethernet, address(number), prefix, default_route=True)
    spare = Nic("eno2", running=False, pci="0000:05:00.1")
    ipoib = (
        Nic(
            f"ib{i}",
            driver="mlx5_core",
            pci=h.pci,
            speed=400000,
            mtu=2044,
            numa=h.numa,
            type=INFINIBAND_TYPE,
            hca=h.name,
        )
        for i, h in enumerate(hcas())
    )
    return (lo, wire, spare, *ipoib)


def lost(hosts: tuple[Host, ...], name: str, cause: Cause, detail: str) -> tuple[Host, ...]:
    """Return the cluster with one node that cannot be used; the others could not ask it either."""
    return tuple(
        replace(host, cause=cause, detail=detail)
        if host.name == name
        else replace(host, peers=tuple(peer for peer in host.peers if peer != name))
        for host in hosts
    )


def changed(hosts: tuple[Host, ...], name: str, **fields: object) -> tuple[Host, ...]:
    """Return the cluster with one node that differs."""
    return tuple(replace(host, **fields) if host.name == name else host for host in hosts)  # type: ignore[arg-type]


def polling(ports: tuple[Hca, ...], name: str) -> tuple[Hca, ...]:
    """Return the HCAs with one whose cable or far end is dead: it searches for a partner."""
    return tuple(replace(p, state="Down", physical="Polling", rate=10) if p.name == name else p for p in ports)


def docker_first(wires: tuple[Nic, ...]) -> tuple[Nic, ...]:
    """Return the interfaces of a node whose Ethernet driver was loaded anew after Docker had started.

    The kernel lists the bridges first then, and one of a compose network has no name that NCCL would leave out.
    """
    lo, *rest = wires
    compose = _bridge("br-5b1d7c3e9f20", "172.18.0.1", "veth8b2e7d1", 3)
    return (lo, *_bridge("docker0", "172.17.0.1", "veth3f9a1c2", 1), *compose, *rest)


def on_docker(host: Host) -> Host:
    """Return such a node as NCCL sees it: it takes the compose network's bridge, unless the plan says otherwise."""
    return replace(host, nics=docker_first(host.nics), picked="172.18.0.1", planned="eno1")


def with_container(host: Host) -> Host:
    """Return a node without HCAs, on which a container runs: its veth has a link-local address."""
    veth = Nic(f"veth{host.number}f9a1c2", driver="veth", pci="", speed=10000, numa=None, peer_index=2, link_local=True)
    return replace(host, nics=(*(nic for nic in host.nics if not nic.hca), veth), hcas=(), planned="eno1")


def _bridge(name: str, ip: str, port: str, index: int) -> tuple[Nic, Nic]:
    bridge = Nic(name, ip, 16, driver="bridge", pci="", speed=10000, numa=None, bridge=True, lower=(port,))
    veth = Nic(port, driver="veth", pci="", speed=10000, numa=None, master=name, peer_index=index + 30)
    return bridge, veth


FOUR = ("gpu01", "gpu02", "gpu03", "gpu04")
HEALTHY = cluster(*FOUR)
REFUSED = "connect to 10.20.0.13 port 22: Connection refused"
SIX = cluster("gpu01", "gpu02", "gpu03", "gpu04", "gpu05", "gpu06")


def broken_links(hosts: tuple[Host, ...], causes: Mapping[tuple[str, str], str]) -> tuple[Host, ...]:
    """Return the cluster with links that failed, by (from, to)."""
    addresses = {host.name: next(nic.ip for nic in host.nics if nic.default_route) for host in hosts}
    return tuple(
        replace(host, broken=tuple((to, addresses[to], why) for (one, to), why in causes.items() if one == host.name))
        for host in hosts
    )


def one_way_and_hole() -> tuple[Host, ...]:
    """Return nodes of which one gets no answer from another, and a third sends larger packets than arrive anywhere."""
    others = [name for name in FOUR if name != "gpu03"]
    hole = {("gpu03", name): "large-lost" for name in others} | {(name, "gpu03"): "large-lost-back" for name in others}
    return broken_links(HEALTHY, {("gpu02", "gpu04"): "filtered", **hole})


def demo() -> tuple[Host, ...]:
    """Return the demo's cluster: another NCCL, a dead cable, a start-up file that prints, and a node that is down.

    On all of them NCCL would take Docker's bridge.
    """
    hosts = changed(SIX, "gpu03", nccl="2.20.5")
    hosts = changed(hosts, "gpu04", hcas=polling(hcas(), "mlx5_5"))
    hosts = changed(hosts, "gpu05", noise="Welcome to gpu05! Maintenance on Friday.\n")
    hosts = tuple(on_docker(host) for host in hosts)
    return lost(hosts, "gpu06", Cause.REFUSED, "connect to 127.0.0.1: Connection refused")


def slow_node_and_rail() -> tuple[Host, ...]:
    """Return nodes of which one is slow with all others, and another has a dead port: it was measured by --force."""
    hosts = changed(cluster(*FOUR), "gpu02", hcas=polling(hcas(), "mlx5_5"))
    return measured(hosts, slow={"gpu03": 0.44})


COMMITS = "97ff6cfd9c8624ab0d0d6c0cbd3c7f2ae1f0d8ab", "3b1e05d2f7a94c6681d0b5f4c2e9a7730816cc5e"
PRESENTED = "ssh-ed25519 SHA256:f0Yv2nqkS9m3uXb1cR7dJw5tEoA8gLzHiPxKs6NQeUM"
STRANGER = f"not in /home/train/.ssh/known_hosts: the host presents {PRESENTED}"
CHANGED = (
    f"the host key of [gpu11]:10001 changed: it presents {PRESENTED}, /home/train/.ssh/known_hosts:7 has ssh-ed25519 "
    "SHA256:9WnbVtq2LkD4cXoR1sYh7pJf0EmZaGu5wTxIi8Kd3NQ. The node was reinstalled, or another machine answers: compare "
    "on its console. Only if it shows the key that it presents, type: ssh-keygen -f /home/train/.ssh/known_hosts -R "
    "'[gpu11]:10001'"
)


def fresh_containers() -> tuple[Host, ...]:
    """Return containers of which each has another fault; three of them nobody has logged in to yet."""
    hosts = tuple(
        replace(host, port=10001, container="docker", gpus=2, hcas=hcas()[:1], nics=host.nics[:4], commit=COMMITS[0])
        for host in cluster(*(f"gpu{number:02}" for number in range(1, 13)))
    )
    hosts = changed(hosts, "gpu01", port_holder="python3 (pid 28114) of train")
    hosts = changed(hosts, "gpu02", held_gpu=1)
    hosts = changed(hosts, "gpu03", memlock=8 * 2**20)
    hosts = changed(hosts, "gpu04", shm=64 * 2**20)
    hosts = changed(hosts, "gpu05", horovod_with=("MPI", "Gloo"))
    hosts = changed(hosts, "gpu06", commit=COMMITS[1])
    hosts = changed(hosts, "gpu07", orted_on_path=False)
    hosts = changed(hosts, "gpu08", name_leads_to="127.0.1.1", keys_refused=True)
    empty = "/usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short"
    hosts = changed(hosts, "gpu12", cuda_fails=empty)
    for name in ("gpu09", "gpu10"):
        hosts = lost(hosts, name, Cause.HOST_KEY_UNKNOWN, f"the host key of [{name}]:10001 is {STRANGER}")
    return lost(hosts, "gpu11", Cause.HOST_KEY_CHANGED, CHANGED)


def all_refused() -> tuple[Host, ...]:
    """Return containers whose sshd listens on another port than 22."""
    hosts = HEALTHY
    for host in HEALTHY:
        hosts = lost(hosts, host.name, Cause.REFUSED, f"connect to {address(host.number)} port 22: Connection refused")
    return hosts


CLUSTERS: dict[str, tuple[Host, ...]] = {
    "healthy-4x8-h100": measured(HEALTHY),
    "slow-node-and-rail": slow_node_and_rail(),
    "mixed-nccl": changed(HEALTHY, "gpu03", nccl="2.20.5"),
    "one-node-down": lost(HEALTHY, "gpu03", Cause.REFUSED, REFUSED),
    "port-polling": changed(HEALTHY, "gpu02", hcas=polling(hcas(), "mlx5_3")),
    "docker0-and-veth": tuple(map(on_docker, HEALTHY)),
    "veth-without-infiniband": tuple(map(with_container, cluster("gpu01", "gpu02"))),
    "efa-without-plug-in": tuple(replace(host, efa=True) for host in cluster("gpu01", "gpu02")),
    "names-that-differ": tuple(
        replace(host, nics=nics(host.number, wire))
        for host, wire in zip(HEALTHY, ("eno1", "enp3s0", "eth0", "eth0"), strict=True)
    ),
    "one-way-and-hole": one_way_and_hole(),
    "fresh-containers": fresh_containers(),
    "all-refused": all_refused(),
    "demo": demo(),
}
