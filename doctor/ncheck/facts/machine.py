"""The machine itself: kernel, processors, memory, model, and the image of its container."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated

from ncheck.decode import OPTIONAL, Maybe, Null, OrEmpty, Words
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.text import LONGEST_MESSAGE


@dataclass(frozen=True)
class MachineFacts:
    """The machine. None: the system does not show it, as many containers, or an earlier release did not ask.

    `kernel` is its release (5.15.0-105-generic), `cpu` the model of its processors, `memory` in bytes. `sockets`
    and `cores`: how many; `threads`: how many processors the kernel runs. `numa_nodes`: how many have processors.
    `product`: what the manufacturer calls the machine, "" where it says nothing; `vendor`: the manufacturer;
    `bios`: the version of its firmware; `serial`: its number, which only root can read, "" otherwise. `image`: that of
    the container, "" where it is not shown. `nvme_drives`: how many are on its own PCI bus.
    `container_toolkit`: the release of NVIDIA's, "installed" where it does not say it, "" where there is none.
    """

    kernel: Annotated[str, _named]
    architecture: Annotated[str, _named]
    cpu: Annotated[str | None, OPTIONAL, _cpu, Null(None)] = None
    sockets: Maybe[int] = None
    cores: Maybe[int] = None
    threads: Maybe[int] = None
    numa_nodes: Maybe[int] = None
    memory: Maybe[int] = None
    product: OrEmpty = ""
    image: Annotated[str, OPTIONAL, Null(""), _image] = ""
    bios: Annotated[str, OPTIONAL, Null(""), _cut] = ""
    nvme_drives: Maybe[int] = None
    container_toolkit: Maybe[Words] = None
    vendor: OrEmpty = field(default="", compare=False)
    serial: Annotated[str, OPTIONAL, Null(""), _cut] = field(default="", compare=False)


MACHINE = Answer("machine", shape=MachineFacts)

# What boards say whose manufacturer wrote nothing
_NOTHING = ("to be filled", "default string", "system manufacturer", "system product name", "not specified", "none")


@reading(MACHINE)
def machine(answer: MachineFacts) -> MachineFacts:
    """Read the answer."""
    return replace(answer, product=_product(answer.vendor, answer.product))


def _named(text: str) -> str:
    if not text:
        raise ValueError("the kernel has no name")
    return text[:LONGEST_MESSAGE]


def _cpu(text: str) -> str | None:
    return text.strip("- ")[:LONGEST_MESSAGE] or None  # lscpu prints - where it knows none


def _cut(text: str) -> str:
    return text.strip()[:LONGEST_MESSAGE]


def _product(vendor: str, product: str) -> str:
    """Return "Supermicro SYS-821GE-TNHR", each once."""
    words = [word.strip() for word in (vendor, product) if not word.strip().lower().startswith(_NOTHING)]
    if len(words) > 1 and words[1].lower().startswith(words[0].lower()):
        words = words[1:]
    return " ".join(words)[:LONGEST_MESSAGE]


def _image(image: str) -> str:
    """Return "rocm/pytorch:latest" without the registry, whose name is that of a host."""
    host, slash, rest = image.partition("/")
    return (rest if slash and ("." in host or ":" in host or host == "localhost") else image)[:LONGEST_MESSAGE]


FACTS = (Fact(MachineFacts, (MACHINE,), machine),)
