"""A node as the user listed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """One host of the inventory. `user` and `port` are only what the listing itself said: ssh configuration and -p
    are applied by the transport. `places` says where it was listed ("nodes.txt:3"), more than one when named twice.
    """

    name: str
    user: str | None = None
    port: int | None = None
    slots: int | None = None
    max_slots: int | None = None
    places: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Tell whether this is the machine itself, with no SSH in between (`ncheck local`)."""
        return self.places == ("local",)
