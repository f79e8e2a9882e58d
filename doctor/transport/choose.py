"""Which transport serves a node: paramiko, the ssh program, a command in place of ssh, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.model.node import Node
    from doctor.settings import Settings
    from doctor.transport.link import Stream, Transport


def transports(settings: Settings) -> Transport:
    """Return one transport for every node: it asks, for each, the one that can serve it. Nothing is connected yet."""
    return Choice(settings)


class Choice:
    """Picks a transport a node, each made when the first node needs it."""

    name = "auto"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def connect(self, node: Node, timeout: float) -> Stream:
        """Connect by the transport that serves this node. Raises LoginFailedError."""
        return self.transport_for(node).connect(node, timeout)

    def transport_for(self, node: Node) -> Transport:
        raise NotImplementedError
