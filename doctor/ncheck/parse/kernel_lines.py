"""Messages of the Linux kernel about hardware that fails, as regular expressions. Preflight and triage share them."""

from __future__ import annotations

# pcieport 0000:3a:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)
# Kernels before 6.9 say "Uncorrected".
PCIE_UNCORRECTED = r"PCIe Bus Error: severity=Uncorrect(?:ed|able)"

# mlx5_core 0000:3b:00.0: poll_health:739:(pid 0): device's health compromised - reached miss count
# mlx5_core 0000:3b:00.0: print_health_info:424:(pid 0): Health issue observed, High temperature, severity(2) CRITICAL:
# Severities are those of the kernel's log: 3 is an error, 4 a warning.
HCA_SICK = (
    r"(?:device's health compromised|Fatal error \d+ detected|Health issue observed, .{1,80}severity\([0-3]\)|"
    r"health recovery (?:failed|flow aborted)|High temperature on sensors)"
)

# mlx5_core 0000:3b:00.0: wait_func:1137:(pid 77): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource
HCA_TIMEOUT = r"timeout\. Will cause a leak of a command"

# watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4021]
SOFT_LOCKUP = r"BUG: soft lockup"

# NMI watchdog: Watchdog detected hard LOCKUP on cpu 3
HARD_LOCKUP = r"hard LOCKUP"

# rcu: INFO: rcu_sched self-detected stall on CPU | rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
# rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 12-.... } 27 jiffies s: 1337 root: 0x1/.
RCU_STALL = r"rcu.{0,60}(?:self-detected stall on CPU|detected (?:expedited )?stalls on CPUs)"

# EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x7e025e offset:0x400 ...
EDAC_UNCORRECTED = r"EDAC MC\d{1,4}: \d{1,9} UE "
