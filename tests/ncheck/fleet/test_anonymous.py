"""`ncheck bundle --anonymous`: no real name or address is left, and every verdict is the same under other names."""

from __future__ import annotations

import json
import re
import resource
import zipfile
from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from random import Random

import pytest
from ncheck.cli.main import main
from ncheck.fleet.anonymous import anonymous, ordinary_words, restored
from ncheck.fleet.anonymous_addresses import octets, subnets
from ncheck.fleet.recording import loaded
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report.json import as_json
from ncheck.settings import Settings

from tests.recorded.replayed import CLUSTERS, FIXTURES, replayed

SAVED = FIXTURES.parent / "tests" / "recorded" / "triage"
TIMED = re.compile(r'^  "(?:seconds|command|time)": .*\n', re.MULTILINE)  # differ by the clock and the files' names
# What names a machine or a person in the recorded clusters.
REAL = re.compile(
    r"\bgpu\d\d\b|\b10\.\d+\.\d+\.\d+|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|025e:1003:[0-9a-f]{4}:[0-9a-f]{4}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]{17}|(?<=/home/)\w+|(?<=\"user\": \")\w+"
)
ANYWHERE = {"00:00:00:00:00:00", "root"}


def under_other_names(parts: Mapping[str, str], seed: int = 1) -> tuple[dict[str, str], str, list[str]]:
    """Return the members, the file of names, and the notes."""
    members, notes, names = anonymous(parts, [], Random(seed))  # noqa: S311
    return members, names.document(), notes


def test_each_recorded_cluster_has_its_report_under_other_names_and_none_of_the_real_ones() -> None:
    files = {f"{path.parent.name}/{path.name}": path.read_text() for path in sorted(FIXTURES.glob("*/*.json"))}
    members, names, notes = under_other_names(files)
    real = {*REAL.findall("".join(files.values()))} - ANYWHERE
    assert (len(real) > len(CLUSTERS), real & {*REAL.findall("".join((*members, *members.values())))}) == (True, set())
    reports = {}
    for cluster in CLUSTERS:
        nodes = loaded((name, text.encode()) for name, text in members.items() if name.startswith(f"{cluster}/"))
        reports[cluster] = TIMED.sub("", restored(as_json(judge_again(nodes, Settings(), Silent())), names))
    assert reports == {cluster: TIMED.sub("", as_json(replayed(cluster))) for cluster in CLUSTERS}
    assert notes == []


