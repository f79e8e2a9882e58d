"""What only several lines of a log show together: ranks or nodes that differ, and interfaces that lead nowhere."""

from __future__ import annotations

from ncheck.triage.across_lines import addresses, choices, interfaces, libraries, links, ranks, variables
from ncheck.triage.signature import Detector

# Of clues of one line that are equally sure, the first in this order decides the wording.
_MODULES = (libraries, ranks, interfaces, links, addresses, variables, choices)
DETECTORS: tuple[Detector, ...] = tuple(detect for module in _MODULES for detect in module.DETECTORS)

# What a line must contain for a detector to look at it: in lower case, without digits.
WORDS = tuple(dict.fromkeys(word for module in _MODULES for word in module.WORDS))
