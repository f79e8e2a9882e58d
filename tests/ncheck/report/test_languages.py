"""Reports in Chinese: the catalogue has all words and no others, programs read English, and any terminal will do."""

from __future__ import annotations

import ast
import io
import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import ncheck
import ncheck_checks
import pytest
from babel.messages.pofile import read_po
from ncheck.history.entry import Entry, Seen
from ncheck.history.past import past_of
from ncheck.history.show import as_text
from ncheck.model.finding import Outcome, Severity
from ncheck.model.plan import Blocker
from ncheck.model.report import EarlierProblem, LookedAgain, Report, State
from ncheck.report import show
from ncheck.report.language import language_of, speaking
from ncheck.report.listing import print_list, short_topic, topic_of
from ncheck.report.summary import looked_again
from ncheck.report.text import why
from ncheck.settings.values import COLUMNS
from ncheck.steps.registry import OURS, load_checks
from ncheck.timeline import _PARTS, LOG_IN, SLURM, START
from ncheck.triage.causes import CAUSES, SYMPTOM
from ncheck.triage.diagnosis import WaitLimit
from ncheck.triage.wait_limits import sentence
from rich.cells import cell_len

SOURCE = Path(ncheck.__file__).parent
CATALOGUE = Path(__file__).parents[3] / "doctor" / "ncheck" / "report" / "zh.po"
FIXTURES = Path(__file__).parents[3] / "fixtures"

# What is printed from data, beside the texts that stand in the calls of tr and marked.
WORDS = {
    *(word.value for kind in (Severity, Outcome, State) for word in kind), "ignored", "consequence", "not run", "ready",
    "fix", "look", "do", "median", "mean", "{number} EFA ports", START, LOG_IN, SLURM, *_PARTS.values(), "judged",
    *(name.upper() for name in COLUMNS),
    *(named(code) for named in (topic_of, short_topic) for code in ("X1", *(f"NC{first}00" for first in range(10)))),
}  # fmt: skip
# Why checks are skipped: whole texts of facts and checks, by which they are found.
REASONS = (
    "no network plug-in of NCCL",
    "no InfiniBand or RoCE device",
    "no folder of code was named: --workdir DIR",
    "the planned launch opens no ssh from here to other nodes",
    "how long it takes was not measured, or on no other node",
    "the node list gives the number of slots",
    "only with --packages all",
    "the job's Python has a framework",
    "no command with a full path was given",
    "no interface was requested (--ifname)",
    "only root can read the firewall rules",
    "no bond",
    "no RoCE port",
    "only root can read the access control (ACS) of PCIe bridges",
    "no AMD GPU counts errors",
    "no AMD accelerator that amdgpu drives",
    "no control group limits the memory",
    "it has the network of its machine",
    "no EFA device",
    "no Active RoCE port",
    "no Active RoCE port with IPv4",
    "no container on a machine with NVIDIA GPUs",
    "NCCL_IB_HCA is not set",
    "the plan sets nothing that NCCL reads",
    "the pairs were measured on GPUs",
    "NCCL's own diagnostics were not run",
    "no Active InfiniBand port",
    "no Active InfiniBand or RoCE port",
    "no check that was selected needs it",
)
AS_THEY_ARE = {"InfiniBand", "NCCL", "ncheck"}  # names
SAME = {"{ports} {state}", "rank {names}"}


@cache
def entries() -> dict[str, str]:
    with CATALOGUE.open("rb") as file:
        catalogue = read_po(file, locale="zh", abort_invalid=True)
    assert not [one.id for one in catalogue if one.fuzzy and one.id]
    return {str(one.id): str(one.string) for one in catalogue if one.id}


_CALLS = re.compile(r"\b(?:tr|translation|marked|count)\(")


