"""What the lines of NVLink's and of stopped programs' Xids say beyond the number."""

from __future__ import annotations

import pytest
from ncheck.parse.xid_details import Detail, Stop, XidCause, is_hopper, of_nvlink4, of_nvlink5, of_stopped_programs
from ncheck.parse.xids import Action


def of_blackwell(xid: int, rest: str) -> Detail | None:
    return of_nvlink5(f"[  913.2] NVRM: Xid (PCI:0018:01:00): {xid}, {rest}")


@pytest.mark.parametrize(("xid", "rest", "expected"), [
    (144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000004 0x00000000 0x00000000)",
     Detail("NVLink 0", XidCause.HARDWARE, Action.NOTHING)),
    (145, "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x00000000 0x00000000)",
     Detail("NVLink 0", XidCause.SOFTWARE, Action.SUPPORT)),
    (145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000001)",
     Detail("NVLink 13", XidCause.SOFTWARE, Action.SUPPORT)),
    (145, "RLW_RXPIPE Fatal XC0 i0 Link 13 (0x0409a0c2 0x00000001)",
     Detail("NVLink 13", XidCause.SOFTWARE, Action.RESET)),
    (146, "TLW_TX_PIPE1 Fatal XC0 i0 Link 07 (0x0000000d 0x00000004 0x00000000)",
     Detail("NVLink 7", XidCause.HARDWARE, Action.RESET)),
    (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)",
     Detail("NVLink 8", XidCause.HARDWARE, Action.LINK)),
    (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
     Detail("NVLink 0", XidCause.EITHER, Action.PEER)),
    (149, "NETIR_BER_EVENT Nonfatal XC0 i0 Link 05 (0x00000013 0x00000002)",
     Detail("NVLink 5", XidCause.HARDWARE, Action.CABLES)),
    (150, "MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000)",
     Detail("NVLink 0", XidCause.FIRMWARE, Action.RESET)),
])  # fmt: skip
def test_unit_reason_and_status_name_the_link_the_cause_and_what_to_do(xid: int, rest: str, expected: Detail) -> None:
    assert of_blackwell(xid, rest) == expected


@pytest.mark.parametrize("rest", [
    "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000040)",  # a status that the table lacks
    "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x00c505c6 0x00000000)",  # reason 12
    "NEW_UNIT Fatal XC0 i0 Link 00 (0x00000001 0x00000001)",
    "SAW_MVB Nonfatal",
])  # fmt: skip
def test_what_the_table_lacks_has_no_meaning(rest: str) -> None:
    assert of_blackwell(144, rest) is None


def hopper(*registers: str, link: int = 14) -> str:
    return (f"[449410.332316] NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error "
            f"detected on link {link}({', '.join(registers)})")  # fmt: skip


NONE = ("0x0",) * 7


def register(at: int, value: int, link: int = 14) -> str:
    return hopper(*NONE[:at], hex(value), *NONE[at + 1 :], link=link)


def test_the_registers_of_hopper_tell_a_loose_link_from_what_needs_nothing() -> None:
    link = "NVLink 14"
    registers = ((0, 1 << 8), (0, 1 << 23), (4, 1 << 20), (2, 1 << 13), (3, 1 << 16), (0, 1 << 23 | 1 << 21))
    assert [of_nvlink4([register(*one)])[0] for one in registers] == [
        Detail(link, XidCause.HARDWARE, Action.SEAT), Detail(link, XidCause.HARDWARE, Action.NOTHING),
        Detail(link, XidCause.HARDWARE, Action.NOTHING), Detail(link, XidCause.EITHER, Action.VENDOR),
        Detail(link, XidCause.OTHER, Action.LINK), Detail(link, XidCause.HARDWARE, Action.SEAT),
    ]  # fmt: skip


def test_the_same_bit_of_the_same_link_again_goes_to_the_vendor() -> None:
    parity, again = register(0, 1 << 4), Detail("NVLink 14", XidCause.HARDWARE, Action.VENDOR)
    assert of_nvlink4([parity] * 3) == [again] * 3
    assert of_nvlink4([parity] * 2 + [register(0, 1 << 4, link=3)]) == [
        *[Detail("NVLink 14", XidCause.HARDWARE, Action.LINK)] * 2, Detail("NVLink 3", XidCause.HARDWARE, Action.LINK),
    ]  # fmt: skip


