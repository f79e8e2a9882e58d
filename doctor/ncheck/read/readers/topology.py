"""`nvidia-smi topo -m`: the matrix of paths between GPUs and NICs."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.topology import TopologyFacts
from ncheck.model.remark import error
from ncheck.parse.topology_matrix import Matrix, closest_nics, parse_topology
from ncheck.read.reading import Reader, Reading, Record
from ncheck.topology.drawing import drawing
from ncheck.topology.judgement import judged

_NOTHING: Mapping[str, object] = {
    "gpus": None,
    "nics": [],
    "pairs": {},
    "nic_legend": {},
    "legend_unreadable": [],
    "closest_nics_gpu0": [],
    **dict.fromkeys(("closest_level_gpu0", "cpu_affinity_gpu0", "numa_affinity_gpu0")),
    **dict.fromkeys(("has_gpu_numa_id_column", "gpu_numa_id_gpu0")),
}


def _read(text: str) -> Reading | None:
    try:
        printed, unreadable = parse_topology(text)
    except ValueError:
        return None
    matrix = TopologyFacts(**vars(printed))
    reading = Reading("topo", "nvidia-smi topo -m", _facts(matrix, unreadable), drawing=drawing(matrix))
    return reading.saying(judged(matrix, unreadable))


def _facts(matrix: Matrix, unreadable: tuple[str, ...]) -> Record:
    nics, level = closest_nics(matrix, "GPU0")
    return {
        "gpus": len(matrix.gpus),
        "nics": list(matrix.nics or matrix.legend),
        "pairs": {f"{row}-{column}": path for (row, column), path in matrix.pairs.items() if row != column},
        "nic_legend": dict(matrix.legend),
        "legend_unreadable": list(unreadable),
        "closest_nics_gpu0": list(nics),
        "closest_level_gpu0": level or None,
        "cpu_affinity_gpu0": matrix.cpu_affinity.get("GPU0"),
        "numa_affinity_gpu0": matrix.numa_affinity.get("GPU0"),
        "has_gpu_numa_id_column": matrix.gpu_numa_id is not None,
        "gpu_numa_id_gpu0": (matrix.gpu_numa_id or {}).get("GPU0"),
        "error": None,
    }


def _failed(text: str) -> Reading:
    try:
        parse_topology(text)
        problem = "not the output of `nvidia-smi topo -m`"
    except ValueError as why:
        problem = str(why)
    return Reading("topo", "", {**_NOTHING, "error": problem}).saying([error(problem)])


READER = Reader("topo", ("nvidia-smi topo", "topo -m"), 20, _read, _failed)
