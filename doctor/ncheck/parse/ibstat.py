"""What ibstat prints: one block a channel adapter, one block a port within it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ncheck.parse.capture import lines_of

# CA 'mlx5_0'
_CA = re.compile(r"(?:^|\s)CA '([^']+)'")


#         Port 1:
_PORT = re.compile(r"(?:^|\s)Port (\d+):\s*$")


#                 Physical state: LinkUp
_ENTRY = re.compile(
    r"(?:^|\s)(CA type|Number of ports|Firmware version|Hardware version|Node GUID|System image GUID|State"
    r"|Physical state|Rate|Base lid|LMC|SM lid|Capability mask|Port GUID|Link layer):[ \t]*(.*?)\s*$"
)


# ibpanic: [7114] main: stat of IB device 'mlx5_1' failed: Invalid argument
# ibwarn: [2716] mad_rpc_open_port: can't open UMAD port ((null):0)
_PANIC = re.compile(r"(ibpanic|ibwarn(?=.*(?:[Ff]ail|[Cc]an't|[Cc]ouldn't))): (?:\[\d+\] )?(?:\w+: )?(.*\S)")


# Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)
_FAILURE = re.compile(
    r"Fatal error: .*\S|No IB devices? found|Failed to (?:get|open|query) .*\S|[Uu]nable to (?:get|open|query) .*\S"
)


# # ibstat: command not found
_NOT_FOUND = re.compile(r"[\w/.\-]+: (?:command )?not found|.*: No such file or directory$")


_WORDS = (
    "Down", "Initializing", "Armed", "Active", "InfiniBand", "Ethernet", "Unspecified", "LinkUp", "Polling", "Disabled",
    "Sleep", "PortConfigurationTraining", "LinkErrorRecovery", "PhyTest",
)  # fmt: skip


@dataclass(frozen=True)
class Port:
    """One port; None is what the text does not hold. Rate in Gb/s, LIDs as numbers, GUIDs as 0x and 16 digits."""

    number: int
    state: str | None = None
    physical: str | None = None
    rate: float | None = None
    lid: int | None = None
    sm_lid: int | None = None
    guid: str | None = None
    link_layer: str | None = None


@dataclass(frozen=True)
class Adapter:
    """One CA. `cut` tells that the text ends within it, before its ports."""

    name: str
    type: str | None = None
    ports_said: int | None = None
    firmware: str | None = None
    node_guid: str | None = None
    ports: tuple[Port, ...] = ()
    cut: bool = False


def parse_ibstat(text: str) -> tuple[Adapter, ...]:
    """Return the adapters in the order of the text; indentation, which pastes lose, is not looked at."""
    blocks = list(_blocks(lines_of(text)))
    adapters = [_adapter(name, lines) for name, lines in blocks]
    if adapters and not adapters[-1].ports and not any("System image GUID" in line for line in blocks[-1][1]):
        adapters[-1] = replace(adapters[-1], cut=True)
    return tuple(adapters)


def tool_error(text: str) -> str | None:
    """Return in the tools' own words why they failed, without process ids: ibpanic, or a program that is not there.

    An ibwarn that reports no failure is the chatter of `ibstat -d`.
    """
    lines = lines_of(text)
    if panic := next((found for line in lines if (found := _PANIC.search(line))), None):
        return f"{panic[1]}: {panic[2]}"
    if failure := next((found[0] for line in lines if (found := _FAILURE.search(line))), None):
        return failure
    missing = [found[0] for line in lines if (found := _NOT_FOUND.search(line))]
    return "; ".join(missing) or None


def failed_devices(error: str | None) -> list[str]:
    """Return the devices on which ibstat gave up, of its own words: it prints nothing of those that come after."""
    return re.findall(r"stat of IB device '([^']+)' failed", error or "")


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    name, block = "", list[str]()
    for line in lines:
        if found := _CA.search(line):
            if name:
                yield name, block
            name, block = found[1], []
        else:
            block.append(line)
    if name:
        yield name, block


def _adapter(name: str, lines: Sequence[str]) -> Adapter:
    starts = [number for number, line in enumerate(lines) if _PORT.search(line)]
    head = _entries(lines[: starts[0]] if starts else lines)
    ends = [*starts[1:], len(lines)]
    return Adapter(
        name,
        type=head.get("CA type"),
        ports_said=_number(head.get("Number of ports")),
        firmware=_whole_release(head.get("Firmware version")),
        node_guid=_whole_guid(head.get("Node GUID")),
        ports=tuple(_port(lines[start:end]) for start, end in zip(starts, ends, strict=False)),
    )


def _port(lines: Sequence[str]) -> Port:
    number = _PORT.search(lines[0])
    entries = _entries(lines[1:])
    return Port(
        int(number[1]) if number else 0,
        state=_whole(entries.get("State")),
        physical=_whole(entries.get("Physical state")),
        rate=rate_of(entries.get("Rate")),
        lid=_number(entries.get("Base lid")),
        sm_lid=_number(entries.get("SM lid")),
        guid=_whole_guid(entries.get("Port GUID")),
        link_layer=_whole(entries.get("Link layer")),
    )


def _entries(lines: Sequence[str]) -> dict[str, str]:
    """Return the entries that hold something; "..." stands where an author left the value out.

    The first of a name counts: what comes after may be an author's talk of it.
    """
    found = [entry for line in lines if (entry := _ENTRY.search(line))]
    return {entry[1]: entry[2] for entry in reversed(found) if entry[2].strip(". ")}


def _whole(word: str | None) -> str | None:
    """Return the word, unless the text was cut off within it: "Infini" is no link layer."""
    cut = any(known.startswith(word) and known != word for known in _WORDS) if word else True
    return None if cut else word


def _whole_guid(text: str | None) -> str | None:
    """Return the GUID, unless digits of it are cut off; one that an author masked is as it was written."""
    return None if text and re.fullmatch(r"0x[0-9a-fA-F]{0,15}", text) else text


def _whole_release(text: str | None) -> str | None:
    return None if text and text.endswith(".") else text


def rate_of(text: str | None) -> float | None:
    """Return the Gb/s in "200", "2.5" or "200 Gb/sec (4X HDR)"; a whole number as such."""
    found = re.match(r"\s*(\d+(?:\.\d+)?)", text or "")
    if not found:
        return None
    return float(found[1]) if "." in found[1] else int(found[1])


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
