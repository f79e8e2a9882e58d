from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.gpu_log import KernelLogFacts, SxidEvent, XidEvent, gpu_log
from ncheck.facts.kernel_log import DMESG, JOURNAL
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

XID = "Mar 02 09:14:55 gpu07 kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', GPU has fallen off the bus"
BOOT = "Mar 02 08:00:01 gpu07 kernel: Linux version 6.8.0-45-generic (builder@lcy02)"
DENIED = Reply(Status.OK, exit_status=1, stderr="dmesg: read kernel buffer failed: Operation not permitted")
HINT = "Hint: You are currently not seeing messages from other users and the system."


def said(*lines: str, stderr: str = "") -> Reply:
    return Reply(Status.OK, exit_status=0, stdout="\n".join(lines) + "\n", stderr=stderr)


def test_the_journals_xids_are_read_with_address_and_number(answered: Answered) -> None:
    assert gpu_log(answered({JOURNAL: said(BOOT, XID)})) == KernelLogFacts(
        (XidEvent("0000:5d:00.0", 79, XID),), "journalctl -k", "Mar 02 08:00:01"
    )


def test_an_xid_of_a_part_of_a_gpu_in_mig_mode_is_read(answered: Answered) -> None:
    line = "[  913.2] NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 94, pid=7194, Contained: CE User Channel (0x9)."
    assert gpu_log(answered({DMESG: said(line)})) == KernelLogFacts(
        (XidEvent("0000:01:00.0", 94, line),), "dmesg", "[  913.2]"
    )


@pytest.mark.parametrize("journal", [
    Reply(Status.MISSING),
    said("-- No entries --", stderr=HINT),
    said("-- Journal begins at Mon 2026-03-02 08:00:00 UTC. --", "-- No entries --"),
    Reply(Status.OK, exit_status=1, stderr="No journal files were opened due to insufficient permissions."),
])  # fmt: skip
def test_dmesg_tells_where_the_journal_shows_nothing(answered: Answered, journal: Reply) -> None:
    lines = ("[    0.000000] Linux version 6.8.0", "[  913.200000] NVRM: Xid (0000:03:00): 31, Ch 00000010")
    assert gpu_log(answered({JOURNAL: journal, DMESG: said(*lines)})) == KernelLogFacts(
        (XidEvent("0000:03:00.0", 31, lines[1]),), "dmesg", "[    0.000000]"
    )


def test_a_log_that_only_root_may_read_is_not_a_clean_one(answered: Answered) -> None:
    fact = gpu_log(answered({JOURNAL: said("-- No entries --", stderr=HINT), DMESG: DENIED}))
    assert isinstance(fact, Unread)
    assert fact.needs_root
    assert "Operation not permitted" in fact.reason


def test_a_refusal_of_sudo_is_no_matter_of_an_ordinary_user(answered: Answered) -> None:
    refused = Reply(Status.DENIED, reason="sudo: a password is required")
    fact = gpu_log(answered({JOURNAL: refused, DMESG: refused}))
    assert isinstance(fact, Unread)
    assert (fact.needs_root, fact.reason) == (
        False, "sudo refused, although --sudo was given: a password is required"
    )  # fmt: skip


def test_an_empty_log_is_not_a_clean_one(answered: Answered) -> None:
    assert isinstance(gpu_log(answered({JOURNAL: said(""), DMESG: said("")})), Unread)


def test_the_end_of_a_long_log_is_read_with_the_time_of_its_first_line(answered: Answered) -> None:
    cut = Reply(Status.OK, exit_status=0, stdout="f of a line\n" + XID + "\n", truncated=True)
    assert gpu_log(answered({JOURNAL: cut})) == KernelLogFacts(
        (XidEvent("0000:5d:00.0", 79, XID),), "journalctl -k", "Mar 02 09:14:55"
    )


def test_a_log_whose_end_was_cut_off_is_not_a_clean_one_and_no_matter_of_root(answered: Answered) -> None:
    cut = Reply(Status.OK, exit_status=None, stdout=BOOT + "\n", truncated=True)
    fact = gpu_log(answered({JOURNAL: cut, DMESG: cut}))
    assert isinstance(fact, Unread)
    assert (fact.needs_root, "truncated" in fact.reason) == (False, True)


