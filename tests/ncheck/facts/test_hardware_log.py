"""What the kernel logs of hardware that fails: what it is of, and the lines that healthy machines have, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ncheck.agent.commands import thinned
from ncheck.facts.hardware_log import HardwareLogFacts, hardware_log, read_lines
from ncheck.facts.kernel_log import DMESG, HOLDING, JOURNAL, Trouble
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

PREFIXES = ("[22715.834759] ", "[Sat Apr 15 19:49:46 2023] ", "Apr 15 19:49:46 gpu07 kernel: ")

# Of two lines, the second is the one that counts.
SICK = {
    "mce: [Hardware Error]: CPU 24: Machine Check Exception: 5 Bank 7: bd80000000100134":
        ("uncorrected", "a processor"),
    "EDAC skx MC3: CPU 0: Machine Check Event: 0x0 Bank 25: 0xac00000200a00090": ("uncorrected", "memory"),
    "[Hardware Error]: CPU:2 (19:1:1) MC17_STATUS[Over|UE|MiscV|AddrV|-|TCC|SyndV|UECC|-|-]: 0xfc2040000400011b":
        ("uncorrected", "a processor"),
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x7e025e)":
        ("uncorrected", "memory"),
    "Memory failure: 0x7e025e: recovery action for dirty LRU page: Recovered": ("uncorrected", "memory"),
    "{2}[Hardware Error]:  Error 0, type: recoverable\n{2}[Hardware Error]:   section_type: memory error":
        ("uncorrected", "memory"),
    "{3}[Hardware Error]:  Error 0, type: fatal\n{3}[Hardware Error]:   section_type: ARM processor error":
        ("uncorrected", "a processor"),
    "[Hardware Error]:  Error 0, type: fatal\n[Hardware Error]:   section_type: PCIe error":
        ("earlier", "the hardware"),
    "mce: CMCI storm detected: switching to poll mode": ("storms", "corrected errors"),
    "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4021]": ("lockups", "soft lockup"),
    "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3": ("lockups", "hard lockup"),
    "rcu: INFO: rcu_sched self-detected stall on CPU": ("lockups", "RCU stall"),
    "rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 12-.... } 27 jiffies":
        ("lockups", "RCU stall"),
    "mlx5_core 0000:3b:00.0: poll_health:739:(pid 0): device's health compromised - reached miss count":
        ("adapters", "0000:3b:00.0"),
    "mlx5_core 0000:3b:00.0 ens1np0: print_health_info:424:(pid 0): Health issue observed, firmware internal error, "
    "severity(3) ERROR:": ("adapters", "0000:3b:00.0"),
    "mlx5_core 0000:3b:00.0: wait_func:1137:(pid 77): ACCESS_REG(0x805) timeout. Will cause a leak of a command "
    "resource": ("adapters", "0000:3b:00.0"),
    "mlx5_core 0000:3b:00.0: cb_timeout_handler:880:(pid 7): cmd[3]: MODIFY_RQ(0x909) Async, timeout. Will cause a "
    "leak of a command resource": ("adapters", "0000:3b:00.0"),
    "mlx5_core 0000:41:00.1: temp_warn:170:(pid 0): High temperature on sensors with bit set 0 1":
        ("adapters", "0000:41:00.1"),
    "nvme 0000:34:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)":
        ("pcie", "0000:34:00.0"),
    "pcieport 0000:00:01.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)":
        ("pcie", "0000:00:01.0"),
}  # fmt: skip

HEALTHY = """\
mce: [Hardware Error]: Machine check events logged
mce: CPU0: Machine check events logged
mce: [Hardware Error]: CPU 5: Machine Check: 0 Bank 0: 90000040000f0005
EDAC sbridge MC3: HANDLING MCE MEMORY ERROR
EDAC sbridge MC3: CPU 0: Machine Check Event: 0 Bank 7: 8c00004000010090
EDAC MC3: 1 CE memory read error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x12345 offset:0x0)
EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:64:0a.0 (INTERRUPT)
[Hardware Error]: Corrected error, no action required.
[Hardware Error]: CPU:0 (1a:44:0) MC22_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000400011b
[Hardware Error]: Deferred error, no action required.
{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0
{1}[Hardware Error]: It has been corrected by h/w and requires no further action
{1}[Hardware Error]: event severity: corrected
{1}[Hardware Error]:  Error 0, type: corrected
{1}[Hardware Error]:   section_type: memory error
{2}[Hardware Error]:  Error 0, type: recoverable
{2}[Hardware Error]:   section_type: PCIe error
RAS: Soft-offlining pfn: 0x175321b
mce: CPU12: Core temperature is above threshold, cpu clock is throttled (total events = 1)
CPU12: Package temperature/speed normal
mlx5_core 0000:3b:00.0: firmware version: 28.39.1002
mlx5_core 0000:3b:00.0: 252.048 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x8 link)
mlx5_core 0000:3b:00.0: mlx5_pcie_event:299:(pid 7): PCIe slot advertised sufficient power (27W).
mlx5_core 0000:3b:00.0: Port module event: module 0, Cable plugged
mlx5_core 0000:3b:00.0: print_health_info:424:(pid 0): Health issue observed, High temperature, severity(6) INFO:
igb 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)
pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)
INFO: task nvidia-smi:4021 blocked for more than 120 seconds.
rcu: Hierarchical RCU implementation.
NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.
""".splitlines()


def test_each_line_of_a_sick_machine_is_sent_by_the_agent_and_names_what_it_is_of() -> None:
    for text, (field, of) in SICK.items():
        for prefix in PREFIXES:
            lines = [prefix + line for line in text.split("\n")]
            log = "\n".join([f"{prefix}other"] * 20 + lines)
            sent = thinned(log, HOLDING).splitlines()
            assert sent[10:] == lines
            expected = HardwareLogFacts(**{field: (Trouble(of, 1, lines[-1], lines[-1]),)})
            assert read_lines(sent) == expected, lines


def test_healthy_machines_have_lines_like_these() -> None:
    for prefix in PREFIXES:
        assert read_lines([prefix + line for line in HEALTHY]) == HardwareLogFacts()


def test_lines_are_counted_with_the_first_and_the_last() -> None:
    lines = [f"[{second}.0] watchdog: BUG: soft lockup - CPU#3 stuck for {second}s!" for second in (22, 48)]
    assert read_lines(lines).lockups == (Trouble("soft lockup", 2, *lines),)


def test_a_log_that_only_root_can_read_is_no_log_without_trouble(answered: Answered) -> None:
    denied = Reply(Status.OK, exit_status=1, stderr="dmesg: read kernel buffer failed: Operation not permitted")
    fact = hardware_log(answered({JOURNAL: Reply(Status.MISSING), DMESG: denied}))
    assert isinstance(fact, Unread)
    assert fact.needs_root