def ncheck(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    code = main([str(word) for word in words])
    return code, *capfd.readouterr()


def test_where_the_archive_cannot_be_written_no_file_of_real_names_stays(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The archive is larger than the names, and no file may be as large: a full disk, or a quota."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (52_000, limits[1]))
    try:
        ended = ncheck(capfd, "bundle", FIXTURES / "healthy-4x8-h100", "--anonymous", "-o", tmp_path / "b.zip")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ended == (2, "", f"ncheck: -o: {tmp_path}/b.zip: File too large\n")
    assert list(tmp_path.iterdir()) == []


def test_a_saved_job_and_its_logs_have_their_diagnosis_under_other_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "node02-rank0.log").write_text(
        "node02:7:9 [0] NCCL INFO Bootstrap : Using eth0:10.77.0.2<0>\n"
    )
    (tmp_path / "logs" / "core.7").write_bytes(b"\x7fELF\0node02\0")
    job, packed = SAVED / "docker0.zip", tmp_path / "b.zip"
    words = ("--job", job, "--logs", tmp_path / "logs", "--anonymous", "-o", packed)
    code, _, err = ncheck(capfd, "bundle", *words)
    keep = tmp_path / "b.names.json"
    with zipfile.ZipFile(packed) as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    log = next(name for name in held if name.startswith("logs/"))
    assert err.splitlines()[0] == "ncheck: logs/00000-core.7: left out, because it is no text"
    assert err.splitlines()[1].endswith(
        "job (4 files), logs (1 files); names and addresses are replaced, numbers in names are not: look at it before "
        "you send it; "
        f"keep {keep}, which has the real ones, and do not send it"
    )
    assert (code, keep.stat().st_mode & 0o777) == (0, 0o600)
    assert re.findall(r"node0\d|10\.77\.0", "".join((*held, *held.values()))) == []
    (tmp_path / "answer.txt").write_text(held[log] + log)
    answer = ncheck(capfd, "bundle", tmp_path / "answer.txt", "--restore", keep)
    assert answer == (0, f"{(tmp_path / 'logs' / 'node02-rank0.log').read_text()}logs/00001-node02-rank0.log", "")
    code, out, _ = ncheck(capfd, "triage", packed)
    assert (code, restored(out, keep.read_text())) == ncheck(capfd, "triage", job)[:2]
    for names in ("{", "[]", '{"ncheck_names": 1}', '{"ncheck_names": 2}', '{"ncheck_names": 1, "exact": []}'):
        keep.write_text(names)
        assert ncheck(capfd, "bundle", packed, "--restore", keep)[0] == 2


# What a text says, with what may not be left of it, and what must be.
TEXTS: dict[str, tuple[Sequence[str], str, Sequence[str], Sequence[str]]] = {
    "a node, a list of nodes, and one of their kind that no recording has": (
        ["gpu01", "gpu02.hpc.acmecorp.com"],
        "gpu01: gpu[01-16] gpu07 gpu01-ib0 root@gpu01.hpc.acmecorp.com nccl-gpu03.log",
        ["gpu0", "gpu[", "hpc", "acmecorp"], ["01: ", "[01-16] ", "07 ", "01-ib0 root@", ".com nccl-"]),
    "nodes whose names are joined to other words": (
        ["gpu01", "cn07", "node-3"],
        "gpu01x gpu01_mlx5_0 rank3gpu01 mlx5gpu07:1 ibgpu01 IbGpu01 gpu[01-02]x cn07b 2cn08 node-3b x.node-3.log",
        ["gpu0", "Gpu0", "gpu[", "cn0", "node-3"],
        ["01x ", "01_mlx5_0 rank3", " mlx5", "07:1 ib", "01 Ib", "[01-02]x ", "07b 2", "08 ", "-3b x."]),
    "words and numbers in which the name of a node is by chance": (
        ["gpu1", "n1", "cn01", "fed01", "rain1"], "GPU1x nn1 n1s a0fed01c GPU12 cn1x p2p training1 sm90", [],
        ["GPU1x nn1 n1s a0fed01c GPU12 cn1x p2p training1 sm90"]),
    "NUMA nodes beneath /sys": (
        ["node1"], "node1 /sys/devices/system/node/node0/meminfo the node", [], ["/node/node0/meminfo the node"]),
    "addresses and UUIDs in the path of a device": (
        ["node1"], "/dev/disk/by-path/ip-10.20.0.9:3260-iscsi /dev/disk/by-uuid/0a4762bf-775b-5b1a-91ac-27a94e61b762",
        ["10.20.0", "0a4762bf", "775b"], ["/dev/disk/by-path/ip-10.", ".9:3260-", "/dev/disk/by-uuid/"]),
    "nodes with names that are words": (
        ["node", "a", "gpu", "ib0"], "a node: the gpu of node a, ib0", [], ["a node: the gpu of node a, ib0"]),
    "a user whose name is a word": (
        ["n07"], "/home/mark/x mark@n07 USER=mark pid 7 of mark: marked", ["/mark", "mark@", "=mark", "of mark"],
        ["/x ", ": marked"]),
    "a user whose name is a word, by other variables": (
        [], "/home/mark/x SUDO_USER=mark SLURM_JOB_USER=mark PBS_O_LOGNAME: mark user_name=mark MY_USER=mark\nmark: 7",
        ["/mark", "=mark", ": mark"], ["SUDO_USER=", " MY_USER=", "\nmark: 7"]),
    "addresses in names": (
        ["ip-10-20-0-11"], "ip-10-20-0-11.ec2.internal ip-10-20-0-[11-14] x_10.20.0.12",
        ["10-20-0", "10.20.0"], ["-[11-14]"]),
    "names of machines in clouds": (
        ["ip-10-0-0-7.ec2.internal", "worker-1.us-central1-a.c.train-cluster-4711.internal"],
        ("ec2-54-12-3-4.compute-1.amazonaws.com ip-10-0-0-7 ec2-54-12-3-[4-6] static-54-12-3-9.example.net "
        "i-0a1b2c3d4e5f60718.ec2.internal root@worker-1.us-central1-a.c.train-cluster-4711.internal "
        "gs://train-cluster-4711/x worker-2.europe-west4-b.c.train-cluster-4711.internal"),
        ["54-12-3", "10-0-0", "a1b2c3", "worker", "train-cl", "4711"],
        ["-4.compute-1.", "-[4-6] ", "-9.", " i-0", ".internal root@", ".internal gs://"]),
    "containers, by the short and by the long number": (
        ["3f9a1c2b4d5e"], (f"3f9a1c2b4d5e:7:9 [0] NCCL 4a9a1c2b4d5f:7:9 [0] docker-3f9a1c2b4d5e{13 * '77cd'}.scope "
        f"/docker/3f9a1c2b4d5e{13 * '77cd'} nccl-3f9a1c2b4d5e.log\n77aa1c2b4d5f:8:9 [0]\nHOSTNAME=88aa1c2b4d5f"),
        ["3f9a1c", "77cd77cd", "77aa1c", "88aa1c"], [":7:9 [0] NCCL 4a9a1c2b4d5f:7:9 [0] docker-", ".scope /docker/"]),
    "numbers in hexadecimal that name no container": (
        ["node1"], f"commit 3f9a1c2b4d5e {16 * '77cd'} 123456789012 [3f9a1c2b4d5e7]", [],
        [f"commit 3f9a1c2b4d5e {16 * '77cd'} 123456789012 [3f9a1c2b4d5e7]"]),
    "GUIDs and MACs without colons, as the tools of InfiniBand print them": (
        [], ("Node GUID: 0x506b4b03000c1a2f\nsys_image_guid: 0002:c903:0012:3456 0x2c90300123456\n"
             "caguid=0x506b4b03000c1a2b Ca 1 H-506b4b03000c1a2a S-0002c90300123456\nBase GUID: 506b4b03000c1a2e 4\n"
             "Base MAC:  506b4b0c1a2e"),
        ["c1a2", "3456"], ["Node GUID: 0x506b4b0300", " 0x2c90300", " Ca 1 H-506b4b0300", "MAC:  506b4b"]),
    "numbers in hexadecimal that are no GUIDs": (
        [], "GUID: unknown 0x506b4b03000c1a2f mask=0x00000000ffffffff H-1 lid 0x2c903 0x0000000000000001", [],
        ["GUID: unknown 0x506b4b03000c1a2f mask=0x00000000ffffffff H-1 lid 0x2c903 0x0000000000000001"]),
    "serial numbers of boards and disks": (
        [], "product_serial: 2203KLX998877 board_serial=PF3XK77Y sn : S4EMNX0R100 PSN: 0x7e sn: 204800",
        ["2203", "998877", "PF3", "S4E"], ["product_serial: ", ": 0x7e sn: 204800"]),
    "names in hexadecimal and in base64": (
        ["gpu01", "gpu02.hpc.acmecorp.com"],
        "6770753031 0x677075303200 67707530312E6870 Z3B1MDE= ZzogZ3B1MDIK IGdwdTAx ICBncHUwMQ== key-Z3B1MDE.log",
        ["6770753", "Z3B1MD", "IGdwdTA", "ncHUwM"], ["= ", "== key-", ".log"]),
    "texts in hexadecimal and base64 in which no known name is": (
        ["gpu01", "n07"], "6770753033 0x6770 bjA3 Z3B1 6e3037", [], ["6770753033 0x6770 ", " 6e3037"]),
    "telephone numbers, dates and counts, which look alike": (
        ["n07"], "+49 170 1234567 (555) 123-4567 555-1234567 0170/1234567 2026-11-28 1234567890", [],
        ["+49 170 1234567 (555) 123-4567 555-1234567 0170/1234567 2026-11-28 1234567890"]),
    "numbers in names that are no addresses": (
        ["ip-54-12-3-4"],
        "run_10_05_07_123 x10-300-0-7 cu12-12-4-5-8 i-12345678x cublas-cu12==54.12.3.8 x.c.node.internal",
        [], ["_10_05_07_123 x10-300-0-7 cu12-12-4-5-8 i-12345678x ", "-cu12==54.12.3.8 x.c.node.internal"]),
    "addresses that mean the same everywhere": (
        [], "127.0.0.1 172.17.0.1 169.254.1.2 192.168.122.1 255.255.255.0 0.0.0.0 ::1 cublas-cu12==12.4.5.8", [],
        ["127.0.0.1 172.17.0.1 169.254.1.2 192.168.122.1 255.255.255.0 0.0.0.0 ::1 cublas-cu12==12.4.5.8"]),
    "one adapter in five forms": (
        [],
        "02:5e:10:03:02:a7 enx025e100302a7 0x025e10fffe0302a7 025e:10ff:fe03:02a7 fe80::25e:10ff:fe03:2a7%eth0: lost",
        ["02a7", "2a7", "02:a7"], ["%eth0: lost", "fe80::25e:10ff:fe"]),
    "a repository, an e-mail address, a path and a project": (
        [], "https://git.acmecorp.com/zephyr/x.git Ann.Onym@acmecorp.com /data/zephyr/a.py ZephyrModel \\nzephyr",
        ["acmecorp", "phyr", "Ann", "Onym"], ["https://git.", "/x.git ", "\\n"]),
    "users and parts with numbers": (
        [], "/home/u1234567/run_u1234567.sh Serial Number: 1652221034567",
        ["1234567", "16522"], ["/run_", ".sh Serial Number: "]),
    "host keys": (
        [], "SHA256:OUvI9TkX6RTLwYrO1RcO/adGO8CD8iL1dRAVEh+U40U MD5:a7:b1:" + ":".join(14 * ["c2"]),
        ["OUvI", "TkX6", "a7:b1", "c2:c2"], ["SHA256:", "MD5:"]),
    "colours": (["gpu01"], "\x1b[31mgpu01\x1b[0m \\u001b[1mgpu01 \\x1b[36macmecorp", ["gpu01", "acme"],
        ["\x1b[31m", "\x1b[0m \\u001b[1m", " \\x1b[36m"]),
    "addresses as switches and tcpdump write them": (
        [], "025e.1003.02a7 IP6 2001:db8:77:1::5.2222 2001:db8:77:1::5.2222: UDP",
        ["02a7", "db8:77"], ["025e.10", "::5.2222 ", "::5.2222: UDP"]),
    "lines of JSON, and what id prints": (
        [], '{"user": "mark", "node": "cn5"}\n{"user":"mark", "x": "cn[1-4]"}\nuser=mark uid=7(mark) gid=7(mark)',
        ["mark", "cn5", "cn["], ['{"user": "', '"5"}'[1:], "[1-4]", "uid=7("]),
    "names in capitals, and devices that look like them": (
        ["gpu01", "node-3"], "GPU01 Gpu01: GPU0 NIC01 NODE GPU12 Node-3",
        ["GPU01", "Gpu01", "Node-3"], ["GPU0 ", " GPU12"]),
    "a list with two kinds of nodes": (
        [], "SLURM_NODELIST=gpu[01-02,04],cn[1-4] cn3", ["gpu[", "cn["], ["=", "[01-02,04],", "[1-4] "]),
    "serial numbers by other words": ([], "S/N: 1650423001 Asset Tag: A-4711 s/n: no", ["16504", "4711"], ["s/n: no"]),
    "other alphabets": ([], "Müllerová 张伟 nodes.txt", ["ller", "张"], ["nodes.txt"]),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_names_are_replaced_and_words_are_not(case: str) -> None:
    nodes, text, gone, left = TEXTS[case]
    parts = {f"{at}.json": json.dumps({"node": node}) for at, node in enumerate(nodes)} | {"a.log": text}
    for seed in range(5):
        members, names, notes = under_other_names(parts, seed)
        new = members["a.log"]
        assert [word for word in gone if word in new] == []
        assert [word for word in left if word not in new] == []
        assert restored(new, names) == text
        assert len(new) == len(text) or not text.isascii()
        assert len(notes) == (4 if "that are words" in case else 0)


def test_no_example_in_the_source_makes_a_name_an_ordinary_word() -> None:
    people = "smith mueller zhang tanaka garcia ivanov jdoe"
    places = "acmecorp initech globex stanford berkeley oxford siemens toyota frontier aurora trinity leonardo jupiter"
    assert ordinary_words() & {*people.split(), *places.split()} == set()


def test_no_new_name_looks_like_a_number_beside_digits() -> None:
    text = "cn07 cn07cn08 ai12ai13 AI12ai12 2cn07"
    parts = {"0.json": '{"node": "cn07"}', "1.json": '{"node": "ai12"}', "a.log": text}
    for seed in range(60):
        members, names, _ = under_other_names(parts, seed)
        assert restored(members["a.log"], names) == text


def test_a_network_that_only_a_report_names_is_restored() -> None:
    members, names, _ = under_other_names({"a.log": "10.20.37.5 10.20.36.0/22 10.20.200.1 fd00:1:2:3::a7"})
    new, _, _, v6 = members["a.log"].split()
    networks = [str(ip_network(f"{new}/{bits}", strict=False)) for bits in (16, 20, 22, 24)]
    networks.append(str(ip_network(f"{v6}/64", strict=False)))
    expected = "10.20.0.0/16 10.20.32.0/20 10.20.36.0/22 10.20.37.0/24 fd00:1:2:3::/64"
    assert restored(" ".join(networks), names) == expected


def test_subnets_stay_subnets_in_their_order_and_of_their_class() -> None:
    listed = (
        "8.8.8.8", "10.0.0.5", "10.20.0.11", "10.20.0.12", "10.20.1.3", "10.30.200.1", "100.64.3.4", "142.250.1.1",
        "172.16.5.1", "172.18.0.1", "192.168.0.4", "192.168.1.4",
    )  # fmt: skip
    classes = [ip_network(one) for one in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")]
    for seed in range(5):
        moved_to = subnets(map(octets, listed), Random(seed))  # noqa: S311
        new = {text: (*moved_to.new(octets(text)[:3]), 1) for text in listed}
        old_bits = [int(ip_address(text)) >> 8 for text in listed]
        bits = [int.from_bytes(bytes(new[text]), "big") >> 8 for text in listed]
        shared = [[(a ^ b).bit_length() for a in numbers] for numbers in (old_bits, bits) for b in numbers]
        assert shared[: len(listed)] == shared[len(listed) :]
        assert bits == sorted(bits)
        assert {*bits}.isdisjoint(old_bits)
        for text in listed:
            moved = ip_address(bytes(new[text]))
            assert [moved in one for one in classes] == [ip_address(text) in one for one in classes]
