"""How GPUs and NICs are connected: `nvidia-smi topo -m`, else the same from PCI and NVML; `amd-smi topology`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import permutations, takewhile

from ncheck.expression import expression
from ncheck.facts.amd import LINKS
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact, trouble
from ncheck.facts.gpus import DEVICES, WAKING, amd_says, smi_trouble
from ncheck.facts.infiniband import SYSFS, devices_in, location
from ncheck.facts.pci import PCI, PciDevice, PciFacts, pci
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Command, Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.topology_matrix import Matrix, parse_topology


@dataclass(frozen=True)
class TopologyFacts(Matrix):
    """The matrix of a node. `source`: nvidia-smi, amd-smi, or the PCI bus and NVML. `mig` are the GPUs in MIG mode,
    whose NVLinks may be off. `hung` says that nvidia-smi did not end in time, although another source gave the
    matrix.
    """

    source: str = "nvidia-smi"
    mig: tuple[str, ...] = ()
    hung: str = ""


BUS_AND_NVML = "the PCI bus and NVML"


@dataclass(frozen=True)
class NvlinkGpu:
    """One GPU; its links that are alike are [how many, state, kind, address of the other end], 0 being inactive."""

    pci: str
    mig: bool
    links: tuple[tuple[int, int, int | None, str], ...]


@dataclass(frozen=True)
class NvlinkAnswer:
    """The GPUs in NVML's order, which is that of nvidia-smi."""

    gpus: tuple[NvlinkGpu, ...]


_NUMBERED = expression(r"(?:NIC|HCA)\d+")  # NIC0, which the legend calls mlx5_0
TOPO = Command(("nvidia-smi", "topo", "-m"), slow=True)
NVLINKS = Answer("nvlinks", timeout=WAKING, shape=NvlinkAnswer, slow=True)


def topology(evidence: Evidence) -> Read[TopologyFacts]:
    """Read the matrix of nvidia-smi. If that fails although there are GPUs, make it from the PCI bus and NVML."""
    printed = _printed(evidence)
    if isinstance(printed, TopologyFacts):
        return replace(printed, mig=_in_mig_mode(evidence))
    if isinstance(printed, Absent):
        return _of_amd(evidence, printed)
    if printed.unanswered:
        return printed
    try:
        computed = _computed(evidence)
    except (ValueError, TypeError) as error:
        computed = str(error)
    if isinstance(computed, TopologyFacts):
        return replace(computed, hung=printed.reason if printed.hung else "")
    if not computed:
        return printed
    return replace(printed, reason=f"{printed.reason}; nor from the PCI bus and NVML: {computed}")


def _printed(evidence: Evidence) -> Read[TopologyFacts]:
    if why := smi_trouble(evidence, TOPO):
        return why
    output = evidence.reply(TOPO).stdout
    try:
        return _matrix(output)
    except ValueError as error:
        return Unread(f"{error}; first line: {output.strip().splitlines()[0][:80]}", fix="nvidia-smi topo -m")


def _of_amd(evidence: Evidence, none_of_nvidia: Absent) -> Read[TopologyFacts]:
    """Read `amd-smi topology`: XGMI and PCIE between GPUs; it shows no NICs."""
    found = amd_says(LINKS, evidence)
    if isinstance(found, Absent):
        return none_of_nvidia
    if isinstance(found, Unread):
        return found
    names = {f"GPU{device['index']}" for device in found.devices} | {gpu for pair in found.links for gpu in pair}
    gpus = tuple(sorted(names, key=lambda name: int(name.removeprefix("GPU"))))
    return _complete(TopologyFacts(gpus, (), found.links, {}, {}, {}, source="amd-smi"), ())


@lru_cache(maxsize=16)  # nodes of one type print the same long text
def _matrix(text: str) -> TopologyFacts:
    matrix, nameless = parse_topology(text)
    return _complete(TopologyFacts(**vars(matrix)), nameless)


def _complete(matrix: TopologyFacts, nameless: tuple[str, ...]) -> TopologyFacts:
    """Return a complete matrix. Raises ValueError for a truncated one: a missing path must not count as equal.

    `nameless` are the NICs for which the driver prints no name in the legend.
    """
    for gpu in matrix.gpus:
        for other in (*matrix.gpus, *matrix.nics):
            if gpu != other and (gpu, other) not in matrix.pairs:
                raise ValueError(f"the matrix is truncated: no path from {gpu} to {other}")
    for nic in matrix.nics:
        if _NUMBERED.fullmatch(nic) and nic not in matrix.legend and nic not in nameless:
            raise ValueError(f"the matrix is truncated: the legend does not name {nic}")
    return matrix


def _in_mig_mode(evidence: Evidence) -> tuple[str, ...]:
    return tuple(f"GPU{index}" for index, gpu in enumerate(_cards(evidence)) if gpu.mig)


