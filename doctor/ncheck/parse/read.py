"""`ncheck read KIND FILE`: the saved output of a tool as one JSON object.

A kind is a family of tools; the tool is recognised from the text. Keys have the meaning that they have in the facts; a
value that the text does not hold is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from ncheck.errors import NcheckError
from ncheck.parse.capture import plain_text
from ncheck.parse.framework_reports import parse_build, parse_check_env, parse_collect_env, parse_ds_report
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
    parse_netdevs,
    parse_opainfo,
    parse_port_table,
    parse_rdma_links,
    tool_error,
)
from ncheck.parse.interfaces import data_nic, parse_interfaces
from ncheck.parse.listed_interface import VIRTUAL, class_of
from ncheck.parse.mpi_version import parse_mpi
from ncheck.parse.nccl_ras import parse_ras
from ncheck.parse.nccl_tests import parse_nccl_tests
from ncheck.parse.nccl_version import NcclPackages, parse_log, parse_packages
from ncheck.parse.nvidia_smi import Smi, parse_smi
from ncheck.parse.topology_matrix import closest_nics, parse_topology
from ncheck.redact import redact_value
from ncheck.triage import CAUSES, Confidence, diagnose, progress, trouble_at_the_end

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue

Record = dict[str, object]


class UnknownKindError(NcheckError):
    """The kind does not exist; the message lists those that do."""


def read_text(kind: str, text: str) -> Record:
    """Return the record of a text of this kind; `error` is why it cannot be read, or null.

    Raises UnknownKindError for a kind that is not in KINDS.
    """
    if kind not in _READERS:
        raise UnknownKindError(f"unknown kind {kind!r}; choose from: {', '.join(KINDS)}")
    try:
        return cast("Record", redact_value(cast("JsonValue", _READERS[kind](text))))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return {"error": str(error)}


_NO_TOPOLOGY: Mapping[str, object] = {
    "gpus": None,
    "nics": [],
    "pairs": {},
    "nic_legend": {},
    "legend_unreadable": [],
    "closest_nics_gpu0": [],
    **dict.fromkeys(("closest_level_gpu0", "cpu_affinity_gpu0", "numa_affinity_gpu0")),
    **dict.fromkeys(("has_gpu_numa_id_column", "gpu_numa_id_gpu0")),
}


def _topology(text: str) -> Record:
    try:
        facts, unreadable = parse_topology(text)
    except ValueError as error:
        return {**_NO_TOPOLOGY, "error": str(error)}
    nics, level = closest_nics(facts, "GPU0")
    return {
        "gpus": len(facts.gpus),
        "nics": list(facts.nics or facts.legend),
        "pairs": {f"{row}-{column}": path for (row, column), path in facts.pairs.items() if row != column},
        "nic_legend": dict(facts.legend),
        "legend_unreadable": list(unreadable),
        "closest_nics_gpu0": list(nics),
        "closest_level_gpu0": level or None,
        "cpu_affinity_gpu0": facts.cpu_affinity.get("GPU0"),
        "numa_affinity_gpu0": facts.numa_affinity.get("GPU0"),
        "has_gpu_numa_id_column": facts.gpu_numa_id is not None,
        "gpu_numa_id_gpu0": (facts.gpu_numa_id or {}).get("GPU0"),
        "error": None,
    }


def _infiniband(text: str) -> Record:
    """Read the output of any InfiniBand tool: the first one that is recognised."""
    if adapters := parse_ibstat(text):
        error = tool_error(text)
        return {
            "tool": "ibstat",
            "cas": [_adapter(adapter) for adapter in adapters],
            "devices_missing": failed_devices(error),
            "error": error,
        }
    if hcas := parse_devinfo(text):
        return {"tool": "ibv_devinfo", "hcas": hcas, "software_device": is_software(hcas), "error": tool_error(text)}
    if netdevs := parse_netdevs(text):
        return {"tool": "ibdev2netdev", "map": netdevs, "error": tool_error(text)}
    for tool, parse in _PORT_TOOLS.items():
        if ports := parse(text):
            return {"tool": tool, "ports": ports, "error": tool_error(text)}
    if (devices := parse_devices(text)) or lists_devices(text):
        return {"tool": "ibv_devices", "devices": devices, "error": tool_error(text)}
    error = tool_error(text)
    unknown = "not the output of a known InfiniBand tool"
    return {"tool": None, "cas": [], "error": error or unknown, "meaning": _meaning(error)}


_PORT_TOOLS: Mapping[str, Callable[[str], list[Record]]] = {
    "ibstatus": parse_ibstatus,
    "opainfo": parse_opainfo,
    "rdma link": parse_rdma_links,
    "table": parse_port_table,
}


def _meaning(error: str | None) -> str | None:
    if error and "'mthca0'" in error and "No such file" in error:
        return "no IB device at all (mthca0 is only the first default name)"
    return None


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


def _interfaces(text: str) -> Record:
    try:
        tool, interfaces = parse_interfaces(text)
    except ValueError as error:
        return {"format": None, "interfaces": [], "virtual_or_unusable": [], "data_nic": None, "error": str(error)}
    rows = [
        {"name": each.name, "cls": class_of(each, interfaces), "state": each.state, "ipv4": each.ipv4}
        for each in interfaces
    ]
    return {
        "format": tool,
        "interfaces": rows,
        "virtual_or_unusable": [row["name"] for row in rows if row["cls"] in VIRTUAL],
        "data_nic": data_nic(interfaces),
        "error": None,
    }


def _versions(text: str) -> Record:
    """Read any output with versions: reports before single tools, because reports quote tools."""
    if (found := parse_collect_env(text)) is not None:
        return {"format": "torch_collect_env", **found}
    if (found := parse_check_env(text)) is not None:
        return {"format": "sglang_check_env", **found}
    if (found := parse_ds_report(text)) is not None:
        return {"format": "ds_report", **found}
    return _horovod(text) or _packages(text) or _mpi(text) or _nccl(text) or _no_version(text)


def _no_version(text: str) -> Record:
    error = tool_error(text) or "no known version found"
    return {"format": None, **dict.fromkeys(("mpi", "version", "horovod", "nccl", "cuda_driver")), "error": error}


def _horovod(text: str) -> Record | None:
    build = parse_build(text)
    if build.version is None and not build.probed:
        return None
    return {
        "format": "horovod_check_build",
        "horovod": build.version,
        "frameworks": dict(build.frameworks),
        "controllers": dict(build.controllers),
        "operations": dict(build.operations),
        "error": build.error,
    }


def _packages(text: str) -> Record | None:
    found = parse_packages(text)
    if found is None:
        return None
    version, cuda = found.version_and_cuda
    return {
        "format": found.manager,
        **_by_name(found),
        "nccl": version,
        "cuda": cuda,
        "not_nccl": list(found.others),
    }


def _by_name(packages: NcclPackages) -> Record:
    if packages.manager == "dpkg":
        return {"libnccl2": packages.found.get("libnccl2"), "libnccl_dev": packages.found.get("libnccl-dev")}
    return {"packages": dict(packages.found)}


def _mpi(text: str) -> Record | None:
    found = parse_mpi(text)
    if found is None:
        return None
    return {
        "format": "mpi",
        "mpi": found.implementation,
        "version": found.version,
        "build": found.build,
        "release_date": found.release_date,
        "prrte": found.prrte,
        "repo": found.repo,
        "mpi_api": found.api,
        "error": found.error,
    }


def _nccl(text: str) -> Record | None:
    log = parse_log(text)
    if not (log.versions or log.cuda_driver or log.spoken):
        return None
    return {"format": "nccl_log", "nccl": list(log.versions), "cuda_driver": log.cuda_driver}


def _smi(text: str) -> Record:
    smi = parse_smi(text)
    if smi == Smi():
        smi = Smi(error="not the output of nvidia-smi")
    speeds = {speed for links in smi.links for speed in links} - {"<inactive>"}
    return {
        "driver": smi.driver,
        "cuda": smi.cuda,
        "nvidia_smi": smi.tool,
        "gpus": smi.count or None,
        "names": [gpu.name for gpu in smi.gpus if gpu.name],
        "gpu0": smi.gpus[0].name or None if smi.gpus else None,
        "persistence_gpu0": smi.persistence[0] if smi.persistence else None,
        "fan_gpu0": smi.fans[0] if smi.fans else None,
        "links_per_gpu": len(smi.links[0]) if smi.links else None,
        "link_speed": speeds.pop() if len(speeds) == 1 else None,
        "error": smi.error,
    }


def _nccl_tests(text: str) -> Record:
    """Read the table of all_reduce_perf or its -J file; the environment in that file is not read."""
    found = parse_nccl_tests(text)
    return {
        "collective": found.collective or None,
        "nccl_tests": found.version or None,
        "nccl": found.nccl or None,
        "ranks": [{"rank": rank.rank, "host": rank.host, "gpu": rank.name} for rank in found.ranks],
        "rows": [asdict(row) for row in found.rows],
        "tables": found.tables,
        "out_of_bounds": found.out_of_bounds,
        "average_busbw": found.average,
        "whole": found.whole,
        "error": "; ".join(found.errors) or None,
    }


def _log(text: str) -> Record:
    """Diagnose a job's log: the best cause, its evidence and fix; `cause` is null if no line shows one.

    `others` are the other causes in the log, then those that print the same lines as the best.
    """
    lines = plain_text(text).split("\n")
    diagnoses = diagnose(lines)
    if not diagnoses:
        return _no_cause(text, progress(lines), trouble_at_the_end(lines))
    best = diagnoses[0]
    other_causes = [diagnosis.cause for diagnosis in diagnoses[1:] if diagnosis.cause]
    return {
        "cause": best.cause or None,
        "meaning": best.meaning,
        "confidence": best.confidence.value,
        "evidence": list(best.evidence),
        "fix": best.fix,
        "others": list(dict.fromkeys([*other_causes, *best.others])),
        "error": None,
    }


def _no_cause(text: str, sure: Confidence | None, trouble: str) -> Record:
    """Describe a log without a known failure: a job that hangs may print exactly such a log.

    It is healthy only if it shows that the job ended or went on, and nothing after that sounds like a failure.
    """
    healthy = CAUSES["healthy"]
    rest: Record = {"evidence": [trouble] if trouble else [], "fix": healthy.fix, "others": []}
    if sure is None or trouble:
        error = "no known failure message in the log" if text.strip() else "the log is empty"
        error += ", but a line that sounds like one" if trouble else ""
        return {"cause": None, "meaning": error, "confidence": "low", **rest, "error": error}
    hang = "; if the job hangs all the same, the log does not show why" if sure is Confidence.LOW else ""
    return {
        "cause": "healthy",
        "meaning": f"{healthy.meaning}{hang}",
        "confidence": sure.value,
        **rest,
        "error": None,
    }


_INFINIBAND_KINDS = (
    "ibstat", "ibstatus", "ibv_devinfo", "ibv_devices", "ibdev2netdev", "opainfo", "ib_table", "ib_error",
)  # fmt: skip


_READERS: Mapping[str, Callable[[str], Record]] = {
    "topo": _topology,
    **dict.fromkeys(_INFINIBAND_KINDS, _infiniband),
    **dict.fromkeys(("nics", "ip-addr", "ifconfig"), _interfaces),
    "versions": _versions,
    "smi": _smi,
    **dict.fromkeys(("log", "hangs"), _log),
    "nccl-tests": _nccl_tests,
    "ras": lambda text: {**asdict(parse_ras(text if text.startswith("{") else f"{text}\n")), "error": None},
}


KINDS = tuple(_READERS)