def test_words_that_bear_no_time_are_no_gpu_log(answered: Answered) -> None:
    fact = gpu_log(answered({JOURNAL: said("this journalctl is a wrapper; ask your administrator"), DMESG: DENIED}))
    assert isinstance(fact, Unread)
    assert fact.needs_root


def test_a_log_that_could_not_be_asked_for_is_unknown(answered: Answered) -> None:
    broken = Reply(Status.FAILED, reason="cannot be started: Cannot allocate memory")
    fact = gpu_log(answered({JOURNAL: broken, DMESG: broken}))
    assert isinstance(fact, Unread)
    assert (fact.needs_root, "allocate" in fact.reason) == (False, True)


def test_a_log_that_hangs_is_unknown_and_not_a_matter_of_root(answered: Answered) -> None:
    fact = gpu_log(answered({JOURNAL: Reply(Status.TIMEOUT, seconds=10), DMESG: DENIED}))
    assert isinstance(fact, Unread)
    assert (fact.needs_root, fact.hung) == (False, " ".join(JOURNAL.argv))


LOADING = "[   10.000000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build"
SXID = "[  131.740743] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
FAILED = "[   12.500000] NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x55:1860)"


def test_errors_of_switches_and_gpus_that_do_not_start_are_read(answered: Answered) -> None:
    harmless = SXID.replace("20034, Fatal", "12028, Non-fatal")
    assert gpu_log(answered({DMESG: said(LOADING, FAILED, SXID, harmless)})) == KernelLogFacts(
        (), "dmesg", "[   10.000000]",
        sxids=(
            SxidEvent("0000:c1:00.0", 20034, fatal=True, line=SXID),
            SxidEvent("0000:c1:00.0", 12028, fatal=False, line=harmless),
        ),
        failed=(XidEvent("0000:5d:00.0", 0, FAILED),),
    )  # fmt: skip


def test_what_was_before_the_driver_was_loaded_last_is_marked(answered: Answered) -> None:
    old, new = "[    9.0] NVRM: Xid (PCI:0000:03:00): 79, pid=1", "[  913.2] NVRM: Xid (PCI:0000:03:00): 31, pid=2"
    facts = gpu_log(answered({DMESG: said(LOADING, old, SXID, LOADING, new)}))
    assert isinstance(facts, KernelLogFacts)
    assert [(event.xid, event.earlier) for event in facts.xids] == [(79, True), (31, False)]
    assert [event.earlier for event in facts.sxids] == [True]


def test_numbers_without_end_are_no_xid(answered: Answered) -> None:
    facts = gpu_log(answered({DMESG: said(LOADING, f"[ 1.0] NVRM: Xid (PCI:0000:03:00): {'9' * 5000}, pid=1")}))
    assert isinstance(facts, KernelLogFacts)
    assert [event.xid for event in facts.xids] == [999999]


def test_what_was_before_the_driver_said_that_the_gpu_needs_nothing_any_more_is_marked(answered: Answered) -> None:
    changed = "NVRM: Xid (PCI:0000:03:00): 154, GPU recovery action changed from"
    lines = [
        "[ 1.0] NVRM: Xid (PCI:0000:03:00): 119, Timeout",
        "[ 1.1] NVRM: Xid (PCI:0000:04:00): 119, Timeout",
        f"[ 1.2] {changed} 0x0 (None) to 0x1 (GPU Reset Required)",
        f"[ 9.0] {changed} 0x1 (GPU Reset Required) to 0x0 (None)",
        "[ 9.9] NVRM: Xid (PCI:0000:03:00): 13, Graphics Exception",
    ]
    facts = gpu_log(answered({DMESG: said(*lines)}))
    assert isinstance(facts, KernelLogFacts)
    assert [(event.xid, event.earlier) for event in facts.xids] == [
        (119, True), (119, False), (154, True), (154, True), (13, False),
    ]  # fmt: skip
