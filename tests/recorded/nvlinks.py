"""What NVML says of the NVLinks of a node: every GPU has 18, to four NVSwitches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.topology import NVLINKS
from ncheck.model.evidence import JsonValue, Reply, Status

from .gpus import BUSES

if TYPE_CHECKING:
    from .host import Host

_SWITCH = 2  # NVML's number of what a link leads to
_SWITCHES = {"0000:05:00.0": 4, "0000:06:00.0": 5, "0000:07:00.0": 5, "0000:08:00.0": 4}


def nvlink_replies(host: Host) -> dict[str, Reply]:
    """Return the answer, by source key."""
    links: list[JsonValue] = [[many, 1, _SWITCH, address] for address, many in _SWITCHES.items()]
    gpus: list[JsonValue] = [{"pci": f"0000:{bus}:00.0", "mig": False, "links": links} for bus in BUSES[: host.gpus]]
    return {NVLINKS.key: Reply(Status.OK, value={"gpus": gpus}, seconds=0.2)}
