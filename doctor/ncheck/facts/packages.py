"""Every package in the job's interpreter; read where --packages all or --requirements wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Package:
    """One package. `origin`: "commit 97ff6cfd9c86" of a repository, "editable", or "" for a usual one."""

    version: str
    origin: str = ""

    @property
    def described(self) -> str:
        """Return "0.9.0 (commit 97ff6cfd9c86)"."""
        version = self.version or "no version"
        return f"{version} ({self.origin})" if self.origin else version


@dataclass(frozen=True)
class PackagesFacts:
    """By their names in lower case with "-", as pip compares them. `markers`: what conditions in requirements ask for,
    such as python_version.
    """

    packages: Mapping[str, Package]
    markers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PackagesAnswer:
    """Each package with its version and origin."""

    packages: Mapping[str, tuple[str, str]]
    markers: Mapping[str, str]


PACKAGES = Answer("packages", shape=PackagesAnswer)

# flash-attn, 2.5.8+cu122torch2.3: they become part of commands
_NAME = expression(r"[a-z0-9][a-z0-9-]{0,99}")
_VERSION = expression(r"[A-Za-z0-9.!+_-]{0,100}")
_ORIGIN = expression(r"commit [0-9a-f]{1,12}|editable|")


@reading(PACKAGES, trouble)
def packages(answer: PackagesAnswer) -> PackagesFacts:
    """Read the packages. What has no name or version that pip would take is left out."""
    found = {
        name: Package(version, origin)
        for name, (version, origin) in answer.packages.items()
        if _NAME.fullmatch(name) and _VERSION.fullmatch(version) and _ORIGIN.fullmatch(origin)
    }
    return PackagesFacts(found, answer.markers)


def _questions(cluster: Cluster, _settings: Settings, _: float) -> Questions:
    return dict.fromkeys(cluster.names, (PACKAGES,))


def _exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
    wanted = settings.packages == "all" or (settings.run.expected and settings.run.expected.requirements)
    return {} if wanted else dict.fromkeys(cluster.names, "only with --packages all")


FACTS = (
    Fact(
        PackagesFacts,
        (PACKAGES,),
        packages,
        questions=_questions,
        exempt=_exempt,
        unrecorded="the recording lacks the packages: no option asked for them then",
    ),
)