def _cards(evidence: Evidence) -> tuple[NvlinkGpu, ...]:
    return answer_of(NVLINKS, evidence).gpus if evidence.reply(NVLINKS).succeeded else ()


def _computed(evidence: Evidence) -> TopologyFacts | str:
    """Return the matrix as the PCI bus and NVML show it, or why there is none ("": this was not asked for).

    Raises ValueError for what cannot be true.
    """
    for source in (NVLINKS, PCI, SYSFS):
        if why := trouble(source, evidence.reply(source)):
            return "" if isinstance(why, Absent) else why.reason
    bus, cards = pci(evidence), _cards(evidence)
    if not isinstance(bus, PciFacts) or not cards:
        return "NVML finds no GPU"
    places = {f"GPU{index}": card.pci for index, card in enumerate(cards)}
    hcas = dict(_hcas(evidence))
    by_address = {device.address: device for device in bus.devices}
    if missing := [name for name, place in {**places, **hcas}.items() if place not in by_address]:
        return f"the PCI bus does not show {missing[0]}"
    gpus, nics = ({name: by_address[place] for name, place in found.items()} for found in (places, hcas))
    pairs = {pair: path_between(*map({**gpus, **nics}.__getitem__, pair)) for pair in permutations((*gpus, *nics), 2)}
    return TopologyFacts(
        gpus=tuple(gpus),
        nics=tuple(nics),
        pairs={**pairs, **_linked(cards), **{(name, name): "X" for name in (*gpus, *nics)}},
        legend={},
        cpu_affinity={name: gpu.cpus or "N/A" for name, gpu in gpus.items()},
        numa_affinity={name: "N/A" if gpu.numa is None else str(gpu.numa) for name, gpu in gpus.items()},
        source=BUS_AND_NVML,
        mig=_in_mig_mode(evidence),
    )


def _hcas(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield the adapters with their PCI addresses: the matrix of nvidia-smi has these, and no other NICs.

    An adapter without an address is made of software.
    """
    tree = evidence.reply(SYSFS).value
    if not isinstance(tree, dict):
        return
    for name in devices_in(tree):
        if place := location(tree, name, 1)[0]:
            yield name, place


def path_between(one: PciDevice, other: PciDevice) -> str:
    """Return the path between two devices on the PCI bus, by the definitions in the legend of `nvidia-smi topo -m`.

    A PCIe switch is one bridge above and one for each device below it: with at most one bridge of each device below the
    last that they share, both are at one switch. Where the system does not know the NUMA nodes, nvidia-smi says SYS.
    """
    both = takewhile(lambda places: places[0] == places[1], zip(one.above, other.above, strict=False))
    shared = [place for place, _ in both]
    if not shared:
        return "NODE" if one.numa is not None and one.numa == other.numa else "SYS"
    if shared[-1].startswith("pci"):
        return "PHB"
    return "PIX" if max(len(one.above), len(other.above)) - len(shared) <= 1 else "PXB"


_GPU, _CPU, _SWITCH = 0, 1, 2  # NVML's numbers of what a link leads to
_MOST_LINKS = 64  # of a GPU; B200 has 18


def _linked(cards: Sequence[NvlinkGpu]) -> dict[tuple[str, str], str]:
    """Return the pairs that NVLink joins. Raises ValueError where NVML does not say what a link leads to."""
    names = {card.pci: f"GPU{index}" for index, card in enumerate(cards)}
    ends = [_ends(card, names) for card in cards]
    linked: dict[tuple[str, str], str] = {}
    for (index, one), (second, other) in permutations(enumerate(ends), 2):
        direct = min(one[f"GPU{second}"], other[f"GPU{index}"])
        if links := direct or min(one["switch"], other["switch"]):
            linked[f"GPU{index}", f"GPU{second}"] = f"NV{links}"
    return linked


def _ends(card: NvlinkGpu, names: Mapping[str, str]) -> Counter[str]:
    """Count a GPU's active links by what they lead to: "GPU1" or "switch"; a GPU that is hidden here is left out."""
    ends: Counter[str] = Counter()
    for many, state, kind, remote in card.links:
        known = kind in (_CPU, _SWITCH) or (kind == _GPU and remote)
        if state and remote not in names and not known:
            raise ValueError(f"NVML does not say what the NVLinks of {card.pci} lead to")
        end = names.get(remote, "switch" if kind == _SWITCH else "")
        if not 0 < many <= _MOST_LINKS:
            raise ValueError(f"NVML says that {many} NVLinks of {card.pci} are alike")
        if state and end:
            ends[end] += many
    return ends


FACTS = (Fact(TopologyFacts, (TOPO, DEVICES, NVLINKS, PCI, SYSFS, LINKS), topology),)
