"""`ncheck explain` knows the words of reports, and finds the checks and causes of an error text."""

from __future__ import annotations

import pytest
from ncheck.cli.explain import page_about
from ncheck.cli.main import main
from ncheck.glossary import WORDS, found, word_of
from ncheck.steps.registry import load_checks
from ncheck.triage.causes import NAMED


def test_each_word_is_known_as_people_type_it_and_says_two_to_five_lines_with_checks_that_exist() -> None:
    typed = (
        "NV#", "PIX", "PXB", "PHB", "NODE", "SYS", "busbw", "algbw", "GPUDirect RDMA", "rail", "P_Key", "GID", "Xid",
        "NVLS", "SHARP", "verdict", "consequence", "slots", "rendezvous", "probe", "virtual interface", "job hangs",
    )  # fmt: skip
    assert [word.name for word in WORDS] == list(typed)
    also = {
        "nv18": "NV#",
        "pkey": "P_Key",
        "gdr": "GPUDirect RDMA",
        "xids": "Xid",
        "bus bandwidth": "busbw",
        "虚拟网卡": "virtual interface",
        "docker0": "virtual interface",
        "my training is stuck": "job hangs",
        "program hangs": "job hangs",
        "会合": "rendezvous",
        "rdzv": "rendezvous",
        "consequences": "consequence",
    }
    for text, name in {**dict(zip(typed, typed, strict=True)), **also}.items():
        word = word_of(text.lower())
        assert word is not None
        assert word.name == name
    registry = load_checks()
    for word in WORDS:
        assert (word.name, len(word.meaning.splitlines())) in {(word.name, lines) for lines in range(2, 6)}
        assert max(map(len, word.meaning.splitlines())) <= 120
        assert [code for code in word.codes if registry.find(code) is None] == []


LONG = (
    "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled system error "
    "(run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5"
)
NO_CAUSE = "no cause by itself: the ranks failed, and the log does not show why"


@pytest.mark.parametrize(
    ("typed", "first", "check"),
    [
        ("Connection refused", "NC111 connection-refused", "NC111"),
        ("unhandled system error", NO_CAUSE, "NC431"),
        (LONG, NO_CAUSE, ""),
        ("Port 9988 is unavailable", "port_in_use: another process uses the port", "NC316"),
        ("horovodrun: command not found", "rank_crashed: a program or file of the job was not found", ""),
        ("zsh: command not found: horovodrun", "rank_crashed: a program or file of the job was not found", ""),
        ("地址已在使用", "port_in_use: another process uses the port", "NC316"),
        ("端口被占用", "port_in_use: another process uses the port", "NC316"),
        ("端口已被占用", "port_in_use: another process uses the port", "NC316"),
        ("连接被拒绝", "rank_crashed: nothing listens", "NC111"),
        ("拒绝连接", "rank_crashed: nothing listens", "NC111"),
        ("连接超时", "firewall: ", ""), ("权限被拒绝", "rank_crashed: ", ""), ("找不到命令", "rank_crashed: ", ""),
        ("内存不足", "rank_crashed: ", ""), ("磁盘空间不足", "disk_full: ", ""), ("显存不足", "gpu_oom: ", ""),
        ("Address already in use", "port_in_use: ", "NC316"),
        ("the nic is virtual", "NC304 nccl-would-pick-virtual", "NC304"),
        ("hostname resolves to loopback", "NC360 host-name-is-loopback", "NC360"),
    ],
)  # fmt: skip
def test_what_users_type_leads_to_this_answer_first(
    capsys: pytest.CaptureFixture[str], typed: str, first: str, check: str
) -> None:
    assert main(["explain", *typed.split(" ")]) == 0
    answers = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- ")]
    assert answers[0].startswith(f"- {first}")
    if check:
        assert next(line for line in answers if line.startswith("- NC"))[2:7] == check


@pytest.mark.parametrize("typed", ["job hangs", "卡死", "训练卡死", "my job is stuck"])
def test_a_job_that_hangs_leads_to_triage(capsys: pytest.CaptureFixture[str], typed: str) -> None:
    assert main(["explain", *typed.split(" ")]) == 0
    assert "While it hangs: `ncheck triage nodes.txt`" in capsys.readouterr().out


@pytest.mark.slow
def test_an_error_text_leads_to_its_cause_and_to_the_checks_that_are_near(capsys: pytest.CaptureFixture[str]) -> None:
    registry = load_checks()
    near = {
        "Address already in use": "NC808", "Host key verification failed": "NC117", "Polling": "NC402",
        "libibverbs.so.1: cannot open shared object file": "NC408", "port is Polling": "NC402",
        "GPU has fallen off the bus": "NC506", "orted not found": "NC209", "Permission denied (publickey)": "NC120",
    }  # fmt: skip
    assert {text: code in found(registry, text) for text, code in near.items()} == dict.fromkeys(near, True)
    for text in ("error 802", "CUDA_ERROR_SYSTEM_NOT_READY"):
        assert {*found(registry, text)[:2]} == {"NC536", "NC540"}, text
    for text in ("Error 803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver"):
        assert {*found(registry, text)[:2]} == {"NC533", "NC540"}, text
    assert found(registry, "Got completion from peer 10.0.0.1 with error 12, opcode 0, len 0, vendor err 129") == ()
    assert found(registry, "Message truncated") == ("NC201",)  # whose page says it, not those that have its words
    assert found(registry, "[1,0]<stdout>:total images/sec: 4210.55") == ()  # no page has more than one of its words
    assert main(["explain", "NCCL WARN Bootstrap : no socket interface found"]) == 0
    out = capsys.readouterr().out
    assert "interface with an address matches the configured names, or: nic_names_differ, wrong_nic; to type: `" in out
    assert main(["explain", "qwertz", "uiop"]) == 2
    assert capsys.readouterr().err.startswith(
        "ncheck: 'qwertz uiop' is no check, cause or error that ncheck knows; ncheck list shows all checks"
    )
    assert main(["explain", "busbww"]) == 2
    assert capsys.readouterr().err == (
        "ncheck: 'busbww' is no check, cause or error that ncheck knows; did you mean busbw?\n"
    )
    assert main(["explain", "versions"]) == 2
    assert capsys.readouterr().err.endswith(" checks: name one of those that ncheck list versions shows\n")
    assert main(["explain", "nccl-version-difers"]) == 2
    assert "did you mean nccl-version-differs?" in capsys.readouterr().err


def test_a_cause_of_triage_is_explained_with_the_checks_that_are_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "wrong_nic"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# wrong_nic\n\n*a cause that ncheck triage names*\n\nThe job uses a network interface that ")
    assert '\n- fix: `eval "$(ncheck plan nodes.txt --for env)"`\n- next: fix-first\n\n## Checks\n\n- NC' in out


def test_each_cause_is_explained_by_its_name() -> None:
    for name in NAMED:
        assert page_about(name).startswith(f"# {name}\n"), name
    assert page_about("wrong-nic") == page_about("wrong_nic")
