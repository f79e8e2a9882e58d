"""Open connections to the nodes. An engine opens a node's stream (`engines`), a session asks over it, `gather` does so
on all nodes at once; a recording answers in their place.
"""

from __future__ import annotations
