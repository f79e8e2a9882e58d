"""Ranks without a launcher, and raylets, in a /proc that is laid out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers.host_load import raylets
from ncheck.agent.left_over_ranks import left_over
from ncheck.agent.proc import table

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTENS = "0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 72 1\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(HEAD + LISTENS)
    lay(tmp_path, 1, "(systemd) S 0")
    lay(tmp_path, 2, "(kthreadd) S 0")
    return tmp_path


def lay(proc: Path, pid: int, stat: str, *variables: str, opened: str = "") -> None:
    """Lay a process out: `stat` is its name, its state and its parent."""
    (proc / f"{pid}/fd").mkdir(parents=True)
    (proc / f"{pid}/stat").write_text(f"{pid} {stat}{' 1' * 48}")
    (proc / f"{pid}/environ").write_text("\0".join(["HOME=/root", *variables, ""]))
    for number, path in enumerate(opened.split()):
        (proc / f"{pid}/fd/{number}").symlink_to(path)


TORCH = "TORCHELASTIC_RUN_ID=none"


def test_adopted_ranks_that_hold_something_are_named_with_it(proc: Path) -> None:
    lay(proc, 40, "(systemd) S 1")  # of a user's own session
    lay(
        proc,
        41,
        "(python3 (a)) S 1",
        TORCH,
        opened="/dev/nvidia0 /dev/nvidiactl socket:[72] socket:[99] /dev/shm/nccl-x",
    )
    lay(proc, 42, "(python3) S 40", "OMPI_COMM_WORLD_RANK=3", opened="/dev/kfd /dev/null")
    lay(proc, 43, "(loader) S 41", TORCH)
    assert left_over(table(str(proc)), str(proc)) == [
        {"pid": 41, "name": "python3 (a)", "variable": "TORCHELASTIC_RUN_ID",
         "holds": ["/dev/nvidia0", "/dev/shm/nccl-x", "port 29500"]},  # noqa: S108
        {"pid": 42, "name": "python3", "variable": "OMPI_COMM_WORLD_RANK", "holds": ["/dev/kfd"]},
    ]  # fmt: skip


def test_a_job_with_its_launcher_and_what_holds_nothing_are_well(proc: Path) -> None:
    lay(proc, 50, "(torchrun) S 1")
    lay(proc, 51, "(python3) S 50", TORCH, opened="/dev/nvidia0")
    lay(proc, 52, "(mps-server) S 1", TORCH, opened="/dev/nvidia0")  # which that job has started
    lay(proc, 53, "(python3) S 1", "OMPI_COMM_WORLD_RANK=3", opened="/dev/null")
    lay(proc, 54, "(python3) Z 1", "PMI_RANK=0", opened="/dev/nvidia0")
    lay(proc, 55, "(python3) S 1", "RANK=0", opened="/dev/nvidia0")
    lay(proc, 56, "(watch) S 1", "PMI_RANK=0", "NCHECK_WATCHER=1", opened="/dev/nvidia0")
    assert left_over(table(str(proc)), str(proc)) == []


def test_in_a_container_the_first_process_may_be_the_launcher(tmp_path: Path) -> None:
    lay(tmp_path, 1, "(torchrun) S 0")
    lay(tmp_path, 7, "(python3) S 1", TORCH, opened="/dev/nvidia0")
    assert left_over(table(str(tmp_path)), str(tmp_path)) == []


def test_a_raylet_is_named_with_its_address_if_it_sees_this_network(proc: Path) -> None:
    options = ("--node_ip_address=10.1.0.1", "--node-ip-address=fd00::1", "--node_ip_address=172.17.0.2", "--nothing=")
    for pid, option in enumerate(options, 60):
        network = 2 if "172" in option else 1
        lay(proc, pid, "(raylet) S 1", "VLLM_HOST_IP=10.1.0.9")
        (proc / f"{pid}/cmdline").write_text(f"/opt/ray/raylet\0--x\0{option}\0--labels=node_ip_address=9\0")
        (proc / f"{pid}/ns").mkdir()
        (proc / f"{pid}/ns/net").symlink_to(f"net:[{network}]")
        (proc / f"{pid}/ns/mnt").symlink_to(f"mnt:[{pid}]")
    (proc / "61/environ").write_text("")
    (proc / "self/ns").mkdir(parents=True)
    (proc / "self/ns/net").symlink_to("net:[1]")
    (proc / "self/ns/mnt").symlink_to("mnt:[60]")
    assert raylets(table(str(proc)), str(proc)) == [
        {"pid": 60, "address": "10.1.0.1", "host_ip": "10.1.0.9", "contained": False},
        {"pid": 61, "address": "fd00::1", "host_ip": "", "contained": True},
    ]
