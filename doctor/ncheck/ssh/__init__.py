"""An OpenSSH-compatible client: ssh configuration, known_hosts, keys; on paramiko, and by the ssh program.

It knows nothing of ncheck, and imports nothing of it.
"""

from __future__ import annotations
