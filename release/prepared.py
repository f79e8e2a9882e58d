"""Writes into the wheel what is made of the tree: the index of the checks, the agent as it is sent, the catalogues."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Prepared(BuildHookInterface[Any]):
    """Imports the packages of this tree, which need nothing but the standard library for this. Babel reads catalogues.

    What it makes lies in a folder that ends with it: beside the wheel it would be taken for something to publish.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  the builder's signature
        """Make the files and add them to the wheel."""
        sys.path[:0] = [str(Path(self.root) / "doctor"), str(Path(self.root) / "checks")]
        from ncheck.fleet import bootstrap
        from ncheck.steps.registry import INDEX, OURS, as_index

        self.made = TemporaryDirectory()
        folder = Path(self.made.name)
        (folder / INDEX).write_text(as_index(), "utf-8")
        (folder / bootstrap.BLOB).write_bytes(bootstrap.made_blob())
        build_data["force_include"] |= {
            str(folder / INDEX): f"{OURS}/{INDEX}", str(folder / bootstrap.BLOB): f"ncheck/fleet/{bootstrap.BLOB}",
        }  # fmt: skip
        for source in Path(self.root).glob("doctor/ncheck/report/*.po"):
            made = folder / f"{source.stem}.mo"
            with source.open("rb") as read, made.open("wb") as written:
                write_mo(written, read_po(read, locale=source.stem, abort_invalid=True))
            build_data["force_include"][str(made)] = f"ncheck/report/{made.name}"
