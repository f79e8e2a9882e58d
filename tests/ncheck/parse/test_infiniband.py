"""ibstat, ibstatus and ibv_devinfo."""

from __future__ import annotations

import pytest
from ncheck.parse.infiniband import parse_devinfo, parse_ibstat, parse_ibstatus, tool_error


@pytest.mark.parametrize(("text", "words"), [
    ("ibpanic: [9] main: stat of IB device 'mlx5_4' failed: Busy", "ibpanic: stat of IB device 'mlx5_4' failed: Busy"),
    ("ibwarn: [13] mad_rpc_open_port: can't open UMAD port ((null):0)", "ibwarn: can't open UMAD port ((null):0)"),
    ("$ ibv_devinfo\nNo IB devices found\n", "No IB devices found"),
    ("Failed to get IB devices list: No such thing", "Failed to get IB devices list: No such thing"),
    ("Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)",
     "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)"),
    ("-bash: ibstat: command not found", "ibstat: command not found"),
    ("ibwarn: [77] umad_init: umad_init\nibwarn: [77] umad_get_ca: opened mlx4_0\nCA 'mlx4_0'\n", None),
])  # fmt: skip
def test_a_tools_failure_is_its_own_message_and_debug_output_is_no_failure(text: str, words: str | None) -> None:
    assert tool_error(text) == words


def test_a_value_that_is_cut_off_is_not_in_the_text() -> None:
    text = "CA 'mlx5_6'\n\tFirmware version: 28.\n\tNode GUID: 0x9c63c003\n\tPort 1:\n\t\tState: Act"
    (adapter,) = parse_ibstat(text)
    assert (adapter.firmware, adapter.node_guid, adapter.ports[0].state) == (None, None, None)
    (hca,) = parse_devinfo("hca_id: mlx5_6\n  fw_ver: ...\n  port: 1\n    state: PORT_AC")
    assert (hca["firmware"], hca["ports"]) == (None, [{
        "port": 1, "state": None, "state_num": None, "physical_state": None, "active_mtu": None, "link_layer": None,
    }])  # fmt: skip


def test_an_authors_text_about_states_is_not_the_state_of_a_port() -> None:
    text = "CA 'mlx5_6'\nPort 1:\nState: Down\nPhysical state: Polling\n\nYou are looking for State: Active here.\n"
    (adapter,) = parse_ibstat(text)
    assert (adapter.ports[0].state, adapter.ports[0].physical) == ("Down", "Polling")


def test_ibstatus_has_every_key_for_a_port_with_two_lines() -> None:
    (port,) = parse_ibstatus("InfiniBand device 'mlx5_bond_1' port 1 status:\n\tstate:\t\t 1: DOWN\n\trate: ...\n")
    assert port == {
        "ca": "mlx5_bond_1", "port": 1, "state": "DOWN", "state_num": 1, "physical_state": None, "rate": None,
        "physical_state_num": None, "rate_text": None, "link_layer": None, "default_gid": None, "base_lid": None,
        "sm_lid": None,
    }  # fmt: skip
