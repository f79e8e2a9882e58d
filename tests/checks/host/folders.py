"""A node's folders by hand: healthy, but for those that a test names."""

from __future__ import annotations

from ncheck.facts.folders import Folder, FolderFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread

GIB = 2**30
TMP, SHM = "/tmp", "/dev/shm"  # noqa: S108  only names


def folder(path: str, named_by: str = "", **state: bool | int | str) -> Folder:
    return Folder(path, named_by, **{"free": 100 * GIB, "files_free": 10**6, **state})  # type: ignore[arg-type]


def node(*temporary: Folder | Unread, **others: Folder | Unread) -> Facts:
    healthy = {"home": folder("/home/me"), "shm": folder(SHM), "root": folder("/", writable=False)}
    return {FolderFacts: FolderFacts(temporary or (folder(TMP),), **{**healthy, **others})}