def texts() -> Iterator[str]:
    """Yield the texts of the package that are given to tr, translation or marked, and the plurals of count."""
    for path in SOURCE.rglob("*.py"):
        text = "" if "fixtures" in path.parts else path.read_text()
        for node in ast.walk(ast.parse(text)) if _CALLS.search(text) else ():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("tr", "translation", "marked"):
                given = node.args[0]
                both = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
                yield from (one.value for one in both if isinstance(one, ast.Constant) and isinstance(one.value, str))
            elif name == "count" and isinstance(noun := node.args[-1], ast.Constant) and len(node.args) > 1:
                yield f"{{number}} {noun.value!s}s"
    for page in ("page.html", "page.js"):
        found = re.findall(r"""\btr\((["'])(.+?)\1""", (SOURCE / "report" / page).read_text())
        yield from (text for _, text in found)


def test_each_check_each_cause_and_each_word_of_a_report_has_its_entry_and_no_entry_is_left_over() -> None:
    titles = {check.title for check in load_checks().listed if check.module.startswith(f"{OURS}.")}
    meanings = {cause.meaning for cause in (*CAUSES.values(), SYMPTOM)}
    printed = {*titles, *meanings, *texts(), *WORDS, *REASONS} - AS_THEY_ARE
    assert sorted(printed - entries().keys()) == []
    assert sorted(entries().keys() - printed) == []


def test_each_reason_to_skip_a_check_is_said_somewhere() -> None:
    sources = (SOURCE, Path(ncheck_checks.__file__).parent)
    said = "".join(path.read_text() for source in sources for path in source.rglob("*.py"))
    assert [reason for reason in REASONS if f'"{reason}"' not in said] == []


def test_why_something_was_not_done_is_said_in_chinese_where_it_is_known_as_a_whole() -> None:
    blocker = Blocker("unreachable", ("gpu01",), code="NC111")
    with speaking("zh"):
        assert why("no bond") == "没有 bond"
        assert why("fix NC111 first", (blocker,)) == "先修复 NC111"
        assert why("fix NC402 first", (blocker,)) == "fix NC402 first"
        assert why("n1 said: no bond\x1b[2J") == "n1 said: no bond"
    assert why("fix NC111 first", (blocker,)) == "fix NC111 first"


def test_no_entry_is_empty_or_english_or_loses_a_value() -> None:
    def places(text: str) -> list[str]:
        return sorted(str(name) for _, name, _, _ in string.Formatter().parse(text) if name is not None)

    assert [text for text, chinese in entries().items() if not chinese] == []
    assert {text for text, chinese in entries().items() if text == chinese} == SAME
    assert [text for text, chinese in entries().items() if places(text) != places(chinese)] == []


def test_chinese_has_its_own_punctuation_and_a_space_beside_latin_words() -> None:
    cramped = re.compile(r"[一-鿿][A-Za-z0-9]|[A-Za-z0-9][一-鿿]|[一-鿿] ?[,;:()]|[,;:()] ?[一-鿿]")
    assert [chinese for chinese in entries().values() if cramped.search(chinese)] == []


def lines_of(report: Report, form: str, columns: int = 0, language: str = "zh") -> list[str]:
    """Return what is printed on a terminal with UTF-8, of findings that have their titles, as those of a run."""
    titles = {check.code: check.title for check in load_checks().listed}
    findings = tuple(replace(one, title=titles[one.code]) for one in report.findings)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with speaking(language):
        show(replace(report, findings=findings), form, stream, {"COLUMNS": str(columns)} if columns else {})
    return stream.buffer.getvalue().decode().splitlines()


