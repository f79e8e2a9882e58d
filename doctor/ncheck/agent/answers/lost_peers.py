"""Whether an SSH server greets this node, on nodes that the machine which runs ncheck did not reach."""

import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Arguments

PATIENCE = 3.0  # seconds: the other end is tried for the second time here, by another machine
READS = ("connects to the SSH port of nodes that were not reached, and reads its first bytes",)


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"greeted": {node: bool}}. Asked as {"peers": [[node, name or address, port]]}."""
    greeted = {node: False for node, _, _ in arguments["peers"]}
    threads = [threading.Thread(target=_try, args=(greeted, *peer), daemon=True) for peer in arguments["peers"]]
    ends = time.monotonic() + min(timeout, 2 * PATIENCE)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return {"greeted": dict(greeted)}


def _try(greeted: "Dict[str, bool]", node: str, host: str, port: int) -> None:
    try:
        with socket.create_connection((host, port), PATIENCE) as sock:
            sock.settimeout(PATIENCE)
            if sock.recv(4) == b"SSH-":
                greeted[node] = True
    except (OSError, UnicodeError):
        pass
