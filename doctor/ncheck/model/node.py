"""A node as the user listed it."""

from __future__ import annotations

from dataclasses import field

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class ListLine:
    """A line of the list as it was written, or a part of -H: so that a list of some of its nodes can be written again.

    `names` is what stands for the names in it ("node[01-16]"), `before` what stands above it: comments, empty lines.
    """

    form: str  # file, hosts, slurm
    place: str
    text: str
    names: str
    before: tuple[str, ...] = ()


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
    lines: tuple[ListLine, ...] = field(default=(), compare=False, repr=False)

    @property
    def local(self) -> bool:
        """Tell whether this is the machine itself, with no SSH in between (`ncheck local`)."""
        return self.places == ("local",)