def test_a_report_says_in_chinese_what_it_says_by_itself_and_leaves_messages_and_commands(
    reports: dict[str, Report],
) -> None:
    assert lines_of(reports["host_key_changed"], "console") == [
        "✗ 未就绪：node01：主机密钥变了；修复后启动方案可用",
        "  ncheck 0.1.0 · 4 个节点：node[01-04]，连上 3 个",
        "",
        "✗ 错误 NC118 host-key-changed  node01",
        "  主机密钥变了",
        (
            "  node01 shows another host key than ~/.ssh/known_hosts line 12 has: reinstalled, or not the host it says "
            "it is"
        ),
        "    known: ssh-ed25519 SHA256:u9bXkV4nJ0aQh7yC2mYJtE5hP3oWz8rL1sD6fG7hJ9k",
        "    shown: ssh-ed25519 SHA256:Zk2LmN8pQrS4tUvW6xYz0aBcD1eFgH3iJkL5mNoP7qR",
        "  → 在 node01 上查看：cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -",
        "",
        "  node01  NC118 主机密钥变了，连不上，其他检查都没有运行",
        "  其余 3 个节点正常",
        "",
        "✗ SSH         1 个错误：node01 上的 NC118",
        "✓ 版本        3 个节点相同：NCCL 2.21.5，Open MPI 4.1.6",
        "✓ 网络        NCCL 用 bond0",
        "✓ InfiniBand  24 个端口 Active，400 Gb/s",
        "✓ GPU         3 个节点相同：8 x NVIDIA H100 80GB HBM3，驱动 550.54.15",
        "",
        "用 mpirun 启动：",
        reports["host_key_changed"].plan.lines["mpirun"],
        "  NCCL_SOCKET_IFNAME：docker0 and bond0 have addresses; only bond0 reaches every node",
        "",
        "1 个错误，0 个警告，1 个连带问题 · 3.2 秒 · -v 显示全部",
        "详细说明：ncheck explain NC118；放行：--ignore NC118=node01",
        "退出码 1：以上问题算作失败（--fail-on error,unknown）",
        "✗ 未就绪：node01：主机密钥变了；修复后启动方案可用",
    ]


def test_one_line_a_finding_has_the_title_before_the_message(reports: dict[str, Report]) -> None:
    assert lines_of(reports["host_key_changed"], "concise") == [
        (
            "node01: NC118 host-key-changed: 主机密钥变了：node01 shows another host key than ~/.ssh/known_hosts line "
            "12 has: reinstalled, or not the host it says it is [错误, 查看]"
        ),
        "node01: NC001 node-not-reached: 节点连不上：node01 was not reached: host-key-changed [连带, 修复]",
        "1 个错误，0 个警告，1 个连带问题；1 个有修复命令，1 个有查看命令；用 -o console 显示",
        "ncheck 0.1.0 · 4 个节点：node[01-04]，连上 3 个",
        "未就绪：node01：主机密钥变了；修复后启动方案可用",
    ]


def test_the_table_is_aligned_by_the_columns_of_a_terminal(reports: dict[str, Report]) -> None:
    assert lines_of(reports["mixed_nccl"], "table") == [
        "节点    状态  GPU                        驱动       NCCL    网卡  RAIL  带宽  最严重的问题",
        "node01  就绪  8 x NVIDIA H100 80GB HBM3  550.54.15  2.21.5  -     8/8   -     -",
        (
            "node02  警告  8 x NVIDIA H100 80GB HBM3  550.54.15  2.21.5  -     8/8   -     "
            "NC402 InfiniBand 端口对端没有设备"
        ),
        "node03  就绪  8 x NVIDIA H100 80GB HBM3  550.54.15  2.21.5  -     8/8   -     -",
        ("node04  失败  8 x NVIDIA H100 80GB HBM3  550.54.15  2.18.3  -     8/8   -     NC201 各节点 NCCL 版本不一致"),
        "ncheck 0.1.0 · 4 个节点：node[01-04]",
        "未就绪：node04：各节点 NCCL 版本不一致；1 个警告；修复后启动方案可用",
    ]


@pytest.mark.parametrize("form", ["console", "verbose"])
def test_no_line_is_wider_than_the_terminal_but_what_is_to_be_copied(reports: dict[str, Report], form: str) -> None:
    wide = [line for line in lines_of(reports["host_key_changed"], form, 60) if cell_len(line) > 60]
    copied = ("  → 在 node01 上查看：cat ", f"{' ' * 14}/opt/conda/lib", "mpirun -np 32 ")
    assert [line for line in wide if not line.startswith(copied)] == []


