"""Open connections to the nodes. An engine opens a node's stream (`engines`), a session asks over it, a fleet does so
on all nodes at once; a recording keeps what they answer.
"""

from __future__ import annotations
