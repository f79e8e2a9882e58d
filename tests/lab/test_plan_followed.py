"""What NCCL picks is the planned interface on every host, as its real library answers under what ncheck printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import layers
from .hosts import Lab
from .launching import launched
from .promises import planned
from .wiring import fast_address

PLACE = f"{layers.PACKAGES}/nvidia/nccl/lib/libnccl.so.2"

# The first 8 bytes of the id are a number, then comes the address that other ranks are to call: family, port, IPv4.
PICKED = f"""#!/usr/bin/python3
import ctypes, os, socket
room = ctypes.create_string_buffer(128)
failed = ctypes.CDLL("/{PLACE}").ncclGetUniqueId(room)
print(socket.gethostname(), failed or socket.inet_ntoa(room.raw[12:16]))
"""


def with_real_nccl(lab: Lab, folder: Path) -> None:
    lab.remake(*lab.nodes, real={PLACE: folder / "libnccl.so.2"})
    for node in lab.nodes:
        node.write("/usr/local/bin/picked", PICKED, 0o755)


def test_eval_of_the_printed_environment_leads_nccl_to_the_planned_network_on_every_host(
    wide_lab: Lab, nccl_folder: Callable[[str], Path]
) -> None:
    with_real_nccl(wide_lab, nccl_folder("2.19.3"))
    printed = planned(wide_lab, "--for", "env").stdout
    environment = f"eval \"$(cat <<'END'\n{printed}END\n)\""

    by_itself = [launched(node, "picked").said for node in wide_lab.nodes]
    followed = [launched(node, f"{environment} && picked && echo $GLOO_SOCKET_IFNAME").said for node in wide_lab.nodes]

    assert by_itself == [f"{node.name} 192.168.49.1\n" for node in wide_lab.nodes]
    assert followed == [f"{node.name} {fast_address(node)}\n{node.nics[0]}\n" for node in wide_lab.nodes]
