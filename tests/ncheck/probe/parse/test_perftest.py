"""ib_write_bw and ibv_rc_pingpong."""

from __future__ import annotations

import pytest
from ncheck.probe.parse.perftest import Latency, Perftest, Written, parse_pingpong, parse_write_bw, parse_write_lat

RULE = "---------------------------------------------------------------------------------------\n"
HEAD = f"""{RULE}                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : IB
{RULE} local address: LID 0x01 QPN 0x0087 PSN 0x3ef6f6 RKey 0x1fff00 VAddr 0x007f2ab5e00000
 remote address: LID 0x04 QPN 0x0088 PSN 0x3ef6f7 RKey 0x1fff01 VAddr 0x007f2ab5e00000
{RULE}"""
GIGABITS = f""" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 1048576    5000             392.11             391.87  \t\t   0.046715
{RULE}"""
MEBIBYTES = f""" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000             11000.00           10986.33\t\t   0.175781
{RULE}"""


LATENCY = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
Conflicting CPU frequency values detected: 1500.000000 != 3100.000000. CPU Frequency is not max.
 2       1000          4.70           13.20        4.83     \t       4.82        \t0.00   \t\t4.91    \t13.20
"""  # noqa: E501  as it is printed


def test_the_latency_is_the_median_and_99_percent() -> None:
    assert parse_write_lat(LATENCY) == Latency(2, 4.70, 4.83, 4.91)
    for text in (
        "",
        LATENCY.replace("99% percentile", "x"),
        LATENCY.replace("4.91", "1.0"),
        LATENCY.replace("4.70", "4..7"),
    ):
        assert parse_write_lat(text) is None


def test_a_report_in_gigabits_is_read_without_conversion() -> None:
    assert parse_write_bw(HEAD + GIGABITS) == Perftest((Written(1048576, 5000, 392.11, 391.87),))


def test_a_report_in_megabytes_is_one_of_mebibytes() -> None:
    (row,) = parse_write_bw(HEAD + MEBIBYTES).rows
    assert (row.size, row.iterations) == (65536, 5000)
    assert (round(row.peak, 2), round(row.average, 2)) == (92.27, 92.16)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Couldn't connect to 10.1.0.7:18515\n Unable to init the socket connection\n",
         ("Couldn't connect to 10.1.0.7:18515", "Unable to init the socket connection")),
        (" Failed to modify QP 0x87 to RTR\n Unable to Connect the HCA's through the link\n",
         ("Failed to modify QP 0x87 to RTR", "Unable to Connect the HCA's through the link")),
        (" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n",
         ("Completion with error at client", "Failed status 12: wr_id 0 syndrom 0x81")),
        ("IB device mlx5_7 not found\n Unable to find the Infiniband/RoCE device\n",
         ("IB device mlx5_7 not found", "Unable to find the Infiniband/RoCE device")),
    ],
)  # fmt: skip
def test_a_failure_has_its_own_message_and_no_row(said: str, kept: tuple[str, ...]) -> None:
    assert parse_write_bw(HEAD + said) == Perftest((), kept)


def test_a_warning_of_the_clock_is_no_error() -> None:
    text = "Conflicting CPU frequency values detected: 800.000000 != 2400.000000. CPU Frequency is not max.\n"
    assert parse_write_bw(text + HEAD + GIGABITS).errors == ()


@pytest.mark.parametrize("line", [" 65536 5000 0.00 0.00 0.1", " 65536 5000 1.0 1.2.3 0.1", " 65536 5000 nan nan", ""])
def test_no_bandwidth_is_no_row(line: str) -> None:
    assert parse_write_bw(GIGABITS.partition("\n")[0] + "\n" + line + "\n").rows == ()


def test_numbers_without_their_heading_are_no_row() -> None:
    assert parse_write_bw(" 65536      5000     97.52     97.44    0.1\n").rows == ()


def test_pingpong_shows_that_messages_arrive() -> None:
    text = """  local address:  LID 0x0001, QPN 0x0000e7, PSN 0x2fb6b8, GID ::
  remote address: LID 0x0004, QPN 0x0000e8, PSN 0x2fb6b9, GID ::
8192000 bytes in 0.01 seconds = 6500.00 Mbit/sec
1000 iters in 0.01 seconds = 10.12 usec/iter
"""
    assert parse_pingpong(text) == Perftest((Written(4096, 1000, 6.5, 6.5),))


def test_pingpong_without_a_result_is_a_failure_in_its_own_words() -> None:
    text = "Failed status transport retry counter exceeded (12) for wr_id 2\nparse WC failed 1\n"
    assert parse_pingpong(text) == Perftest((), ("Failed status transport retry counter exceeded (12) for wr_id 2",))
    assert parse_pingpong("") == Perftest()
