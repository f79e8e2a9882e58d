"""ncheck itself: nodes that were not reached, facts that were not read, broken plug-ins and checks."""

from __future__ import annotations
