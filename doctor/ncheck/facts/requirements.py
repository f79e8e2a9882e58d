"""Requirements of pip: read from a file on this machine, and compared with the packages of a node.

The words are those of the packaging library, which pip itself uses; it is imported only where there are requirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ncheck.expression import expression
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass

_MOST = 2000  # lines that require something

# They say where pip gets packages from, and not which.
_OF_THE_INDEX = (
    "-i", "--index-url", "--extra-index-url", "--no-index", "-f", "--find-links", "--trusted-host", "--pre", "--prefer",
    "--only-binary", "--no-binary", "--require-hashes", "--use-feature",
)  # fmt: skip


@dataclass(frozen=True)
class Requirement:
    """One line: torch>=2.3; python_version < "3.12". `name` in lower case with "-"; `marker` is its condition."""

    name: str
    specifier: str = ""
    marker: str = ""

    @property
    def described(self) -> str:
        return f"{self.name}{self.specifier}"


def read_requirements(text: str) -> tuple[Requirement, ...]:
    """Read a file of requirements. Raises ValueError with the number of a line that cannot be judged."""
    found = tuple(_requirement(number, line) for number, line in _lines(text))
    if not found or len(found) > _MOST:
        raise ValueError(f"{len(found)} requirements: expected 1 to {_MOST}")
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that require something, without comments and hashes; a line may go on after a backslash."""
    whole, first = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        first = first if whole else number
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        # torch==2.3.0 --hash=sha256:...  # the GPU build
        required, whole = re.split(r"(?:^|\s)(?:#|--hash[= ])", whole + line, maxsplit=1)[0].strip(), ""
        if required and not required.startswith(_OF_THE_INDEX):
            yield first, required


# https://ann:token@example.org
_LOGIN = expression(r"://[^/@\s]+@")


def _requirement(number: int, line: str) -> Requirement:
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Parsed
    from packaging.utils import canonicalize_name

    shown = quoted(_LOGIN.sub("://<hidden>@", line))
    if line.startswith(("-r", "--requirement", "-c", "--constraint")):
        raise ValueError(f"line {number}: {shown} names another file, which is not read: put its lines here")
    try:
        read = Parsed(line)
    except InvalidRequirement:
        raise ValueError(f"line {number}: {shown} is not NAME==VERSION or the like, as in torch>=2.3") from None
    if read.url:
        raise ValueError(f"line {number}: {shown} has no version that could be compared, but an address")
    return Requirement(canonicalize_name(read.name), str(read.specifier), str(read.marker or ""))


def applies(requirement: Requirement, markers: Mapping[str, str]) -> bool:
    """Return whether the condition of a requirement holds on a node. Extras are not asked for.

    Raises ValueError where the two sides of the condition cannot be compared.
    """
    from packaging.markers import Marker, default_environment

    if not requirement.marker:
        return True
    return Marker(requirement.marker).evaluate({**dict.fromkeys(default_environment(), ""), "extra": "", **markers})


def is_met(requirement: Requirement, version: str) -> bool:
    """Return whether an installed version is a required one. Raises ValueError for what is no version to pip."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    return SpecifierSet(requirement.specifier).contains(Version(version), prereleases=True)
