"""NCCL's network plug-in, such as aws-ofi-nccl, and the EFA devices that only such a plug-in can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from ncheck.decode import Device, Flag, Maybe, Null, Path, Shown
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent, Read, Unread

OF_INFINIBAND = "nccl-rdma-sharp"  # the kind that uses the same HCAs as NCCL itself: HPC-X has it


@dataclass(frozen=True)
class Libfabric:
    """The libfabric that a plug-in loads. `version` is its release, or the name of its file where nothing says it."""

    path: Path
    version: Annotated[str, _version_or_file]


@dataclass(frozen=True)
class NetPlugin:
    """A plug-in that NCCL loads. `name`: what NCCL asks the loader for. `kind`: aws-ofi-nccl, gIB, GPUDirect-TCPX,
    GPUDirect-TCPXO (FasTrak), nccl-rdma-sharp; "" for another. `version`: its release, "" where its file does not say
    it; `build`: the linker's mark of the file.

    `net`: the versions of NCCL's network interface that it has; `tuner`: those of the interface of tuners. `missing`:
    libraries that it needs and that the loader does not find.
    """

    name: Shown
    path: Path
    kind: Annotated[str, _word] = ""
    version: Annotated[str, _version] = ""
    build: Annotated[str, _hexadecimal] = ""
    net: tuple[int, ...] = ()
    tuner: tuple[int, ...] = ()
    missing: tuple[Shown, ...] = ()
    libfabric: Libfabric | None = None

    @property
    def described(self) -> str:
        """Return "aws-ofi-nccl 1.16.3", or the name of its file where nothing says what it is."""
        return " ".join(filter(None, (self.kind or self.name.rpartition("/")[2], self.version)))

    @property
    def release(self) -> str:
        """Its version; where its file does not say it, the linker's mark."""
        return self.version or (f"build {self.build[:12]}" if self.build else "")


@dataclass(frozen=True)
class NetPluginFacts:
    """The plug-in that NCCL loads in the job's environment; None where it uses its own networks.

    `named`: the names in NCCL_NET_PLUGIN; `off`: whether that is "none". `not_found`: the names that lead to no file;
    `broken`: why files are no library. `elsewhere`: plug-ins where the loader does not look. `tuner`: a tuner's file.
    """

    plugin: NetPlugin | None
    named: tuple[Shown, ...] = ()
    off: bool = False
    not_found: tuple[Shown, ...] = ()
    broken: tuple[Shown, ...] = ()
    elsewhere: tuple[str, ...] = ()
    tuner: NetPlugin | None = None

    @property
    def tunes(self) -> str:
        """Where NCCL's tuner is: its own file or the plug-in's, "" for none."""
        if self.tuner:
            return self.tuner.described
        return f"that of {self.plugin.described}" if self.plugin and self.plugin.tuner else ""


@dataclass(frozen=True)
class EfaFacts:
    """AWS's EFA devices (driver efa). `driver` is the driver's version, "" for that of the kernel itself."""

    devices: tuple[Device, ...]
    driver: str


@dataclass(frozen=True)
class NotFound:
    """A name that leads to no file. `sure`: the loader's cache could be read, and is no place for it either."""

    name: Shown
    sure: Flag = False


@dataclass(frozen=True)
class NetPluginAnswer:
    named: tuple[Shown, ...]
    off: bool
    plugins: tuple[NetPlugin | Unread | NotFound, ...]
    tuner: NetPlugin | Unread | NotFound | None
    elsewhere: tuple[Path, ...]
    efa: tuple[Device, ...]
    efa_driver: Annotated[Maybe[str], Null(""), _version]


NET_PLUGIN = Answer("net-plugin", shape=NetPluginAnswer)

# 1.16.3, 1.7.4-aws, 1.22.0amzn4.0, 2.13.0g
_VERSION = r"\d[\w.+~-]{0,39}"


def _that_is(pattern: str) -> Callable[[str], str]:
    """Return a function that returns a text of this form, and "" for any other."""
    form = expression(pattern)

    def checked(text: str) -> str:
        return text if form.fullmatch(text) else ""

    return checked


_version = _that_is(_VERSION)
_version_or_file = _that_is(rf"{_VERSION}|libfabric\.so[\w.]{{0,40}}")
_word = _that_is(r"[\w ().-]{0,40}")
_hexadecimal = _that_is(r"[0-9a-f]{0,128}")


@reading(NET_PLUGIN)
def net_plugin(answer: NetPluginAnswer) -> Read[NetPluginFacts]:
    """Read the plug-in: the first of the list that is there. One that has no cache to be looked up in is not read."""
    found = [one for one in answer.plugins if isinstance(one, NetPlugin)]
    lost = [one for one in answer.plugins if isinstance(one, NotFound)]
    if not found and any(not one.sure for one in lost):
        return Unread(f"{lost[0].name} may be in the loader's cache, which could not be read", fix="ldconfig -p")
    if not (found or answer.named or answer.off or answer.efa):
        return Absent("no network plug-in of NCCL")
    return NetPluginFacts(
        plugin=found[0] if found else None,
        named=answer.named,
        off=answer.off,
        not_found=tuple(one.name for one in lost),
        broken=tuple(one.reason for one in answer.plugins if isinstance(one, Unread)),
        elsewhere=answer.elsewhere,
        tuner=answer.tuner if isinstance(answer.tuner, NetPlugin) else None,
    )


@reading(NET_PLUGIN)
def efa(answer: NetPluginAnswer) -> Read[EfaFacts]:
    """Read the devices."""
    return EfaFacts(answer.efa, answer.efa_driver or "") if answer.efa else Absent("no EFA device")


FACTS = (
    Fact(NetPluginFacts, (NET_PLUGIN,), net_plugin),
    Fact(EfaFacts, (NET_PLUGIN,), efa),
)
