"""The tools of InfiniBand and RoCE; the text shows which one it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from ncheck.expression import expression
from ncheck.model.remark import Remark, error, info, warning
from ncheck.parse.infiniband import (
    Adapter,
    Port,
    failed_devices,
    is_software,
    lists_devices,
    parse_devices,
    parse_devinfo,
    parse_ibstat,
    parse_ibstatus,
    parse_linkinfo,
    parse_netdevs,
    parse_opainfo,
    parse_port_table,
    parse_rdma_links,
    tool_error,
)
from ncheck.read.reading import Reader, Reading, Record


def _read(text: str) -> Reading | None:
    problem = tool_error(text)
    facts = _facts(text)
    if facts is None:
        return None
    facts["error"] = problem
    return Reading("ibstat", str(facts["tool"]), facts).saying(_remarks(facts))


def _facts(text: str) -> Record | None:
    """Return the facts of the first tool that is recognised."""
    if adapters := parse_ibstat(text):
        missing = failed_devices(tool_error(text))
        return {"tool": "ibstat", "cas": [_adapter(adapter) for adapter in adapters], "devices_missing": missing}
    if hcas := parse_devinfo(text):
        return {"tool": "ibv_devinfo", "hcas": hcas, "software_device": is_software(hcas)}
    if netdevs := parse_netdevs(text):
        return {"tool": "ibdev2netdev", "map": netdevs}
    for tool, parse in _PORT_TOOLS.items():
        if ports := parse(text):
            return {"tool": tool, "ports": ports}
    if (devices := parse_devices(text)) or lists_devices(text):
        return {"tool": "ibv_devices", "devices": devices}
    return None


_PORT_TOOLS: Mapping[str, Callable[[str], list[Record]]] = {
    "ibstatus": parse_ibstatus,
    "opainfo": parse_opainfo,
    "rdma link": parse_rdma_links,
    "iblinkinfo": parse_linkinfo,
    "table": parse_port_table,
}


def _adapter(adapter: Adapter) -> Record:
    record: Record = {
        "ca": adapter.name,
        "ca_type": adapter.type,
        "firmware": adapter.firmware,
        "node_guid": adapter.node_guid,
        "number_of_ports": adapter.port_count,
        "ports": [_port(port) for port in adapter.ports],
    }
    return {**record, "truncated": True} if adapter.truncated else record


def _port(port: Port) -> Record:
    return {
        "port": port.number,
        "state": port.state,
        "physical_state": port.physical,
        "rate": port.rate,
        "link_layer": port.link_layer,
        "port_guid": port.guid,
        "base_lid": port.lid,
        "sm_lid": port.sm_lid,
    }


def _ports(facts: Record) -> Iterator[tuple[str, Record]]:
    """Yield "mlx5_0 port 1" and the port, whichever tool printed it."""
    devices = cast("Sequence[Record]", facts.get("cas") or facts.get("hcas") or ())
    for device in devices:
        for port in cast("Sequence[Record]", device["ports"]):
            card = device.get("ca_type") or device.get("vendor_part_id")
            yield f"{device.get('ca') or device.get('hca')} port {port['port']}", {**port, "card": card}
    for port in cast("Sequence[Record]", facts.get("ports") or ()):
        yield f"{port.get('ca') or port.get('hfi')} port {port.get('port')}", port


def _remarks(facts: Record) -> Iterator[Remark]:
    ports = list(_ports(facts))
    if problem := facts["error"]:
        yield error(f"the tool failed: {problem}")
    if facts.get("devices") == {}:
        yield error("no RDMA device: no driver is loaded, or the container has no /dev/infiniband")
    if facts.get("software_device"):
        yield warning("all devices are RDMA in software (rxe or siw): no faster than TCP")
    active = [name for name, port in ports if _word(port.get("state")) == "active"]
    for name, port in ports:
        yield from _of_port(name, port, others_work=bool(active))
    if active:
        yield info(f"{len(active)} of {len(ports)} ports are Active")
    yield from _differences([(name, port) for name, port in ports if name in active])
    devices = cast("Sequence[Record]", facts.get("cas") or facts.get("hcas") or ())
    cut = [str(device.get("ca") or device.get("hca")) for device in devices if device.get("truncated")]
    if cut:
        yield warning(f"the text ends within {', '.join(cut)}: its ports are unknown")


def _of_port(name: str, port: Record, *, others_work: bool) -> Iterator[Remark]:
    state, physical = _word(port.get("state")), _word(port.get("physical_state"))
    if state in ("down", "nop"):
        why = {"polling": ": cable, transceiver or switch port", "disabled": ": switched off"}.get(physical, "")
        more = f" (physical state {port['physical_state']}{why})" if physical else ""
        yield (warning if others_work else error)(f"{name} is down{more}")
    elif state.startswith(("init", "arm")):
        yield error(
            f"{name} is in state {port['state']}: the subnet manager has not set it up (sminfo; is opensm running?)"
        )
    if state == "active" and port.get("sm_lid") == 0 and port.get("link_layer") == "InfiniBand":
        yield warning(f"{name} is Active but knows no subnet manager (SM lid 0)")


def _differences(ports: Sequence[tuple[str, Record]]) -> Iterator[Remark]:
    """Compare the Active ports of equal cards: a slower card for storage or login beside them is usual."""
    layers = dict.fromkeys(str(port.get("link_layer")) for _, port in ports)
    if len(layers) > 1:
        yield info(f"link layers: {', '.join(layers)}")
    for group in dict.fromkeys((port.get("link_layer"), port.get("card")) for _, port in ports):
        own = [(name, port) for name, port in ports if (port.get("link_layer"), port.get("card")) == group]
        for key, title in _COMPARED.items():
            values: dict[object, list[str]] = {}
            for name, port in own:
                if port.get(key) is not None:
                    values.setdefault(port[key], []).append(name)
            if len(values) > 1:
                shown = "; ".join(f"{value}: {', '.join(names[:_FEW])}" for value, names in values.items())
                yield warning(f"equal cards differ in {title}: {shown}")


_COMPARED = {"rate": "rate", "active_mtu": "MTU", "active_speed": "speed", "active_width": "width"}
_FEW = 4


def _word(state: object) -> str:
    return str(state or "").lower().removeprefix("port_")


# ibstat: command not found; ibpanic: ...; Failed to get IB devices list; Fatal error: device '*': sys files not found
_OURS = expression(
    r"\bib(?:stat|status|v_\w+|dev2netdev|linkinfo|panic|warn|hosts|netdiscover)\b|\brdma\b|\bopainfo\b|IB devices?"
    r"|libibverbs|/sys/class/infiniband|perfquery|sminfo|umad"
)


# ibstat: command not found     zsh: command not found: ibv_devinfo
_MISSING = expression(
    r"(?<![\w/])(ib(?!dev2netdev)\w{2,20}|sminfo|perfquery)\b(?=: (?:command )?not found)|"
    r"command not found: (ib(?!dev2netdev)\w{2,20}|sminfo|perfquery)\b"
)
_PACKAGES = {"ibv": ("ibverbs-utils", "libibverbs-utils")}  # all others are in infiniband-diags


def _failed(text: str) -> Reading:
    problem = tool_error(text)
    ours = problem is not None and _OURS.search(text) is not None
    facts: Record = {
        "tool": None,
        "cas": [],
        "error": problem or "not the output of a known InfiniBand tool",
        "meaning": _meaning(problem, text),
    }
    return Reading("ibstat", "ib_error" if ours else "", facts).saying([error(str(facts["meaning"] or facts["error"]))])


def _meaning(problem: str | None, text: str) -> str | None:
    if problem and "'mthca0'" in problem and "No such file" in problem:
        return "no IB device at all (mthca0 is only the first default name)"
    if problem and (found := _MISSING.search(text)):
        tool = found[1] or found[2]
        deb, rpm = _PACKAGES.get(tool.partition("_")[0], ("infiniband-diags", "infiniband-diags"))
        return f"{tool} is not installed: sudo apt-get install {deb}, or sudo dnf install {rpm}"
    return None


READER = Reader(
    "ibstat",
    ("ibstatus", "ibv_devinfo", "ibv_devices", "ibdev2netdev", "opainfo", "ib_table", "ib_error", "rdma_link", "rdma",
     "infiniband", "iblinkinfo"),
    25, _read, _failed,
)  # fmt: skip
