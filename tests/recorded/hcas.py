"""What a node shows of its HCAs besides ibstat, and that the job can open them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.hcas import HCAS
from ncheck.model.evidence import JsonValue, Reply, Status

from .network import RATES, gid

if TYPE_CHECKING:
    from .host import Host

_MODULES = ("ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib")


def hca_replies(host: Host) -> dict[str, Reply]:
    """Return the answer about HCAs, by source key."""
    hcas: list[JsonValue] = [
        {"hca": hca.name, "board": "MT_0000000838", "ports": [{
            "port": 1, "rate": RATES[hca.rate], "pkeys": ["0xffff", *["0x0000"] * 7],
            "gids": [{"index": 0, "address": gid(host, index), "kind": "IB/RoCE v1", "netdev": ""}],
        }]}
        for index, hca in enumerate(host.hcas)
    ]  # fmt: skip
    answer: JsonValue = {"hcas": hcas, "left_out": 0, "modules": dict.fromkeys(_MODULES, "")}
    return {HCAS.key: Reply(Status.OK, value=answer, seconds=0.02)}
