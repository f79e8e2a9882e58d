"""What changes between two recordings: changes that were planted, one each, beside what differs from run to run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from ncheck.facts.learning import learn
from ncheck.fleet.recording import loaded, nodes_of, trusted
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.report import Report
from ncheck.report.changes import OTHER, Change, changes
from ncheck.settings import Settings
from ncheck.steps.registry import load_checks
from ncheck.steps.this_run import Run
from ncheck.this_machine.origin import Origin

from tests.recorded.replayed import FIXTURES, replayed

GOOD = FIXTURES / "healthy-4x8-h100"
NODES = ("gpu01", "gpu02")  # two of the four are enough
SLOW = ("gpu02",)
HARMLESS = 34  # what differs from run to run on each node
Replies = dict[str, Any]  # of one node, by what was asked
Mutation = Callable[[Replies], None]


def text_of(replies: Replies, question: str, old: str, new: str, most: int = -1) -> None:
    """Replace a text in what a question was answered; it must be there."""
    (key,) = [key for key in replies if key == question or (question.endswith("*") and key.startswith(question[:-1]))]
    before = json.dumps(replies[key])
    after = before.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1], most)
    assert after != before, (question, old)
    replies[key] = json.loads(after)


def value_of(replies: Replies, answer: str) -> Any:
    return replies[f"answer:{answer}"]["value"]


def swaps(question: str, old: str, new: str, most: int = -1) -> Mutation:
    return lambda replies: text_of(replies, question, old, new, most)


def _gpu(member: str, value: object, of: str = "gpu-health", number: int = 8) -> Mutation:
    def mutate(replies: Replies) -> None:
        for one in value_of(replies, of)["gpus"][:number]:
            one[member] = value

    return mutate


def mtu(replies: Replies) -> None:
    for one in value_of(replies, "interfaces")["interfaces"]:
        if one["name"] == "eno1":
            one["mtu"] = 9000


def _port(new: Mapping[str, str]) -> Mutation:
    def mutate(replies: Replies) -> None:
        (key,) = [key for key in replies if key == "command:ibstat"]
        first, mark, rest = replies[key]["stdout"].partition("CA 'mlx5_5'")
        for old, value in new.items():
            assert old in rest
            rest = rest.replace(old, value, 1)
        replies[key]["stdout"] = first + mark + rest

    return mutate


def _variable(name: str, value: str) -> Mutation:
    def mutate(replies: Replies) -> None:
        for table in ("variables", "job_variables"):
            value_of(replies, "environment")[table][name] = value

    return mutate


def _conf(replies: Replies) -> None:
    value_of(replies, "environment")["files"]["/etc/nccl.conf"] = ["NCCL_IB_DISABLE=1"]


def _lost_gpu(replies: Replies) -> None:
    del value_of(replies, "gpus")["gpus"][3]


def _counted(replies: Replies) -> None:
    value_of(replies, "error-counters")["ports"]["mlx5_5:1"]["errors"]["symbol_error"] = 90_000


def _left_over(replies: Replies) -> None:
    other = {"pid": 4711, "name": "python", "variable": "RANK", "holds": ["/dev/nvidia0"]}
    value_of(replies, "host-load")["left_over"] = [other]


def _narrow(device: str) -> Mutation:
    def mutate(replies: Replies) -> None:
        (tree,) = [one["value"] for key, one in replies.items() if key.startswith("tree:") and "link_width" in key]
        key = next(key for key in tree if device in key and key.endswith("/current_link_width") and ".." not in key)
        tree[key] = "8\n"

    return mutate


def _code(commit: str) -> Mutation:
    def mutate(replies: Replies) -> None:
        tree = {"digest": commit * 10, "cut": "", "listed": {}}
        git = {"commit": commit * 10, "branch": "main", "changed": {}, "error": ""}
        replies["answer:code"] = {
            "status": "ok", "value": {"folder": "/home/train/job", "exists": True, "git": git, "tree": tree}
        }  # fmt: skip

    return mutate


KERNEL = swaps("answer:machine", "5.15.0-105-generic", "5.15.0-119-generic")

# What was planted, where, what is measured to be slower ("between" nodes, "inside" one, or nothing), on which nodes,
# and how the change begins that must come first.
PLANTED: tuple[tuple[str, Mutation, tuple[str, ...], str, tuple[str, ...], str], ...] = (
    ("NIC's MTU", mtu, SLOW, "between", SLOW, "MTU of interface eno1: 1500 -> 9000"),
    ("kernel", KERNEL, NODES, "between", (), "kernel: 5.15.0-105-generic -> 5.15.0-119-generic"),
    ("GPU driver", swaps("answer:gpus", "550.127.08", "590"), NODES, "between", (), "GPU driver: 550.127.08 -> 590"),
    ("NCCL", swaps("answer:nccl", "2.21.5", "2.20.5"), SLOW, "between", SLOW, "NCCL: 2.21.5 -> 2.20.5"),
    ("HCA firmware", swaps("command:ibstat", "28.39.1002", "28.36.1010"), NODES, "between", (), "firmware of HCA "),
    ("port's rate", _port({"Rate: 400": "Rate: 200"}), SLOW, "between", SLOW, "HCA port rate mlx5_5:1: 400 -> 200"),
    ("NCCL_ALGO", _variable("NCCL_ALGO", "Tree"), NODES, "between", (), "variable NCCL_ALGO: none -> Tree"),
    ("nccl.conf", _conf, SLOW, "between", SLOW, "file /etc/nccl.conf: none -> NCCL_IB_DISABLE=1"),
    ("power limit", _gpu("power_limit", 500000), SLOW, "inside", SLOW, "GPU power limit "),
    ("clocks", _gpu("application_clocks", [1200, 2619], number=1), SLOW, "inside", SLOW, "GPU application clocks "),
    ("PCIe of a GPU", _narrow("nvidia/0000:18:00.0"), SLOW, "inside", SLOW, "PCIe of GPU width 0000:18:00.0: 16 -> 8"),
    ("PCIe of an HCA", _narrow("infiniband/mlx5_5"), SLOW, "between", SLOW, "PCIe of HCA width mlx5_5: 16 -> 8"),
    ("governor", swaps("answer:host-settings", "powersave", "performance"), NODES, "inside", (), "system: frequ"),
    ("IOMMU", swaps("tree:/sys/bus/pci/drivers/nvidia/*:*/iommu_group/*", "identity", "DMA-FQ"), SLOW, "inside", SLOW,
     "IOMMU types "),
    ("huge pages", swaps("answer:host-settings", "always [madvise] never", "[always] madvise never"), NODES, "", (),
     "system: kernel transparent_hugepages: madvise -> always"),
    ("torch", swaps("answer:interpreter", "2.5.1+cu124", "2.6.0+cu126"), NODES, "", (), "package torch: 2.5.1+cu124"),
    ("a GPU is lost", _lost_gpu, SLOW, "inside", SLOW, "GPU 0000:5a:00.0: there -> none"),
    ("symbol errors", _counted, SLOW, "between", SLOW, "counter errors mlx5_5:1 symbol_error: none -> 90000"),
    ("another job", _left_over, SLOW, "inside", SLOW, "process of another job "),
    ("code", _code("b4d7"), NODES, "", (), "code commit: a1b2"),
)  # fmt: skip


def harmless(replies: Replies, random: Random) -> int:
    """Change what differs from run to run, and what differs and explains nothing; return how many that are."""
    load, health, gpus = (value_of(replies, name) for name in ("host-load", "gpu-health", "gpus"))
    done = 0

    def put(table: Any, key: str, value: object) -> None:
        nonlocal done
        done += 1
        table[key] = value

    put(load["memory"], "MemAvailable", 2 * 10**12 + random.randrange(10**11))
    put(load["memory"], "SwapFree", 8 * 10**9 + random.randrange(10**8))
    put(
        load,
        "load",
        f"0.{random.randrange(10, 99)} 0.{random.randrange(10, 99)} 0.20 1/{random.randrange(2000, 2400)} 5",
    )
    put(load, "files", f"{random.randrange(8000, 9000)}\t0\t9223372036854775807")
    for one in health["gpus"]:
        one["temperature"] = random.randrange(25, 45)
        one["fields"]["memory_temperature"] = random.randrange(35, 60)
        one["margin"] = random.randrange(40, 60)
        one["throttled"] = random.choice((0, 1))
    done += 4
    for one in gpus["gpus"]:
        one["memory_used"] = random.randrange(4, 9) * 2**20
    done += 1
    for answer in ("error-counters", "later-error-counters"):
        counters = value_of(replies, answer)
        put(counters, "at", 1000.0 + random.randrange(10**6))
        for one in counters["ports"].values():
            one["sent"] = one["received"] = 7 * 10**12 + random.randrange(10**12)
        done += 2
    folders = value_of(replies, "folders")
    for one in (folders["home"], folders["shm"], folders["root"], folders["temporary"][0]):
        put(one, "free", random.randrange(10**11, 10**12))
    put(folders["root"], "files_free", random.randrange(10**6, 10**7))
    put(value_of(replies, "limits")["shm"], "free", random.randrange(10**11, 10**12))
    put(value_of(replies, "storage")["folders"][0]["state"], "free", random.randrange(10**13))
    put(value_of(replies, "storage")["folders"][0]["state"], "changed", random.randrange(10**9))
    put(value_of(replies, "clock"), "offset", random.random() / 1000)
    put(value_of(replies, "clock"), "uncertainty", random.random() / 1000)
    put(value_of(replies, "names"), "seconds", random.random())
    put(value_of(replies, "slurm-reservations"), "now", 1767225600.0 + random.randrange(10**6))
    ports = value_of(replies, "listen")["ports"]
    put(ports, next(iter(ports)), random.randrange(32768, 60000))
    put(value_of(replies, "host-settings"), "clock_error", random.randrange(10**5, 10**6))
    (arp,) = [key for key in replies if key == "file:/proc/net/arp"]
    put(
        replies[arp],
        "value",
        replies[arp]["value"] + f"10.20.0.{random.randrange(100, 250)} 0x1 0x2 02:5e:10:00:09:02 * eno1\n",
    )
    path = f"/home/train/bin{random.randrange(9)}:/usr/bin:/bin"
    for table in ("variables", "job_variables"):
        put(value_of(replies, "environment")[table], "PATH", path)
    veth = {
        **value_of(replies, "interfaces")["interfaces"][0],
        "loopback": False,
        "type": 1,
        "addresses": [],
        "mtu": 1500,
        "name": f"veth{random.randrange(10**6):06x}",
        "index": random.randrange(100, 999),
        "peer_index": 7,
    }
    value_of(replies, "interfaces")["interfaces"].append(veth)
    (tree,) = [one["value"] for key, one in replies.items() if key.startswith("tree:/proc/sys/net/ipv4/conf")]
    put(tree, f"/proc/sys/net/ipv4/conf/{veth['name']}/rp_filter", "2\n")
    return done + 1


@cache
def files() -> tuple[tuple[str, str], ...]:
    return tuple((path.name, path.read_text(encoding="ascii")) for path in sorted(GOOD.iterdir()) if path.stem in NODES)


def known_of(mutations: Mapping[str, Iterable[Mutation]]) -> Mapping[str, Facts]:
    """Return the facts of the cluster, each node with the mutations of its name."""
    listed = []
    for name, text in files():
        recording = json.loads(text)
        evidence = recording["evidence"]
        del evidence["notes"]["answer:code"]
        for mutate in (_code("a1b2"), *mutations.get(evidence["node"], ())):
            mutate(evidence["replies"])
        recording["of"] = len(NODES)
        listed.append((name, json.dumps(recording).encode()))
    return learned(trusted("planted", loaded(listed))).known


@cache
def run() -> Run:
    return Run.of(Settings(), load_checks(), Origin("", "", "", ""))


def learned(evidence: Any) -> Cluster:
    return learn(run().listed(nodes_of(evidence)), evidence, run().wanted)


def measured(slower: str, nodes: tuple[str, ...]) -> Report:
    """Return the report of the healthy cluster, with what is slower than in it."""
    report = replayed(GOOD.name)
    stages = {"between": ("all", "pair"), "inside": ("inside",), "": ()}[slower]
    measurements = tuple(
        replace(one, measured=(one.measured or 0) * 0.8) if one.stage in stages else one for one in report.measurements
    )
    pairs = tuple(
        replace(
            one, busbw=(one.busbw or 0) * (0.8 if slower == "between" and set(nodes or NODES) & set(one.nodes) else 1)
        )
        for one in report.probe.pairs
    )
    own = tuple(one for one in report.nodes if one.name in NODES)
    return replace(report, nodes=own, measurements=measurements, probe=replace(report.probe, pairs=pairs))


def ranked(planted: Mapping[str, Iterable[Mutation]], slower: str, nodes: tuple[str, ...], seed: int) -> list[Change]:
    """Return the changes of values between the healthy cluster and one with these mutations, the first one first."""
    counted = []

    def noise(node: str) -> Mutation:
        return lambda replies: counted.append(harmless(replies, Random(f"{seed} {node}")))  # noqa: S311

    new = known_of({node: (*planted.get(node, ()), noise(node)) for node in NODES})
    assert set(counted) == {HARMLESS}, counted
    found = changes(measured("", ()), measured(slower, nodes), known_of({}), new)
    return [one for one in found if one.how == OTHER]
