"""GPUs: asked of NVML on the node, and of nvidia-smi where NVML is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from doctor.collect.nvidia import DEVICES, NVML, shown_gpus, smi_trouble
from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Status
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import Gpu, GpuFacts
from doctor.parse.nvidia_smi import QUERY, parse_query, parse_smi, pci_address

SMI_QUERY = Command(("nvidia-smi", "--query-gpu=" + ",".join(QUERY), "--format=csv,noheader,nounits"))
SMI = Command(("nvidia-smi",))

Said = Mapping[str, object]

# Without these there is no telling how many GPUs there are, or which.
_VITAL = ("GetCount", "GetHandle", "GetName")


def gpus(evidence: Evidence) -> Read[GpuFacts]:
    """Read the GPUs, and note an nvidia-smi that hangs although NVML answers: tools and jobs that ask it hang, too."""
    told = _asked(evidence)
    return replace(told, hung=_hung(evidence)) if isinstance(told, GpuFacts) else told


def _hung(evidence: Evidence) -> str:
    why = (trouble(command, evidence.reply(command)) for command in (SMI_QUERY, SMI))
    return next((one.reason for one in why if isinstance(one, Unread) and one.hung), "")


def _asked(evidence: Evidence) -> Read[GpuFacts]:
    """Ask both. Two sources that both fail are Unread; that there is none takes PCI's word as well."""
    reply = evidence.reply(NVML)
    if reply.succeeded:
        return _from_nvml(cast("Said", reply.value))
    told = _from_smi(evidence)
    if isinstance(told, GpuFacts) or (isinstance(told, Unread) and told.hung):
        return told
    silent = trouble(NVML, reply)
    if reply.status is not Status.MISSING and isinstance(silent, Unread) and isinstance(told, Absent):
        return silent if shown_gpus(evidence) != () else told
    return told


def _from_nvml(value: Said) -> Read[GpuFacts]:
    errors = cast("Mapping[str, object]", value.get("errors") or {})
    for function, words in errors.items():
        if any(vital in function for vital in _VITAL) or "lost" in str(words).lower():
            return Unread(f"NVML cannot read every GPU: {function}: {words}", fix="nvidia-smi")
    found = tuple(_gpu(one) for one in cast("list[Said]", value["gpus"]))
    if not found:
        return _none_found(value)
    return GpuFacts(found, str(value.get("driver") or ""), str(value.get("cuda") or ""), "nvml")


def _none_found(value: Said) -> Unread | Absent:
    if value.get("devices"):
        return Unread(f"{value['devices']} NVIDIA GPU(s) on PCI, and NVML counts none", fix="nvidia-smi")
    return Absent("no NVIDIA GPU")


def _gpu(one: Said) -> Gpu:
    return Gpu(
        index=cast("int", one["index"]),
        name=str(one["name"]),
        uuid=str(one.get("uuid") or ""),
        pci=pci_address(str(one["pci"])) if one.get("pci") else "",
        memory_total=cast("int | None", one.get("memory_total")),
        memory_used=cast("int | None", one.get("memory_used")),
    )


def _from_smi(evidence: Evidence) -> Read[GpuFacts]:
    if why := smi_trouble(evidence, SMI_QUERY):
        return why
    try:
        found, driver = parse_query(evidence.reply(SMI_QUERY).stdout)
    except ValueError as error:
        return Unread(str(error), fix="nvidia-smi")
    header = evidence.reply(SMI)
    cuda = parse_smi(header.stdout).cuda if header.succeeded else None
    return GpuFacts(found, driver, cuda or "", "nvidia-smi")


READERS = (Reader(GpuFacts, (NVML, SMI_QUERY, SMI, DEVICES), gpus),)