def test_registers_with_an_unknown_bit_or_none_at_all_have_no_meaning() -> None:
    lines = [register(0, 1 << 31), register(1, 1), hopper(*NONE), hopper("0x10000"),
             "[ 1.0] NVRM: Xid (PCI:0003:00:00): 74, pid=1, NVLink: fatal error detected on link 2"]  # fmt: skip
    assert of_nvlink4(lines) == [None] * 5


def test_only_hopper_has_these_registers() -> None:
    names = ("NVIDIA H100 80GB HBM3", "NVIDIA GH200 480GB", "NVIDIA A100-SXM4-80GB", "NVIDIA B200", "")
    assert [is_hopper(name) for name in names] == [True, True, False, False, False]


def sm(pid: str, gpc: int, tpc: int) -> str:
    return (f"NVRM: Xid (PCI:0000:38:00): 13, pid={pid}, name=<unknown>, Graphics SM Warp Exception on (GPC {gpc}, "
            f"TPC {tpc}, SM 1): Out Of Range Address")  # fmt: skip


def mmu(pid: int, engine: str = "GRAPHICS") -> str:
    return (f"NVRM: Xid (PCI:0000:b5:00): 31, pid={pid}, name=pt_main_thread, Ch 00000007, intr 00000000. MMU Fault: "
            f"ENGINE {engine} GPCCLIENT_T1_6 faulted @ 0x7f5a_e7504000. Fault is of type FAULT_PDE")  # fmt: skip


def actions(*stops: tuple[str, int, str, float | None]) -> list[Action | None]:
    return [one.action if one else None for one in of_stopped_programs([Stop(*stop) for stop in stops])]


HOUR = 3600.0


def test_the_same_unit_of_the_same_gpu_again_within_a_day_asks_for_a_test() -> None:
    assert (
        of_stopped_programs([Stop("a", 13, sm("11", 8, 5), 0), Stop("a", 13, sm("12", 8, 5), HOUR)])
        == [Detail("GPC 8, TPC 5", XidCause.EITHER, Action.TEST)] * 2
    )
    unknown = sm("'<unknown>'", 8, 5)
    assert actions(("a", 13, unknown, 0), ("a", 13, unknown, HOUR)) == [Action.TEST] * 2
    assert actions(("a", 31, mmu(1), 0), ("a", 31, mmu(2), HOUR)) == [Action.TEST] * 2


def test_else_it_is_the_program() -> None:
    program = [Action.RESTART] * 2
    assert of_stopped_programs([Stop("a", 31, mmu(7), None)]) == [
        Detail("engine GRAPHICS", XidCause.PROGRAM, Action.RESTART)
    ]
    assert actions(("a", 13, sm("11", 8, 5), 0), ("a", 13, sm("12", 8, 6), HOUR)) == program  # another unit
    assert actions(("a", 13, sm("11", 8, 5), 0), ("a", 13, sm("12", 8, 5), 25 * HOUR)) == program  # another day
    assert actions(("a", 13, sm("11", 8, 5), 0), ("a", 13, sm("11", 8, 5), HOUR)) == program  # one process
    unknown = sm("'<unknown>'", 8, 5)
    assert actions(("a", 13, unknown, 0), ("a", 13, unknown, 0.1)) == program  # the lines of one stop
    assert actions(("a", 31, mmu(1), 0), ("a", 31, mmu(2, "CE0"), HOUR)) == program
    moves = (("a", 31, mmu(1), 0.0), ("b", 31, mmu(2), HOUR), ("a", 31, mmu(3), 2 * HOUR))
    assert actions(*moves) == [Action.RESTART] * 3  # every GPU that it runs on


@pytest.mark.slow
def test_a_line_without_a_unit_has_no_detail_and_ten_thousand_lines_are_soon_compared() -> None:
    assert actions(("a", 13, "NVRM: Xid (PCI:0000:38:00): 13, Graphics Exception: ChID 000c", 0)) == [None]
    burst = [("a", 13, sm(str(at), at % 8, at % 9), at * 61.0) for at in range(10_000)]
    assert set(actions(*burst)) == {Action.TEST, Action.RESTART}
