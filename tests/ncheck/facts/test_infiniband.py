from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ncheck.facts.infiniband import IBSTAT, SYSFS, Gid, HcaPort, InfinibandFacts, infiniband
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

PRINTED = """CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.43.2026
\tHardware version: 0
\tNode GUID: 0x946dae0300a1b2c4
\tSystem image GUID: 0x946dae0300a1b2c4
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 19
\t\tLMC: 0
\t\tSM lid: 2
\t\tCapability mask: 0xa751e848
\t\tPort GUID: 0x946dae0300a1b2c5
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tCA type: MT4125
\tNumber of ports: 1
\tFirmware version: 22.43.2026
\tHardware version: 0
\tNode GUID: 0xb83fd20300c0ffee
\tSystem image GUID: 0xb83fd20300c0ffee
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 2.5
\t\tBase lid: 0
\t\tLMC: 0
\t\tSM lid: 0
\t\tCapability mask: 0x00010000
\t\tPort GUID: 0xba3fd2fffec0ffee
\t\tLink layer: Ethernet
"""
ROOT = "/sys/class/infiniband"
SHOWN: dict[str, object] = {
    f"{ROOT}/mlx5_0/node_guid": "946d:ae03:00a1:b2c4\n",
    f"{ROOT}/mlx5_0/fw_ver": "28.43.2026\n",
    f"{ROOT}/mlx5_0/hca_type": "MT4129\n",
    f"{ROOT}/mlx5_0/device": "/sys/devices/pci0000:37/0000:38:00.0",
    f"{ROOT}/mlx5_0/device/numa_node": "1\n",
    f"{ROOT}/mlx5_0/device/net/ibp56s0": None,
    f"{ROOT}/mlx5_0/ports/1/state": "4: ACTIVE\n",
    f"{ROOT}/mlx5_0/ports/1/phys_state": "5: LinkUp\n",
    f"{ROOT}/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    f"{ROOT}/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    f"{ROOT}/mlx5_0/ports/1/lid": "0x13\n",
    f"{ROOT}/mlx5_0/ports/1/sm_lid": "0x2\n",
    f"{ROOT}/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:946d:ae03:00a1:b2c5\n",
    f"{ROOT}/mlx5_1/node_guid": "b83f:d203:00c0:ffee\n",
    f"{ROOT}/mlx5_1/fw_ver": "22.43.2026\n",
    f"{ROOT}/mlx5_1/hca_type": "MT4125\n",
    f"{ROOT}/mlx5_1/device": "/sys/devices/pci0000:15/0000:16:00.0",
    f"{ROOT}/mlx5_1/device/numa_node": "-1\n",
    f"{ROOT}/mlx5_1/ports/1/state": "1: DOWN\n",
    f"{ROOT}/mlx5_1/ports/1/phys_state": "2: Polling\n",
    f"{ROOT}/mlx5_1/ports/1/rate": "2.5 Gb/sec (1X SDR)\n",
    f"{ROOT}/mlx5_1/ports/1/link_layer": "Ethernet\n",
    f"{ROOT}/mlx5_1/ports/1/lid": "0x0\n",
    f"{ROOT}/mlx5_1/ports/1/sm_lid": "0x0\n",
    f"{ROOT}/mlx5_1/ports/1/gids/0": "fe80:0000:0000:0000:ba3f:d2ff:fec0:ffee\n",
    f"{ROOT}/mlx5_1/ports/1/gid_attrs/ndevs/0": "eno8\n",
}
FACTS = InfinibandFacts(
    (
        HcaPort(
            "mlx5_0", 1, "Active", "LinkUp", 400, "InfiniBand", 19, 2, "28.43.2026", "MT4129", "0x946dae0300a1b2c4",
            "0x946dae0300a1b2c5", "0000:38:00.0", 1, "ibp56s0",
        ),
        HcaPort(
            "mlx5_1", 1, "Down", "Polling", 2.5, "Ethernet", 0, 0, "22.43.2026", "MT4125", "0xb83fd20300c0ffee",
            "0xba3fd2fffec0ffee", "0000:16:00.0", None, "eno8",
        ),
    ),
    "ibstat",
)  # fmt: skip
MISSING = Reply(Status.MISSING)


def tree(shown: Mapping[str, object]) -> Reply:
    return Reply(Status.OK, value=dict(shown))  # type: ignore[arg-type]


def said(text: str, exit_status: int = 0, stderr: str = "") -> Reply:
    return Reply(Status.OK, exit_status=exit_status, stdout=text, stderr=stderr)


