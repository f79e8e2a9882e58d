"""NCCL DIAG lines."""

from __future__ import annotations

import pytest
from ncheck.probe.parse.nccl_diagnostics import Diagnostic, NcclDiagnostics, Says, parse_diagnostics

SPEAKER = "node0:24563 NCCL DIAG "
HEALTHY = (
    "=== NCCL Diagnostics ===",
    "[OK]   p2p: verified P2P access in both directions between every GPU pair (56 peer accesses)",
    "[OK] net bw: 376.1/391.5/398.2 Gbit/s min/median/max same-nic bw (across 8 ranks) in comm 0x7a3f9b2c41d05e88",
    "NCCL diagnostics completed in 245.3 ms across 8 ranks",
)


def report(*lines: str) -> str:
    return "".join(f"{SPEAKER}{line}\n" for line in lines)


def test_a_healthy_report_is_ok_and_came_to_its_end() -> None:
    assert parse_diagnostics(report(*HEALTHY)) == NcclDiagnostics(
        (
            Diagnostic(
                "OK",
                "p2p",
                "verified P2P access in both directions between every GPU pair (56 peer accesses)",
                Says.OK,
            ),
            Diagnostic(
                "OK",
                "net bw",
                "376.1/391.5/398.2 Gbit/s min/median/max same-nic bw (across 8 ranks)",
                Says.OK,
            ),
        ),
        8,
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("p2p: only 52/56 GPU-to-GPU peer accesses passed verification", Says.WRONG),
        ("p2p: 4/6 directed GPU P2P edges verified", Says.WRONG),
        ("p2p: write mismatch srcRank=0 dstRank=3 path=NVL handle=vmm expected=0x1 got=0x0 verify=0x0; x", Says.WRONG),
        ("p2p: peer-memory import failed srcRank=0 dstRank=1 path=PIX handle=legacy reason=import; x", Says.WRONG),
        ("net bw: cross-nic rank 3 (node0): 265.1 Gbit/s, >30% off median 391.5 Gbit/s in comm 0x1234abcd", Says.WRONG),
        ("net bw: mode=same server_rank=0 server_host=a client_rank=8 memory=cuda tool run timed out", Says.WRONG),
        ("NVLink: inactive link(s) on 1 of 8 ranks in comm 0x1234", Says.WRONG),
        ("something that no release says today", Says.WRONG),
        ("net bw: required external tool missing in comm 0x1234abcd", Says.UNTRIED),
        ("net bw: setup failed on rank 3 in comm 0x1234abcd", Says.UNTRIED),
        ("net bw: failed: selected network plugin does not support IB in comm 0x1234abcd", Says.UNTRIED),
        ("net bw: test unable to complete in allocated time; ran 1 of 2 test phases in comm 0x1234abcd", Says.UNTRIED),
        ("p2p: check returned 3", Says.UNTRIED),
        ("ECC: unavailable via NVML across 8 ranks in comm 0x5fa31c27a9e0d1b4", Says.UNTRIED),
        ("net bw: net devices are shared across ranks, concurrent use can lower it in comm 0x1", Says.NOTICE),
        ("net bw: 265.1/391.5/398.0 Gbit/s min/median/max cross-nic bw (across 8 ranks) in comm 0x1", Says.NOTICE),
        ("NCCL environment: NCCL_SOCKET_IFNAME differs across 8 ranks in comm 0x1", Says.NOTICE),
    ],
)  # fmt: skip
def test_the_words_of_an_info_line_decide_what_it_means(line: str, says: Says) -> None:
    (found,) = parse_diagnostics(report(f"[INFO] {line}")).lines
    assert (found.tag, found.says) == ("INFO", says)
    assert "in comm" not in found.words


def test_a_tag_that_no_release_has_yet_is_taken_at_its_word() -> None:
    (found,) = parse_diagnostics(report("[WARN] p2p: slow path between 0 and 1")).lines
    assert found == Diagnostic("WARN", "p2p", "slow path between 0 and 1", Says.WRONG)


def test_a_report_that_was_cut_off_has_no_end() -> None:
    assert parse_diagnostics(report(*HEALTHY[:2])).ranks is None
    assert parse_diagnostics("") == NcclDiagnostics()


def test_lines_of_others_are_passed_over_and_the_same_line_counts_once() -> None:
    line = "[INFO] p2p: only 1/2 GPU-to-GPU peer accesses passed verification"
    text = "node0:24563:24563 [0] NCCL INFO Bootstrap: Using eth0\n" + report(line, line)
    found = parse_diagnostics(text)
    assert [line.says for line in found.lines] == [Says.WRONG]


def test_a_flood_of_lines_is_bounded() -> None:
    assert len(parse_diagnostics(report(*(f"[INFO] p2p: failed {number}" for number in range(9999)))).lines) == 64
