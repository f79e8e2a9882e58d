"""How wide the PCIe links of GPUs and HCAs are, and how wide they could be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.facts.pcie import PcieFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.parity import split


@dataclass(frozen=True)
class PcieDeviceLink:
    """A device's own link. `kind` is GPU or HCA, `rate` what is compared: lanes of a GPU, lanes times GT/s of an HCA.

    An idle GPU lowers its speed, so a GPU's says nothing.
    """

    kind: str
    name: str
    width: int
    most_width: int
    speed: float | None = None
    most_speed: float | None = None

    @property
    def rate(self) -> float:
        return self.width * (self.speed or 1.0) if self.kind == "HCA" else float(self.width)

    @property
    def reduced(self) -> bool:
        """Whether it could have more lanes or, an HCA, more speed in this slot."""
        slow = self.kind == "HCA" and bool(self.speed and self.most_speed and self.speed < self.most_speed)
        return self.width < self.most_width or slow

    @property
    def text(self) -> str:
        """GPU 0000:5d:00.0: x8 of x16"""
        lanes = f"{self.kind} {self.name}: x{self.width} of x{self.most_width}"
        return lanes + (
            f", {self.speed:g} of {self.most_speed:g} GT/s" if self.kind == "HCA" and self.most_speed else ""
        )


def ports(facts: PcieFacts) -> Iterator[PcieDeviceLink]:
    """Yield each device whose link shows its width; a virtual function shows none."""
    for kind, devices in (("GPU", facts.gpus), ("HCA", facts.hcas)):
        for name, links in devices.items():
            own = links[0] if links else None
            if own and own.width is not None and own.most_width is not None:
                yield PcieDeviceLink(kind, name, own.width, own.most_width, own.speed, own.most_speed)


def behind(facts: Mapping[str, PcieFacts]) -> dict[str, list[PcieDeviceLink]]:
    """Return the nodes whose devices have less than those of most nodes, with the links that could have more.

    The devices of a node are compared as a whole: addresses may differ between nodes that are built alike.
    """
    found: dict[str, list[PcieDeviceLink]] = {}
    shown = {id(links): tuple(ports(links)) for links in {id(one): one for one in facts.values()}.values()}
    for kind in ("GPU", "HCA"):
        kinds = {one: [port for port in devices if port.kind == kind] for one, devices in shown.items()}
        rates = {one: tuple(sorted(port.rate for port in devices)) for one, devices in kinds.items()}
        own = {node: kinds[id(links)] for node, links in facts.items()}
        parted = split({node: rates[id(links)] for node, links in facts.items() if own[node]})
        usual = parted.majority if parted else None
        for node in parted.odd if parted and usual else ():
            less = len(own[node]) == len(usual or ()) and sum(port.rate for port in own[node]) < sum(usual or ())
            narrow = [port for port in own[node] if port.reduced and port.rate < max(usual or (0.0,))]
            if less and narrow:
                found.setdefault(node, []).extend(narrow)
    return found
