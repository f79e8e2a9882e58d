"""What several checks, or checks and plan, reason with: majorities, subnets, ports, paths. Pure, over facts alone."""

from __future__ import annotations
