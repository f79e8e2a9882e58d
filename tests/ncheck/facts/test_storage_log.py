"""What the kernel logs of disks and servers: which disk, and whether a server is back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.agent.commands import thinned
from ncheck.facts.kernel_log import DMESG, HOLDING, JOURNAL, Trouble
from ncheck.facts.storage_log import StorageLogFacts, read_lines, storage_log
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

BOOT = "Mar 02 08:00:01 gpu07 kernel: Linux version 6.8.0-45-generic (builder@lcy02)"

ERRORS = {
    "[1.0] blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0": "sda",
    "[1.0] I/O error, dev nvme0c0n1, sector 218630656 op 0x1:(WRITE) flags 0x2008800": "nvme0c0n1",
    "[1.0] Buffer I/O error on dev sda1, logical block 0, async page read": "sda1",
    "[1.0] Buffer I/O error on device dm-3, logical block 77": "dm-3",
    "[1.0] critical medium error, dev sdb, sector 123 op 0x0:(READ) flags 0x80700": "sdb",
    "[1.0] nvme nvme2: I/O 641 QID 8 timeout, aborting": "nvme2",
    "[1.0] nvme nvme2: I/O tag 641 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, reset controller": "nvme2",
    "[1.0] nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10": "nvme1",
    "[1.0] nvme nvme0: Removing after probe failure status: -19": "nvme0",
    "[1.0] nvme nvme3: Disabling device after reset failure: -19": "nvme3",
    "[1.0] nvme nvme0: frozen state error detected, reset controller": "nvme0",
    "[1.0] md/raid:md1: Disk failure on nvme2n1p4, disabling device.": "nvme2n1p4",
    "[1.0] EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2: comm ls: reading lblock 0": "nvme0n1p2",
    "[1.0] EXT4-fs (nvme0n1p2): Remounting filesystem read-only": "nvme0n1p2",
    "[1.0] XFS (dm-0): Metadata corruption detected at xfs_agi_verify+0x12f/0x1a0 [xfs], xfs_agi block 0x2": "dm-0",
    "[1.0] XFS (sda1): Filesystem has been shut down due to log error (0x2).": "sda1",
    "[1.0] BTRFS error (device sda1: state EA): bdev /dev/sda1 errs: wr 3, rd 0, flush 0": "sda1",
    "[1.0] BTRFS info (device sda1: state E): forced readonly": "sda1",
}  # fmt: skip

HEALTHY = (
    "[1.0] blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "[1.0] I/O error, dev sr0, sector 3840 op 0x0:(READ) flags 0x80700",
    "[1.0] Buffer I/O error on dev loop7, logical block 9",
    "[1.0] I/O error, dev sda, sector 4096 op 0x3:(DISCARD) flags 0x800",
    "[1.0] critical target error, dev sda, sector 4096 op 0x9:(WRITE_ZEROES) flags 0x800",
    "[1.0] nvme nvme0: 8/0/0 default/read/poll queues",
    "[1.0] nvme nvme0: I/O 12 QID 3 timeout, completion polled",
    "[1.0] XFS (sda1): Mounting V5 Filesystem 0f6c",
    "[1.0] EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
    "[1.0] BTRFS info (device sda1): using crc32c checksum algorithm",
    "[1.0] ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    "[1.0] FAT-fs (sdc1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
)  # fmt: skip


@pytest.mark.parametrize("line", ERRORS)
def test_an_error_is_one_of_its_disk_and_is_sent_by_the_agent(line: str) -> None:
    assert read_lines([line]).disks == (Trouble(ERRORS[line], 1, line, line),)
    log = "\n".join(["[0.1] other"] * 20 + [line])
    assert line in thinned(log, HOLDING)


def test_healthy_machines_have_lines_like_these() -> None:
    assert read_lines(HEALTHY) == StorageLogFacts()


def test_errors_of_a_disk_are_counted_with_the_first_and_the_last() -> None:
    lines = [f"[{second}.0] I/O error, dev sda, sector {second}" for second in range(5)]
    assert read_lines(lines).disks == (Trouble("sda", 5, lines[0], lines[-1]),)


GONE, OK = "[5.0] nfs: server fs01 not responding, still trying", "[9.0] nfs: server fs01 OK"
GAVE_UP = "[5.0] nfs: server fs02 not responding, timed out"
EVICTED = ("[7.0] LustreError: 167-0: scratch-OST0001-osc-ffff9f: This client was evicted by scratch-OST0001; in "
           "progress operations using this service will fail.")  # fmt: skip


def test_a_server_is_silent_until_the_kernel_says_ok() -> None:
    assert read_lines([GONE]).silent == (Trouble("fs01", 1, GONE, GONE),)
    assert read_lines([GONE, OK, GONE]) == StorageLogFacts(
        silent=(Trouble("fs01", 1, GONE, GONE),), interrupted=(Trouble("fs01", 1, GONE, GONE),)
    )
    assert read_lines([OK]) == StorageLogFacts()


def test_what_came_back_or_gave_up_was_interrupted() -> None:
    assert read_lines([GONE, GONE, OK]).interrupted == (Trouble("fs01", 2, GONE, GONE),)
    assert read_lines([GAVE_UP, EVICTED]) == StorageLogFacts(
        interrupted=(Trouble("fs02", 1, GAVE_UP, GAVE_UP), Trouble("scratch-OST0001", 1, EVICTED, EVICTED))
    )


def test_the_log_is_read_from_the_first_command_that_shows_it_and_needs_root(answered: Answered) -> None:
    journal = Reply(Status.OK, exit_status=0, stdout=f"{BOOT}\nMar 02 08:00:01 gpu07 kernel: {GONE[6:]}\n")
    facts = storage_log(answered({JOURNAL: journal}))
    assert isinstance(facts, StorageLogFacts)
    assert [server.of for server in facts.silent] == ["fs01"]
    denied = Reply(Status.OK, exit_status=1, stderr="dmesg: read kernel buffer failed: Operation not permitted")
    fact = storage_log(answered({JOURNAL: Reply(Status.MISSING), DMESG: denied}))
    assert isinstance(fact, Unread)
    assert fact.needs_root
