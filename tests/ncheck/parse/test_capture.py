"""Cleaning up pasted output: colours, prefixes, quote marks and encodings."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from ncheck.parse.capture import decoded, lines_of
from ncheck.read.text import read_text

SMI_LIST = "\n".join(f"GPU {index}: NVIDIA L4 (UUID: GPU-{index})" for index in range(4))
TOPO = """\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tPIX\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tNODE\t0-15\t0\t\tN/A
NIC0\tPIX\tNODE\t X \t\t\t\t

NIC Legend:

  NIC0: mlx5_2"""
IBSTAT = """CA 'mlx5_2'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.43.2026
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand"""
LINK = """2: ens7f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
    link/ether b8:ce:f6:00:00:07 brd ff:ff:ff:ff:ff:ff
    inet 10.3.0.7/24 brd 10.3.0.255 scope global ens7f0
3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default"""


def every_line(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) for line in text.split("\n"))


@pytest.mark.parametrize("pasted", [
    lambda text: text.replace("\n", "\r\n"),
    every_line(lambda line: f"> {line}"),
    every_line(lambda line: f"node-07: {line}"),
    every_line(lambda line: f"worker_1  | {line}"),
    every_line(lambda line: f"[1,4]<stdout>:{line}"),
    every_line(lambda line: f"2026-03-02T10:11:12.5Z {line}"),
    every_line(lambda line: f"\t{line}   "),
    every_line(lambda line: " ".join(line.split())),
    lambda text: f'<pre><code class="x">{html.escape(text)}</code></pre>',
    lambda text: text.replace(" ", "\xa0").replace("'", "\u2019"),
    lambda text: text.replace("ens7f0:", "**ens7f0**:").replace("'mlx5_2'", "**'mlx5_2'**"),
    lambda text: f"<details><summary>it says</summary>\n\n```\n{text}\n```\n</details>",
], ids=["crlf", "quoted", "clush", "compose", "mpirun", "stamped", "indented", "blanks lost", "page", "typeset", "bold",
        "folded"])  # fmt: skip
@pytest.mark.parametrize(("kind", "text"), [("topo", TOPO), ("ibstat", IBSTAT), ("nics", LINK), ("smi", SMI_LIST)])
def test_what_a_paste_does_to_a_text_is_undone(kind: str, text: str, pasted: Callable[[str], str]) -> None:
    assert read_text(kind, pasted(text)) == read_text(kind, text)


def test_a_column_that_differs_on_each_line_is_no_speaker() -> None:
    table = "GPU0 | X | NV4\nGPU1 | NV4 | X\nGPU2 | SYS | X\nGPU3 | X | SYS"
    assert lines_of(table) == table.split("\n")


def test_a_file_of_powershell_is_decoded_by_its_byte_order_mark_and_invalid_bytes_are_replaced() -> None:
    assert decoded("GPU 0: Köln".encode("utf-16")) == "GPU 0: Köln"
    assert decoded("GPU 0: Köln".encode()) == "GPU 0: Köln"
    assert decoded(b"GPU 0: K\xf6ln") == "GPU 0: K\ufffdln"


def test_utf_16_without_its_mark() -> None:
    assert decoded(SMI_LIST.encode("utf-16-le")) == SMI_LIST


def test_digits_of_other_scripts_are_no_numbers() -> None:
    assert lines_of("Rate: 4\u066090\n") == ["Rate: 4?90", ""]
