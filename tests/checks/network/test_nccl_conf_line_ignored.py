"""NC334: lines of nccl.conf that NCCL ignores; the fix is run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.nccl.setting_problems import command_to_repair
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_conf_line_ignored import nccl_conf_line_ignored

from .settings import CONF, node


def test_spaces_around_the_equals_sign_are_reported_with_a_line_that_removes_them() -> None:
    assert judge([nccl_conf_line_ignored], {"n1": node("NCCL_DEBUG=WARN", "NCCL_SOCKET_IFNAME = eth0")}).findings == [
        Finding("NC334", "nccl-conf-line-ignored", Severity.WARNING, ("n1",),
                f"NCCL ignores 'NCCL_SOCKET_IFNAME = eth0' in {CONF}: the blanks count as part of the name",
                (), r"sudo sed -i -E 's/^\s*(export\s+)?([NR]CCL_[A-Z0-9_]+)(\s*=\s*|\s+)/\2=/' /etc/nccl.conf"),
    ]  # fmt: skip


@pytest.mark.parametrize(("line", "why"), [
    ("export NCCL_DEBUG=INFO", "NCCL is no shell: export counts as part of the name"),
    ("  NCCL_DEBUG=INFO", "the blanks count as part of the name"),
    ("NCCL_DEBUG INFO", "it has no ="),
])  # fmt: skip
def test_so_is_every_other_line_that_sets_nothing(line: str, why: str) -> None:
    (found,) = judge([nccl_conf_line_ignored], {"n1": node(line)}).findings
    assert found.message == f"NCCL ignores {line.strip()!r} in {CONF}: {why}"


def test_it_is_silent_about_effective_lines_and_comments() -> None:
    judged = judge(
        [nccl_conf_line_ignored], {"n1": node("# NCCL_ALGO = Ring", "", "NCCL_IB_HCA==mlx5_0:1", "mine = 1")}
    )
    assert (judged.findings, judged.verdicts[0].outcome) == ([], Outcome.PASSED)


def test_the_line_to_type_makes_them_count(tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("# NCCL_ALGO = Ring\nexport NCCL_A=1\n NCCL_B = 2\nNCCL_C 3\nNCCL_D==eth0,eth1\n")
    subprocess.run(["sh", "-c", command_to_repair(str(conf))], check=True, timeout=60)
    assert conf.read_text() == "# NCCL_ALGO = Ring\nNCCL_A=1\nNCCL_B=2\nNCCL_C=3\nNCCL_D==eth0,eth1\n"