def test_ibstat_and_sysfs_tell_the_same_of_one_set_of_ports(answered: Answered) -> None:
    assert infiniband(answered({IBSTAT: said(PRINTED), SYSFS: tree(SHOWN)})) == FACTS
    assert infiniband(answered({IBSTAT: MISSING, SYSFS: tree(SHOWN)})) == replace(FACTS, source="sysfs")


def test_no_device_in_sysfs_and_no_ibstat_mean_no_infiniband(answered: Answered) -> None:
    nothing = Absent("no InfiniBand or RoCE device")
    assert infiniband(answered({IBSTAT: MISSING, SYSFS: MISSING})) == nothing
    assert infiniband(answered({IBSTAT: MISSING, SYSFS: tree({})})) == nothing


def test_ibstat_installed_on_a_machine_without_a_device_means_no_infiniband(answered: Answered) -> None:
    panic = said("", 255, "ibpanic: [41] main: stat of IB device 'mthca0' failed: No such file or directory")
    assert infiniband(answered({IBSTAT: panic, SYSFS: tree({})})) == Absent("no InfiniBand or RoCE device")


def test_a_device_that_ibstat_fails_on_is_unread(answered: Answered) -> None:
    panic = said(PRINTED, 255, "ibpanic: [41] main: stat of IB device 'mlx5_1' failed: Invalid argument")
    assert infiniband(answered({IBSTAT: panic, SYSFS: tree(SHOWN)})) == Unread(
        "ibstat failed: ibpanic: stat of IB device 'mlx5_1' failed: Invalid argument, while /sys/class/infiniband shows"
        " mlx5_0, mlx5_1",
        fix="ibstat",
    )


def test_a_device_that_only_sysfs_shows_is_unread(answered: Answered) -> None:
    half = PRINTED.split("CA 'mlx5_1'", maxsplit=1)[0]
    fact = infiniband(answered({IBSTAT: said(half), SYSFS: tree(SHOWN)}))
    assert fact == Unread("ibstat does not list mlx5_1", fix="ibstat")


def test_a_port_in_a_state_that_is_not_known_is_unread_by_either_source(answered: Answered) -> None:
    printed = said(PRINTED.replace("State: Active", "State: ???"))
    assert facts_of(answered({IBSTAT: printed, SYSFS: tree(SHOWN)}), [InfinibandFacts])[InfinibandFacts] == Unread(
        "could not be parsed: ValueError: ibstat shows an unknown state (???) of port 1 of mlx5_0"
    )
    shown = tree({**SHOWN, f"{ROOT}/mlx5_0/ports/1/state": "9: NEW\n"})
    fact = facts_of(answered({IBSTAT: MISSING, SYSFS: shown}), [InfinibandFacts])[InfinibandFacts]
    assert isinstance(fact, Unread)


def test_an_ibstat_that_hangs_is_named(answered: Answered) -> None:
    fact = infiniband(answered({IBSTAT: Reply(Status.TIMEOUT, seconds=10), SYSFS: tree(SHOWN)}))
    assert isinstance(fact, Unread)
    assert fact.hung == "ibstat"


def test_a_folder_that_could_not_be_read_is_not_no_device(answered: Answered) -> None:
    fact = infiniband(answered({IBSTAT: MISSING, SYSFS: Reply(Status.DENIED, reason="permission denied")}))
    assert fact == Unread("/sys/class/infiniband: permission denied", fix="ls /sys/class/infiniband")


def test_an_ethernet_port_shows_the_first_gids_that_are_in_use(answered: Answered) -> None:
    place = f"{ROOT}/mlx5_1/ports/1"
    shown = {
        **SHOWN,
        f"{place}/gid_attrs/types/0": "IB/RoCE v1\n",
        f"{place}/gids/3": "0000:0000:0000:0000:0000:ffff:0a01:0007\n",
        f"{place}/gid_attrs/types/3": "RoCE v2\n",
        f"{place}/gids/4": "0000:0000:0000:0000:0000:0000:0000:0000\n",
        f"{place}/gid_attrs/types/4": {"error": "Invalid argument"},
    }
    for ibstat in (said(PRINTED), MISSING):
        fact = infiniband(answered({IBSTAT: ibstat, SYSFS: tree(shown)}))
        assert isinstance(fact, InfinibandFacts)
        assert [port.gids for port in fact.ports] == [
            (),
            (
                Gid(0, "fe80:0000:0000:0000:ba3f:d2ff:fec0:ffee", "IB/RoCE v1"),
                Gid(3, "0000:0000:0000:0000:0000:ffff:0a01:0007", "RoCE v2"),
            ),
        ]
