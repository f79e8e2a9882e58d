"""An AMD GPU has counted errors that it could not correct

## What it finds
AMD GPUs whose driver has counted uncorrectable errors since it was loaded, in the memory (`umc`) or in another block,
and GPUs with bad pages of memory that wait for their retirement or could not be retired. Corrected errors, and pages
that are retired, are no fault. Models without such counters, and virtual functions, are skipped.

## Why it matters
An uncorrectable error ends the job that uses the data ("Memory access fault by GPU node", "HSA_STATUS_ERROR") or gives
wrong results, and resets the GPU, with those that share its XGMI links. A page that is not retired is used again.

## What to type
`amd-smi metric --ecc-blocks` and `amd-smi bad-pages` on the named node; then reset the GPU or reboot: pages that wait
are retired then. A GPU that goes on counting needs a repair. The counters are those that the kernel describes under
"AMDGPU RAS sysfs"; how many retired pages are too many is for AMD's support to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.amd import AmdErrorFacts, AmdErrors


@node_check("NC560", Severity.WARNING, AmdErrorFacts, hardware=True)
def amd_gpu_memory_errors(node: NodeView) -> Iterator[Problem]:
    sick = {address: words for address, errors in node[AmdErrorFacts].gpus.items() if (words := _words(errors))}
    if sick:
        first, *others = (f"GPU {address}: {words}" for address, words in sick.items())
        more = f", and {len(others)} more" if others else ""
        count = f"{len(sick)} AMD GPU{'s' if others else ''}"
        yield Problem(
            first + more, "amd-smi metric --ecc-blocks", tuple(others), look=True,
            summary=f"uncorrectable errors on {count}",
        )  # fmt: skip


def _words(errors: AmdErrors) -> str:
    """Return "uncorrectable errors since the driver was loaded: 3 in the memory; bad pages: 1 waits for a reset"."""
    blocks = sorted(errors.uncorrectable.items())
    counts = [f"{count} in {'the memory' if block == 'umc' else block}" for block, count in blocks]
    pages = [f"{errors.kept} cannot be retired"] if errors.kept else []
    pages += [f"{errors.pending} to be retired by a reset"] if errors.pending else []
    parts = [f"uncorrectable errors since the driver was loaded: {', '.join(counts)}"] if counts else []
    return "; ".join([*parts, f"bad pages of memory: {', '.join(pages)}"] if pages else parts)
