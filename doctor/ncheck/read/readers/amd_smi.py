"""amd-smi and rocm-smi."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck.model.remark import Remark, error, info, warning
from ncheck.parse.amd_smi import AmdSmi, amd_failure, parse_amd
from ncheck.read.reading import Reader, Reading, Record


def _read(text: str) -> Reading | None:
    found = parse_amd(text)
    return None if found is None else Reading("amd-smi", "amd-smi", _facts(found)).saying(_remarks(found))


def _facts(found: AmdSmi) -> Record:
    numbers = {name for pair in found.links for name in pair}
    names = [str(device["name"]) for device in found.devices if device.get("name")]
    return {
        "driver": found.versions.get("driver"),
        "rocm": found.versions.get("rocm"),
        "amd_smi": found.versions.get("tool"),
        "library": found.versions.get("library"),
        "gpus": max(len(found.devices), len(numbers)) or None,
        "names": names,
        "gpu0": names[0] if names else None,
        "devices": [dict(device) for device in found.devices],
        "pairs": {f"{one}-{other}": path for (one, other), path in found.links.items()},
        "error": found.error,
    }


def _remarks(found: AmdSmi) -> Iterator[Remark]:
    if found.error:
        yield error(found.error)
    if versions := ", ".join(f"{name} {version}" for name, version in found.versions.items()):
        yield info(versions)
    for device in found.devices:
        count = device.get("ecc_uncorrected")
        if isinstance(count, int) and count:
            yield error(f"GPU {device['index']}: {count} uncorrected errors: reset the GPU")
    slow = [f"{one}-{other}" for (one, other), path in found.links.items() if path == "PCIE" and one < other]
    if slow and len(slow) * 2 < len(found.links):
        yield error(f"over PCIe while other GPUs have XGMI: {', '.join(slow)}")
    elif slow:
        yield warning(f"no XGMI between {', '.join(slow)}")
    elif found.links:
        yield info("XGMI between every two GPUs" if set(found.links.values()) == {"XGMI"} else "links not all known")


def _failed(text: str) -> Reading:
    problem = amd_failure(text)
    facts = _facts(AmdSmi(error=problem or "not the output of amd-smi or rocm-smi"))
    return Reading("amd-smi", "amd-smi" if problem else "", facts).saying([error(str(facts["error"]))])


READER = Reader("amd-smi", ("rocm-smi", "amd"), 35, _read, _failed)
