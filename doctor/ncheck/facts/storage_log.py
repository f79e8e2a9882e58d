"""What the kernel has logged of disks and file systems since boot: errors, resets, servers that do not respond."""

from __future__ import annotations

from collections.abc import Iterable

from ncheck.expression import expression
from ncheck.facts.definition import Fact
from ncheck.facts.kernel_log import DMESG, JOURNAL, Trouble, kernel_log, troubles
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class StorageLogFacts:
    """`disks`: errors by device. `silent`: NFS servers that did not respond, without an OK since.

    `interrupted`: servers that were away for a time and are back, or whose client got an error for it.
    """

    disks: tuple[Trouble, ...] = ()
    silent: tuple[Trouble, ...] = ()
    interrupted: tuple[Trouble, ...] = ()


# I/O error, dev nvme0n1, sector 218630656 op 0x1:(WRITE) flags 0x0 | Buffer I/O error on dev sda1, logical block 0
# blk_update_request: critical medium error, dev sdb, sector 2048
# nvme nvme0: I/O tag 641 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, aborting req_op:WRITE(1) size:4096
# nvme nvme0: controller is down; will reset: CSTS=0xffffffff | nvme nvme0: Device not ready; aborting reset
# nvme nvme0: Removing after probe failure status: -19 | nvme nvme0: Disabling device after reset failure: -19
# nvme nvme0: frozen state error detected, reset controller | md/raid1:md0: Disk failure on sdb1, disabling
# EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0
# EXT4-fs (sda1): Remounting filesystem read-only | XFS (dm-0): Metadata corruption detected at xfs_agi_verify
# XFS (sda1): Filesystem has been shut down due to log error | BTRFS error (device sda1: state EA): bdev /dev/sda1 errs
_DISK = (
    expression(r"(?:I/O|medium) error,? (?:on )?dev(?:ice)? (?P<of>(?!-)[\w.-]{1,64})"),
    expression(
        r"nvme (?P<of>nvme\d{1,4}): (?:I/O .{1,120} timeout, (?!completion)|controller is down|Device not ready|"
        r"frozen state error|(?:Removing|Disabling device) after (?:probe|reset) failure)"
    ),
    expression(r"md/raid\S{0,40}: Disk failure on (?P<of>(?!-)[\w.-]{1,64})"),
    expression(r"(?:EXT4-fs|BTRFS) error \(device (?P<of>(?!-)[\w.-]{1,64})"),
    expression(
        r"(?:EXT4-fs|XFS|BTRFS(?: \w{1,8})?):? \((?:device )?(?P<of>(?!-)[\w.-]{1,64})[^)]{0,40}\):"
        r"(?=.{0,200}(?:Remounting filesystem|orruption|shut down|forced readonly))"
    ),
)

# Floppy drives of virtual machines, optical drives and images in loop devices report errors on healthy machines.
_NO_DISK = expression(r"(?:fd|sr|loop|z?ram)\d")

# A disk that does not have a command says so with an error: op 0x3:(DISCARD)
_NO_SUCH_COMMAND = ("(DISCARD)", "(WRITE_ZEROES)")

# nfs: server fs01 not responding, still trying | nfs: server fs01 not responding, timed out | nfs: server fs01 OK
_NFS = expression(r"nfs: server (?P<of>(?!-)\S{1,255}) (?P<said>OK|not responding, (?:still trying|timed out))")

# LustreError: 167-0: scratch-OST0001-osc-ffff8: This client was evicted by scratch-OST0001; in progress operations ...
_EVICTED = expression(r"was evicted by (?P<of>(?!-)[\w.-]{1,128})")


def storage_log(evidence: Evidence) -> Read[StorageLogFacts]:
    """Read the first log that shows kernel messages."""
    log = kernel_log(evidence)
    return log if isinstance(log, (Unread, Absent)) else read_lines(log.lines)


def read_lines(lines: Iterable[str]) -> StorageLogFacts:
    """Return what the lines say, by disk and by server. A server is silent until a later line takes that back."""
    disks: dict[str, list[str]] = {}
    waiting: dict[str, list[str]] = {}
    over: dict[str, list[str]] = {}
    for line in lines:
        if found := _NFS.search(line):
            server = found["of"]
            if found["said"].endswith("still trying"):
                waiting.setdefault(server, []).append(line)
            elif found["said"] == "OK":
                over.setdefault(server, []).extend(waiting.pop(server, []))
            else:
                over.setdefault(server, []).append(line)
        elif found := _EVICTED.search(line):
            over.setdefault(found["of"], []).append(line)
        elif device := _device(line):
            disks.setdefault(device, []).append(line)
    return StorageLogFacts(*map(troubles, (disks, waiting, over)))


def _device(line: str) -> str:
    """Return the disk or partition that a line reports an error of; "" if none."""
    if any(word in line for word in _NO_SUCH_COMMAND):
        return ""
    device = next((hit["of"] for pattern in _DISK if (hit := pattern.search(line))), "")
    return "" if _NO_DISK.match(device) else device


FACTS = (Fact(StorageLogFacts, (JOURNAL, DMESG), storage_log),)
