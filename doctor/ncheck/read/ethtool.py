"""ethtool: the speed, duplex and link of an interface, and its driver with -i."""

from __future__ import annotations

from ncheck.expression import expression
from ncheck.parse.capture import lines_of

Record = dict[str, object]

# Settings for ens1f0np0:
_HEADING = expression(r"^\s*Settings for (\S{1,64}):\s*$")

#         Speed: 25000Mb/s
_ENTRY = expression(r"^\s*(Speed|Duplex|Link detected|driver|version|firmware-version|bus-info): (\S.*?)\s*$")

_KEYS = {"Speed": "speed", "Duplex": "duplex", "Link detected": "link", "driver": "driver", "version": "driver_version",
         "firmware-version": "firmware", "bus-info": "pci"}  # fmt: skip


def parse_ethtool(text: str) -> list[Record]:
    """Return a record per interface, with the values as printed; `name` is None for `ethtool -i`."""
    found: list[Record] = []
    for line in lines_of(text):
        if heading := _HEADING.match(line):
            found.append({"name": heading[1]})
        elif entry := _ENTRY.match(line):
            if entry[1] == "driver":
                found.append({"name": None})
            if found:
                found[-1].setdefault(_KEYS[entry[1]], entry[2])
    return [record for record in found if len(record) > 1]
