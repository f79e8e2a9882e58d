"""What the hardware of a node lets through: NVLinks, PCIe, network cards."""

from __future__ import annotations