def test_a_page_names_its_language_and_is_ascii(reports: dict[str, Report]) -> None:
    (page,) = ("\n".join(lines_of(reports["mixed_nccl"], "html")),)
    assert '<html lang="zh">' in page
    assert page.isascii()
    assert "".join(f"&#{ord(char)};" for char in "启动方案") in page
    assert "已复制".encode("ascii", "backslashreplace").decode() in page


@pytest.mark.parametrize("form", ["json", "junit", "nagios", "github", "openmetrics", "slurm", "kubernetes"])
def test_what_programs_read_is_english(reports: dict[str, Report], form: str) -> None:
    for report in (reports["host_key_changed"], reports["mixed_nccl"]):
        assert lines_of(report, form) == lines_of(report, form, language="en")


def test_the_list_of_checks_has_chinese_titles() -> None:
    stream = io.StringIO()
    with speaking("zh"):
        print_list([check for check in load_checks().listed if check.code in ("NC001", "NC520")], stream, {})
    assert stream.getvalue().splitlines() == [
        "未能检查  --select NC0",
        "  NC001 node-not-reached 错误    节点连不上",
        "",
        "GPU  --select NC5",
        "  NC520 gpu-unusable     错误    GPU 掉卡、卡死或需要重置",
        "",
        "共 2 项检查。查看说明：ncheck explain CODE",
    ]


def test_the_history_has_a_chinese_table() -> None:
    fault = Seen("NC402", "ib-port-polling", "error", ("b",), "mlx5_5 has no link", hardware=True)
    noon = 43_200.0
    runs = [
        Entry(noon, "check", nodes={"good": ("a",), "bad": ("b",)}, checks=("NC402",), findings=(fault,)),
        Entry(noon + 1, "check", nodes={"good": ("a",), "unreached": ("b",)}, checks=("NC402",)),
    ]
    with speaking("zh"):
        lines = as_text(past_of(runs, ()), frozenset()).splitlines()
    assert lines[0].endswith(" 的 2 次运行，2 个节点")
    assert lines[1:] == [
        "",
        "节点",
        "节点  运行  有问题  连不上  现在    故障，最多的在前",
        "b     2     1       1       连不上  NC402 ib-port-polling（最近 1970-01-01）",
        "a     2     0       0       正常",
    ]


@pytest.mark.parametrize(
    ("wanted", "environ", "language"),
    [
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("zh", {}, "zh"),
        ("auto", {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("auto", {"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ("auto", {"LC_ALL": "", "LC_MESSAGES": "zh_SG", "LANG": "C"}, "zh"),
        ("auto", {"LANG": "zh_TW.UTF-8"}, "en"),
        ("auto", {"LANG": "de_DE.UTF-8"}, "en"),
        ("auto", {}, "en"),
    ],
)
def test_auto_is_the_language_of_the_locale(wanted: str, environ: dict[str, str], language: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="gb18030")
    assert language_of(wanted, environ, stream) == (language, "")


def ncheck_run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    replayed = [sys.executable, "-m", "ncheck", *words]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "NCHECK_"))}
    return subprocess.run(replayed, capture_output=True, text=True, check=False, env={**kept, **environ})


def test_a_terminal_without_chinese_characters_gets_english_and_the_reason() -> None:
    done = ncheck_run("explain", "NC520", PYTHONIOENCODING="latin-1", LANG="zh_CN", NCHECK_LANG="auto")
    assert done.stdout == ncheck_run("explain", "NC520").stdout
    assert (done.returncode, done.stderr) == (
        0,
        (
            "ncheck: --lang zh: the encoding iso8859-1 lacks its characters, so this is in English; to see them, on a "
            "terminal with UTF-8: export LC_ALL=C.UTF-8\n"
        ),
    )


def test_the_page_of_a_check_and_the_cause_in_a_log_have_chinese_words(tmp_path: Path) -> None:
    english, chinese = (ncheck_run("explain", "NC402", NCHECK_LANG=lang).stdout for lang in ("en", "zh"))
    page = english.replace("*error, InfiniBand and RoCE*", "*错误，InfiniBand 与 RoCE*")
    assert chinese == page.replace("**An InfiniBand port has no link partner**", "**InfiniBand 端口对端没有设备**")
    log = tmp_path / "job.log"
    log.write_text("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n")
    done = ncheck_run("triage", "--logs", str(log), "--lang", "zh")
    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        [
            "gpu_oom（把握 95%）：GPU 显存满了（rank 3）",
            "下一步：先修复这个问题（把握 85%）",
            "",
            f"  {log}:1  {log.read_text().strip()}",
            "  查看：nvidia-smi",
            "",
            "读了 1 个日志，共 1 行。",
        ],
    )


