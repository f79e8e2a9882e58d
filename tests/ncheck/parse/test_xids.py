"""What NVIDIA's catalogue says of an Xid."""

from __future__ import annotations

from ncheck.parse.xids import FATAL, HARMLESS, XIDS, Action, xid


def test_each_number_has_one_meaning_and_one_action() -> None:
    assert (xid(79).meaning, xid(79).action) == ("the GPU has fallen off the bus", Action.REBOOT)
    assert xid(999).action is Action.SUPPORT
    assert frozenset() == FATAL & HARMLESS
    assert {13, 31, 45, 94, 154}.isdisjoint(FATAL | HARMLESS)
    assert {46, 48, 62, 64, 74, 79, 95, 119, 120, 136, 140, 143, 144, 150, 155, 158} <= FATAL
    assert all(entry.meaning for entry in XIDS.values())
