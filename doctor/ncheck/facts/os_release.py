"""The distribution of a node, by which commands to type differ."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, File
from ncheck.model.fact import Absent, Read
from ncheck.text import LONGEST_MESSAGE

RPM = {"suse": "zypper", "opensuse": "zypper", "sles": "zypper", "rhel": "dnf", "fedora": "dnf", "centos": "dnf"}


@dataclass(frozen=True)
class OsFacts:
    """`ids` are the names of the distribution and of those that it is like, from os-release: ("ubuntu", "debian").

    `name` is what it calls itself: "Ubuntu 22.04.4 LTS".
    """

    ids: tuple[str, ...]
    name: str = ""


OS_RELEASE = File("/etc/os-release")


def os_release(evidence: Evidence) -> Read[OsFacts]:
    """Read the names. Absent without the file, or if it cannot be read: no check depends on it, only wording does."""
    reply = evidence.reply(OS_RELEASE)
    if trouble(OS_RELEASE, reply) or not isinstance(reply.value, str):
        return Absent("no /etc/os-release")
    values = dict(line.partition("=")[::2] for line in reply.value.splitlines())
    known = {key: value.strip("\"' ") for key, value in values.items()}
    return OsFacts(tuple(dict.fromkeys(_ids(known))), known.get("PRETTY_NAME", "")[:LONGEST_MESSAGE])


def _ids(values: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of ID and ID_LIKE."""
    for key in ("ID", "ID_LIKE"):
        yield from values.get(key, "").lower().split()


def command_to_install(packages: Mapping[str, Sequence[str]], system: object) -> str:
    """Return the command that installs packages with the node's installer: apt-get where the system is unknown.

    `packages` maps installers (apt-get, dnf, zypper) to what they are called there.
    """
    ids = system.ids if isinstance(system, OsFacts) else ()
    installer = next((RPM[name.partition("-")[0]] for name in ids if name.partition("-")[0] in RPM), "apt-get")
    return f"sudo {installer} install {shlex.join(packages[installer])}"


FACTS = (Fact(OsFacts, (OS_RELEASE,), os_release),)
