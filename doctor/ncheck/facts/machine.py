"""The machine itself: kernel, processors, memory, model, and the image of its container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read


@dataclass(frozen=True)
class MachineFacts:
    """`kernel` is its release (5.15.0-105-generic), `cpu` the model of its processors, `memory` in bytes.

    `threads` are the processors that the kernel runs, `numa_nodes` those with processors. `product` is what the
    manufacturer calls the machine, "" where it says nothing, `bios` the version of its firmware; `nvme_drives` are
    those on its own PCI bus. None: the system does not show it, as many containers, or an earlier release did not ask.
    """

    kernel: str
    architecture: str
    cpu: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    numa_nodes: int | None = None
    memory: int | None = None
    product: str = ""
    image: str = ""
    bios: str = ""
    nvme_drives: int | None = None


class MachineAnswer(TypedDict):
    """The same, as the node says it."""

    kernel: str
    architecture: str
    cpu: str | None
    sockets: int | None
    cores: int | None
    threads: int | None
    numa_nodes: int | None
    memory: int | None
    vendor: str | None
    product: str | None
    image: str | None
    bios: str | None
    nvme_drives: int | None


MACHINE = Answer("machine", shape=MachineAnswer)


# What boards say whose manufacturer wrote nothing
_NOTHING = ("to be filled", "default string", "system manufacturer", "system product name", "not specified", "none")


def machine(evidence: Evidence) -> Read[MachineFacts]:
    """Read the answer. Raises ValueError without a kernel."""
    reply = evidence.reply(MACHINE)
    if why := no_answer(MACHINE, reply):
        return why
    answer = cast("MachineAnswer", reply.value)
    if not answer["kernel"] or not answer["architecture"]:
        raise ValueError("its kernel has no name")
    return MachineFacts(
        kernel=answer["kernel"][:LONGEST],
        architecture=answer["architecture"][:LONGEST],
        cpu=(answer.get("cpu") or "").strip("- ")[:LONGEST] or None,  # lscpu prints - where it knows none
        sockets=answer.get("sockets"),
        cores=answer.get("cores"),
        threads=answer.get("threads"),
        numa_nodes=answer.get("numa_nodes"),
        memory=answer.get("memory"),
        product=_product(answer.get("vendor") or "", answer.get("product") or ""),
        image=_image(answer.get("image") or ""),
        bios=(answer.get("bios") or "").strip()[:LONGEST],
        nvme_drives=answer.get("nvme_drives"),
    )


def _product(vendor: str, product: str) -> str:
    """Return "Supermicro SYS-821GE-TNHR", each once."""
    words = [word.strip() for word in (vendor, product) if not word.strip().lower().startswith(_NOTHING)]
    if len(words) > 1 and words[1].lower().startswith(words[0].lower()):
        words = words[1:]
    return " ".join(words)[:LONGEST]


def _image(image: str) -> str:
    """Return "rocm/pytorch:latest" without the registry, whose name is that of a host."""
    host, slash, rest = image.partition("/")
    return (rest if slash and ("." in host or ":" in host or host == "localhost") else image)[:LONGEST]


FACTS = (Fact(MachineFacts, (MACHINE,), machine),)
