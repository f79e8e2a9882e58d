"""Make ncheck.pyz: ncheck and its pure Python dependencies in one file, for machines without an index.

    python release/pyz.py OUT [--also FOLDER]

It packs what is installed in the environment that runs it, so that what was tested is what is packed. It leaves out
compiled packages, such as paramiko and what it needs: the single file uses the ssh program instead. The same packages
give the same bytes: every file in it has the time that SOURCE_DATE_EPOCH says, or none.
"""

from __future__ import annotations

import os
import re
import sys
import time
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAIN = "import sys\nfrom ncheck.__main__ import main\nsys.exit(main())\n"  # zipapp's own would drop the exit code
EARLIEST = 315532800  # 1980: a zip archive knows no earlier time
LEFT_OUT = frozenset(
    {"cryptography", "paramiko", "psutil", "netifaces2", "pyyaml", "tomli"}
)  # tomli: for Python 3.10, see make pyz
PURE_AS_WELL = frozenset({"markupsafe"})  # it also works without its compiled part
NOT_PACKED = ("direct_url.json", "INSTALLER", "RECORD", "REQUESTED", "example.py")  # of the installer; a stray one
# markdown-it-py>=2.2.0; extra == "jupyter"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<rest>.*)", re.DOTALL)


def closure(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return the distribution and its dependencies by name, without those left out and those not installed."""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    if plain in found or plain in LEFT_OUT:
        return found
    try:
        found[plain] = distribution(plain)
    except PackageNotFoundError:  # needed on other Pythons or platforms only
        return found
    for line in found[plain].requires or ():
        requirement = _REQUIREMENT.match(line)
        if requirement and "extra ==" not in requirement["rest"]:
            closure(requirement["name"], found)
    return found


def files(dist: Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield the files that the distribution installed in site-packages, as (path in the archive, file)."""
    for file in dist.files or ():
        if file.suffix == ".so" and dist.name.lower() in PURE_AS_WELL:
            continue
        if ".." not in file.parts and file.suffix != ".pyc" and file.name not in NOT_PACKED:
            yield file, Path(str(dist.locate_file(file)))


def pack(out: Path, also: Path | None) -> None:
    """Write the archive. Raises SystemExit if something in it is not pure Python."""
    packed = {str(place): file for dist in closure("cluster-ncheck", {}).values() for place, file in files(dist)}
    for file in also.rglob("*") if also else ():
        place = file.relative_to(also or file)
        if file.is_file() and place.name not in NOT_PACKED and not {"__pycache__", "bin"} & set(place.parts):
            packed.setdefault(str(place), file)
    if native := [name for name in packed if name.endswith(".so")]:
        raise SystemExit(f"not pure Python: {', '.join(native)}")
    contents = {name: file.read_bytes() for name, file in packed.items()} | {"__main__.py": MAIN.encode()}
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), EARLIEST))[:6]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents.items()):
                entry = zipfile.ZipInfo(name, when)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    out.chmod(0o755)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [target]:
            pack(Path(target), None)
        case [target, "--also", folder]:
            pack(Path(target), Path(folder))
        case _:
            raise SystemExit(__doc__)