def test_what_came_of_an_earlier_report_is_said_in_chinese(reports: dict[str, Report]) -> None:
    problems = (
        EarlierProblem("NC118", "host-key-changed", ("node01",), remains=("node01",)),
        EarlierProblem("NC201", "nccl-version-differs", ("node02",), gone=("node02",)),
        EarlierProblem("NC402", "ib-port-polling", ("node09",), unlisted=("node09",)),
    )
    for again, line in (
        (problems, "3 个以前的问题中 1 个已消失"),
        ((), "以前的报告里没有失败项，所以全部检查了一遍"),
    ):
        report = replace(reports["host_key_changed"], again=LookedAgain("2026-11-27T08:00:00+00:00", again))
        lines = lines_of(report, "console", 200)
        assert lines[0] == f"✗ 未就绪：node01：主机密钥变了；修复后启动方案可用；{line}"
        with speaking("zh"):
            assert list(looked_again(report)) == ([] if not again else [
                ("2026-11-27 08:00:00+00:00 的 3 个问题中 1 个已消失；仍在：node01 上的 NC118 host-key-changed；"
                 "现在不在列表里：node09 上的 NC402 ib-port-polling；已消失：node02 上的 NC201 nccl-version-differs"),
            ])  # fmt: skip


def test_what_limits_a_wait_is_said_in_chinese() -> None:
    limit = WaitLimit("PyTorch", "init_process_group(timeout=)", 600)
    with speaking("zh"):
        assert sentence(limit) == (
            "10 min，由 init_process_group(timeout=) 设定（PyTorch）；只有迟到的 rank 最终能到，延长时间才有用"
        )
        assert sentence(replace(limit, seconds=None, needs=1980), works=True) == (
            "此处未知，由 init_process_group(timeout=) 设定（PyTorch）；工作约需 33 min；工作必须在时限内完成"
        )


def test_a_source_tree_has_no_catalogue_and_goes_on_in_english() -> None:
    tree = ":".join(str(CATALOGUE.parents[3] / name) for name in ("doctor", "checks"))
    done = ncheck_run("list", "NC9", "--lang", "zh", PYTHONPATH=tree, PYTHONDONTWRITEBYTECODE="1")
    assert done.stdout == ncheck_run("list", "NC9").stdout
    assert done.stderr == (
        "ncheck: --lang zh: a source tree has no catalogue, so this is in English; an installed ncheck has it\n"
    )


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    done = ncheck_run("list", "NC1", NCHECK_LANG="fr")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "ncheck: Invalid value for '--lang' (env var: 'NCHECK_LANG'): 'fr' is not one of 'en', 'zh', 'auto' "
            "(see ncheck list --help)\n"
        ),
    )
    done = ncheck_run("replay", str(FIXTURES / "port-polling"), NCHECK_LANG="fr")
    assert (done.returncode, done.stderr) == (2, "ncheck: NCHECK_LANG: expected one of en, zh, auto, not 'fr'\n")
