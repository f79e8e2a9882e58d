"""The libraries that a job opens by name and that no other fact shows, and the devices that libibverbs opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import OPTIONAL, Device, Maybe, Null, Words
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent

NO_HCA = Absent("no InfiniBand or RoCE device")


@dataclass(frozen=True)
class LibraryFacts:
    """Why a library cannot be opened in the job's environment, "" if it can; Absent where nothing needs it.

    `verbs`: that of libibverbs; `mpi`: that of the MPI library. `uverbs`: the same of each HCA's device,
    /dev/infiniband/uverbs0 or another, by the name of the HCA. `listed`: the HCAs that libibverbs finds there; None
    if it was not asked.
    """

    verbs: Annotated[Words | Absent, Null(NO_HCA)]
    mpi: Annotated[Words | Absent, Null(Absent("no daemon of Open MPI"))]
    uverbs: Annotated[Mapping[Device, Words] | Absent, OPTIONAL, Null(NO_HCA)] = NO_HCA
    listed: Maybe[tuple[Device, ...]] = None


LIBRARIES = Answer("libraries", shape=LibraryFacts)
FACTS = (Fact(LibraryFacts, (LIBRARIES,)),)
