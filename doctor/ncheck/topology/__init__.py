"""What an all-reduce should give: computed from the links that were found."""

from __future__ import annotations
