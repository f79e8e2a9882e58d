"""`ncheck ticket`: what a vendor gets about one node, from a recording, the history, or both."""

from __future__ import annotations

import json
import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.kernel_log import JOURNAL
from ncheck.fleet.recording import load, save
from ncheck.model.evidence import Reply, Status

from tests.recorded.replayed import FIXTURES

from .test_remember import BEGAN, DAY, Ncheck, ncheck, recorded

__all__ = ["ncheck"]  # the fixture

XID = "Nov 03 11:58:02 gpu02 kernel: NVRM: Xid (PCI:0000:5b:00): 79, pid=77, GPU has fallen off the bus."
HIDDEN = "hf_abcdefghijklmnopqrstuvwxyz"


def with_a_lost_gpu(folder: Path) -> str:
    """Write the healthy recording, with an Xid in the kernel log of gpu02, and a secret beside it."""
    lines = f"Nov 03 09:00:00 gpu02 kernel: Linux version 5.15\n{XID}\nNov 03 12:00:00 gpu02 kernel: NVRM: {HIDDEN}\n"
    log = {JOURNAL.key: Reply(Status.OK, stdout=lines, exit_status=0)}
    nodes = [
        replace(one, began=BEGAN + 2 * DAY, replies={**one.replies, **(log if one.node == "gpu02" else {})})
        for one in load(FIXTURES / "healthy-4x8-h100")
    ]
    save(folder, nodes)
    return str(folder)


@pytest.mark.slow
def test_a_ticket_has_the_fault_its_beginning_the_parts_and_what_to_run_before_a_reboot(
    tmp_path: Path, ncheck: Ncheck
) -> None:
    path, folder = tmp_path / "cluster.db", with_a_lost_gpu(tmp_path / "lost")
    ncheck("replay", recorded(tmp_path / "before", "healthy-4x8-h100", 0), "--history", path)
    ncheck("replay", folder, "--history", path)
    size = path.stat().st_size
    made, ignoring = tmp_path / "ticket", tmp_path / "ncheck.toml"
    ignoring.write_text('ignore = ["NC506"]\nselect = ["NC1"]\n')
    code, output = ncheck("ticket", "gpu02", "--from", folder, "--history", path, "-o", made, "--config", ignoring)
    assert (code, output.splitlines()[0]) == (0, "ncheck: gpu02: 1 hardware fault: NC506 gpu-xid-reported")
    assert path.stat().st_size == size
    files = sorted(str(one.relative_to(made)) for one in made.rglob("*") if one.is_file())
    assert files == ["history.json", "kernel.txt", "recording/node.json", "report.json", "ticket.md"]
    assert {stat.S_IMODE(one.stat().st_mode) for one in made.rglob("*") if one.is_file()} == {0o600}
    page = (made / "ticket.md").read_text()
    assert page.startswith("Host names, addresses and serial numbers are in these files; secrets were removed.\n")
    for part in (
        "| NC506 gpu-xid-reported | 2026-11-03 12:00 | Xid 79 of a GPU |", XID, "sudo nvidia-bug-report.sh  ",
        "before the reset, keep what the vendor asks for: sudo nvidia-bug-report.sh",
        "sudo sos report --batch", "GPU-de8b5cbf-1bf7-574a-9f00-589ac2c9a3a5", "0x025e100300020003",
        "firmware 28.39.1002", "VBIOS: 96", "mlx5\\_0:1 link\\_downed | 1", "Bad in 1 of 2 runs",
    ):  # fmt: skip
        assert part in page
    assert (made / "kernel.txt").read_text().splitlines()[0] == XID
    assert not any(HIDDEN in one.read_text() for one in made.rglob("*") if one.is_file())
    report = json.loads((made / "report.json").read_text())
    assert ([one["name"] for one in report["nodes"]], [one["node"] for one in report["hardware"]]) == (
        ["gpu02"],
        ["gpu02"],
    )
    assert ncheck("replay", made / "recording")[0] == 1


def test_the_history_alone_makes_a_zip_and_says_what_it_lacks(
    tmp_path: Path, ncheck: Ncheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.db"
    ncheck("replay", with_a_lost_gpu(tmp_path / "lost"), "--history", path)
    monkeypatch.chdir(tmp_path)
    assert ncheck("ticket", "gpu02", "--history", path)[0] == 0
    with zipfile.ZipFile("ticket-gpu02.zip") as archive:
        assert sorted(archive.namelist()) == ["history.json", "ticket.md"]
        page = archive.read("ticket.md").decode()
    for part in (
        "# gpu02: 1 hardware fault: NC506", "| NC506 gpu-xid-reported | 2026-11-03 12:00 |",
        "GPU-de8b5cbf-1bf7-574a-9f00-589ac2c9a3a5", "the history keeps no kernel lines",
    ):  # fmt: skip
        assert part in page


def test_a_node_without_a_fault_gets_a_ticket_that_claims_none_and_one_that_was_not_examined_is_not_called_well(
    tmp_path: Path, ncheck: Ncheck
) -> None:
    for cluster, node, headline in (
        ("healthy-4x8-h100", "gpu02", "gpu02: no hardware fault found"),
        ("one-node-down", "gpu03", "gpu03: no hardware fault found, because it could not be examined"),
    ):
        code, output = ncheck("ticket", node, "--from", FIXTURES / cluster, "-o", tmp_path / cluster)
        assert (code, output.splitlines()[0]) == (0, f"ncheck: {headline}")


@pytest.mark.slow
def test_what_makes_no_ticket_is_a_usage_error_and_leaves_nothing(tmp_path: Path, ncheck: Ncheck) -> None:
    folder, path = FIXTURES / "port-polling", tmp_path / "cluster.db"
    ncheck("replay", recorded(tmp_path / "r", "healthy-4x8-h100", 1), "--history", path)
    full, link = tmp_path / "full", tmp_path / "link"
    full.mkdir()
    (full / "notes").write_text("mine")
    link.symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.iterdir())
    for words, message in (
        (("gpu02",), "name what is known of the node"),
        (("gpu99", "--from", folder), "its nodes: gpu[01-04]"),
        (("gpu99", "--history", path), "examined 'gpu99'"),
        (("gpu02", "--from", tmp_path / "none"), "No such file"),
        (("gpu02", "--from", folder, "-o", full), "exists and is not overwritten"),
        (("gpu02", "--from", folder, "-o", full / "notes"), "exists and is not overwritten"),
        (("gpu02", "--from", folder, "-o", link), "exists and is not overwritten"),
        (("gpu02", "--from", folder, "-o", tmp_path / "no" / "t.zip"), "does not exist"),
        (("gpu02", "--from", folder, "-o", "/proc/t"), "/proc/t"),
        (("gpu02", "--from", folder, "-o", "-"), "not standard output"),
    ):
        code, output = ncheck("ticket", *words)
        assert (code, message in output) == (2, True), output
    assert sorted(tmp_path.iterdir()) == before
