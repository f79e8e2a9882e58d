"""What a job uses of CUDA beside the driver: the toolkit that it would compile with, and cuDNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import Null, Path, PathOrEmpty
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent, Read, Unread
from ncheck.model.system import OF_A_WHEEL


@dataclass(frozen=True)
class CudaToolkitFacts:
    """The toolkit whose nvcc a job would use, as "12.4.1"; `version` is "" where no file says it."""

    path: Path
    version: Annotated[str, Null(""), _version]


@dataclass(frozen=True)
class CudnnFacts:
    """cuDNN. `path` and `version` are those of the copy that the job's framework loads, such as torch's own wheel; ""
    for none, and where no file says the version. `system`: the versions that are installed for all programs.
    """

    path: PathOrEmpty
    version: str
    system: tuple[str, ...] = ()

    @property
    def of_wheel(self) -> bool:
        """Whether the job loads that of the wheel nvidia-cudnn."""
        return OF_A_WHEEL in self.path


@dataclass(frozen=True)
class CudnnCopy:
    """One copy."""

    path: Path
    version: Annotated[str, Null(""), _version]


@dataclass(frozen=True)
class CudaAnswer:
    """null: there is none."""

    toolkit: CudaToolkitFacts | Unread | None
    cudnn: CudnnCopy | Unread | None
    copies: tuple[Annotated[str, _version], ...]


CUDA = Answer("cuda", shape=CudaAnswer, slow=True)

# 12.4, 12.4.1, 9.1.0.70
_VERSION = expression(r"\d{1,5}(\.\d{1,8}){1,3}")


def _version(text: str) -> str:
    return text if _VERSION.fullmatch(text) else ""


@reading(CUDA)
def toolkit(answer: CudaAnswer) -> Read[CudaToolkitFacts]:
    """Read the toolkit."""
    return answer.toolkit or Absent("no nvcc")


@reading(CUDA)
def cudnn(answer: CudaAnswer) -> Read[CudnnFacts]:
    """Read cuDNN."""
    loaded, system = answer.cudnn, tuple(filter(None, answer.copies))
    if isinstance(loaded, Unread):
        return Unread(f"the cuDNN that the job loads: {loaded.reason}", fix="ncheck explain NC231")
    if loaded:
        return CudnnFacts(loaded.path, loaded.version, system)
    return CudnnFacts("", "", system) if system else Absent("no libcudnn")


def alike(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that are known, cut where another says less: 9.1.0.70 and 9.1.0 are alike.

    One that may be either of two versions, such as 12.4 of 12.4.0 and 12.4.1, is not known.
    """
    known = {node: f"{version}." for node, version in versions.items() if version}
    texts = set(known.values())
    full = [one for one in texts if not any(more != one and more.startswith(one) for more in texts)]
    sure = [one for one in texts if sum(more.startswith(one) for more in full) == 1]
    return {node: min(filter(one.startswith, sure), key=len)[:-1] for node, one in known.items() if one in sure}


FACTS = (
    Fact(CudaToolkitFacts, (CUDA,), toolkit),
    Fact(CudnnFacts, (CUDA,), cudnn),
)
