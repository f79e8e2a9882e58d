"""What was measured: bandwidth against what it should be, and the data against what was sent."""

from __future__ import annotations
