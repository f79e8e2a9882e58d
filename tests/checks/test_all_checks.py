"""Checks about checks: what every one of them owes, held for all that there are."""

from __future__ import annotations

import pkgutil
import re
import shlex
import subprocess
from collections import Counter
from importlib import import_module
from pathlib import Path

import ncheck
import ncheck_checks
import pytest
from ncheck.facts.learning import definition_of
from ncheck.model.check import PLAN
from ncheck.model.evidence import Command
from ncheck.model.finding import DO
from ncheck.steps.registry import checks_of
from ncheck.text import typable

from tests.lab.fixes import NOT_TYPED, TYPED
from tests.turns import REPEAT

from .watched import HOSTILE, OPTION, file_of_tests, fuzzed, watched

# A hostile text of a node, where it stands in no quotes.
ALIVE = (";PWNED", "$(P", "`P", "&P", "|P", ">P")

HEADINGS = ["## What it finds", "## Why it matters", "## What to type"]

# Where our checks of each hundred lie.
TOPICS = {
    "NC0": "ncheck", "NC1": "ssh", "NC2": "versions", "NC3": "network", "NC4": "infiniband", "NC5": "gpus",
    "NC6": "host", "NC7": "measured", "NC8": "ranks", "NC9": "expected",
}  # fmt: skip

# What a reader would have to replace.
PLACEHOLDERS = {
    "ADDRESS", "COMMAND", "DIR", "FILE", "HOST", "IMAGE", "KEY", "NAME", "NODE", "PATH", "PID", "PORT", "USER", "VALUE",
}  # fmt: skip

LOADS_A_DRIVER = ("NC533", "NC540")  # by a reboot: no GPU is broken, and nothing is lost

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
LAB = Path(__file__).parents[1] / "lab"

MODULES = [
    import_module(found.name)
    for found in pkgutil.walk_packages(ncheck_checks.__path__, "ncheck_checks.")
    if not found.ispkg
]  # fmt: skip
ALL = [check for module in MODULES for check in checks_of(module)]

# Every program that a fix or a page may begin with, by the Debian package that it comes from; a shell's own come first.
PROGRAMS = {
    word: package
    for package, words in {
        "sh": "echo export printf time ulimit unset",
        "ncheck": "ncheck",
        "bind9-dnsutils": "dig",
        "chrony": "chronyc",
        "clustershell": "clush",
        "coreutils": "cat chmod df du env head id ls mkdir nproc rm sleep sort tail tee timeout uname uptime",
        "debianutils": "which",
        "dnf": "dnf",
        "docker.io": "docker",
        "ethtool": "ethtool",
        "findutils": "find",
        "firewalld": "firewall-cmd",
        "git": "git",
        "grep": "grep",
        "hostname": "hostname",
        "ibverbs-utils": "ibv_devinfo",
        "infiniband-diags": "iblinkinfo ibnetdiscover ibportstate ibstat sminfo",
        "mft": "mlxfwmanager mlxlink",
        "iproute2": "dcb devlink ip ss",
        "iputils-ping": "ping",
        "iputils-tracepath": "tracepath",
        "dmidecode": "dmidecode",
        "iptables": "iptables",
        "kmod": "modinfo modprobe",
        "linux-cpupower": "cpupower",
        "libc-bin": "getent ldconfig ldd",
        "mawk": "awk",
        "mdadm": "mdadm",
        "mount": "mount swapon",
        "multipath-tools": "multipath",
        "netcat-openbsd": "nc",
        "nvidia-imex": "nvidia-imex-ctl",
        "nvidia-smi": "nvidia-smi",
        "nvme-cli": "nvme",
        "openmpi-bin": "mpirun ompi_info",
        "openssh-server": "sshd",
        "nvidia-cuda-toolkit": "nvcc",
        "openssh-client": "scp ssh ssh-add ssh-copy-id ssh-keygen ssh-keyscan",
        "nftables": "nft",
        "passwd": "chage chsh usermod",
        "amd-smi-lib": "amd-smi",
        "apt": "apt-get",
        "pciutils": "lspci setpci",
        "procps": "free ps sysctl",
        "psmisc": "fuser",
        "rsync": "rsync",
        "python3": "python3",
        "sed": "sed",
        "slurm-client": "salloc sbatch scancel scontrol sinfo squeue srun",
        "smartmontools": "smartctl",
        "sudo": "sudo",
        "systemd": "hostnamectl journalctl systemctl timedatectl",
        "traceroute": "traceroute",
        "ufw": "ufw",
        "util-linux": "dmesg findmnt lsblk lscpu",
        "zypper": "zypper",
    }.items()
    for word in words.split()
}


def commands(line: str) -> list[str]:
    """Return the program of each command in a shell line; variables set before it and sudo are passed over.

    One with its whole path, such as /opt/venv/bin/python3 of a job, is called by its own name.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found, expected = [], True
    for word in lexer:
        if set(word) <= set("();<>|&"):
            expected = not set(word) & set("<>")
        elif expected and not re.match(r"[A-Z_a-z]+=", word) and word != "sudo":
            found.append(word.rpartition("/")[2] if word.startswith("/") else word)
            expected = False
    return found


def test_there_are_checks_and_each_code_and_name_is_there_once() -> None:
    assert len(ALL) >= 25
    for words in ([check.code for check in ALL], [check.name for check in ALL]):
        assert [word for word, count in Counter(words).items() if count > 1] == []


def test_one_file_holds_one_check() -> None:
    assert [module.__name__ for module in MODULES if len(checks_of(module)) != 1] == []


def test_a_check_is_named_after_its_file_and_its_code_after_its_topic() -> None:
    assert [check.code for check in ALL if not re.fullmatch(r"NC\d{3}", check.code)] == []
    named = {check.name: f"{TOPICS[check.code[:3]]}.{check.name.replace('-', '_')}" for check in ALL}
    assert {check.name: check.module.removeprefix("ncheck_checks.") for check in ALL} == named


def test_a_code_that_was_retired_is_listed_in_the_changelog_and_never_used_again() -> None:
    _, _, removed = CHANGELOG.read_text().partition("- Codes, each now a case of another check: ")
    # "NC141 (NC140), NC226 (NC211), NC579": in brackets is what reports it now
    retired = re.findall(r"(?<!\()NC\d{3}", removed.partition("\n\n")[0])
    assert {*retired} >= {"NC141", "NC226", "NC338", "NC370", "NC579", "NC630", "NC631"}
    assert [check.code for check in ALL if check.code in retired] == []


def test_the_newest_version_of_the_changelog_is_this_one() -> None:
    versions = re.findall(r"^## \[(.+?)\]", CHANGELOG.read_text(), flags=re.MULTILINE)
    assert next(version for version in versions if version != "Unreleased") == ncheck.__version__


def test_a_page_has_a_title_and_the_three_headings_and_words_under_each() -> None:
    for check in ALL:
        title, *rest = check.page.strip().splitlines()
        assert (check.name, title) == (check.name, title.strip("# ."))
        assert (check.name, [line for line in rest if line.startswith("#")]) == (check.name, HEADINGS)
        parts = re.split(r"^## .*$", "\n".join(rest), flags=re.MULTILINE)[1:]
        assert all(part.strip() for part in parts), check.name


def test_a_page_ends_in_something_that_can_be_typed() -> None:
    ends = {check.name: re.findall(r"`([^`]+)`", check.page.partition(HEADINGS[2])[2]) for check in ALL}
    typed = {name for name, words in ends.items() for word in words if set(commands(word)[:1]) & PROGRAMS.keys()}
    assert ends.keys() - typed == set()


@pytest.mark.slow
def test_a_check_has_a_test_file_in_which_it_fires_and_one_healthy_case_at_least() -> None:
    assert [check.name for check in ALL if not file_of_tests(check).is_file()] == []
    assert [check.name for check in ALL if not watched(check).findings] == []
    assert [check.name for check in ALL if not watched(check).healthy] == []


def test_every_fix_is_one_line_whose_programs_exist() -> None:
    found = (finding for check in ALL for finding in watched(check).findings)
    fixes = {(finding.check, finding.fix) for finding in found if finding.kind != DO}
    words = {found: commands(found[1]) for found in fixes}
    assert [found for found in fixes if not words[found] or "\n" in found[1]] == []
    assert [(found, word) for found in fixes for word in words[found] if word not in PROGRAMS] == []


def test_what_is_to_be_typed_is_whole() -> None:
    """A reader fills in nothing, no command only changes the shell that it is typed in, and docker has an image."""
    for finding in (finding for check in ALL for finding in watched(check).findings if finding.kind != DO):
        words = shlex.split(finding.fix)
        assert not PLACEHOLDERS.intersection(words), finding
        assert not [word for word in words if re.search(r"<[a-z ]+>|\.\.\.", word)], finding
        assert words[:2] != ["docker", "run"], finding
        if finding.kind == "fix":
            assert words[0] not in ("export", "unset", "ulimit"), finding


def test_a_look_is_not_the_command_that_the_finding_was_read_from() -> None:
    """Ibstat alone prints all that it prints of one port."""
    for check in ALL:
        sources = [one for fact in check.facts if (found := definition_of(fact)) for one in found.sources]
        read = [one.argv for one in sources if isinstance(one, Command)]
        for look in (shlex.split(one.fix) for one in watched(check).findings if one.kind == "look"):
            typed = tuple(look[1:] if look[0] == "sudo" else look)
            assert not [argv for argv in read if typed == argv or argv == ("ibstat",) == typed[:1]], (check.code, look)


def test_a_fix_does_not_only_print() -> None:
    """Where the plan has a value for the variable that mends a finding, its fix becomes the command that sets it."""
    sets = {check.code for check in ALL if check.mended_by.startswith("NCCL_")}
    for finding in (finding for check in ALL for finding in watched(check).findings if finding.kind == "fix"):
        assert not finding.fix.startswith("ncheck plan") or (finding.fix == PLAN and finding.code in sets), finding


def test_what_is_no_command_is_a_sentence() -> None:
    sentences = [finding for check in ALL for finding in watched(check).findings if finding.kind == DO]
    assert {"NC111", "NC540", "NC602", "NC604", "NC605", "NC619", "NC627", "NC628"} <= {one.code for one in sentences}
    for one in sentences:
        verb, *rest = one.fix.split()
        assert (verb.isalpha() and verb.islower(), len(rest) > 3, one.fix[-1] == ".") == (True, True, False), one
        assert verb not in PROGRAMS, one


def test_every_fix_is_typed_in_the_lab_or_listed_with_the_reason_why_not() -> None:
    with_a_fix = {check.code for check in ALL if any(one.kind == "fix" for one in watched(check).findings)}
    assert {*TYPED, *NOT_TYPED} == with_a_fix
    assert TYPED.keys() & NOT_TYPED.keys() == set()
    for code, file in TYPED.items():
        assert code in (LAB / file).read_text(), (code, file)


def test_a_check_whose_fix_resets_a_gpu_says_so() -> None:
    resets = ("systemctl reboot", "nvidia-smi --gpu-reset")
    for check in ALL:
        fixes = [one.fix for one in watched(check).findings if one.kind == "fix"]
        resetting = [fix for fix in fixes if any(words in fix for words in resets)]
        if check.resets_gpu:
            assert (check.code, resetting) == (check.code, fixes)
        elif resetting:
            assert check.code in LOADS_A_DRIVER


@pytest.mark.slow
def test_a_shell_reads_every_fix() -> None:
    """One shell reads all and runs none, each in a function of its own; hostile texts of nodes are in many."""
    found = (one for check in ALL for one in (*watched(check).findings, *fuzzed(check)))
    fixes = sorted({one.fix for one in found if one.kind != DO})
    script = "\n".join(f"fix() {{\n{fix}\n}}" for fix in fixes)
    read = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False, timeout=60)
    assert (read.returncode, read.stderr) == (0, ""), (REPEAT, fixes)


def test_no_fix_runs_what_a_nodes_name_says() -> None:
    for fix in {finding.fix for check in ALL for finding in watched(check).hostile}:
        assert HOSTILE not in fix or "touch" not in commands(fix), fix


@pytest.mark.slow
def test_text_of_a_node_stands_in_quotes_in_a_fix_or_not_at_all() -> None:
    """Whatever text of a fact is hostile: a fix stays one line, and a shell gets that text as words."""
    for fix in {finding.fix for check in ALL for finding in fuzzed(check)}:
        assert typable(fix), (REPEAT, fix)
        for line in read_by_shells(fix):
            assert not [word for word in ALIVE if word in unquoted(line)], (REPEAT, fix)
            assert not [word for word in shlex.split(line) if word.startswith(OPTION)], (REPEAT, fix)


def read_by_shells(fix: str) -> list[str]:
    """Return the line that a shell reads, and the one that ssh hands to the shell of the other machine."""
    first, *words = shlex.split(fix)
    while first == "ssh" and words[:1] and words[0].startswith("-"):
        words = words[1 if words[0] == "-t" else 2 :]
    return [fix, " ".join(words[1:])] if first == "ssh" else [fix]


def unquoted(line: str) -> str:
    """Return what a shell reads of a line outside of quotes; of double quotes, what follows a $ or a `."""
    found, quote, escaped = [], "", False
    for place, char in enumerate(line):
        if escaped or (char == "\\" and quote != "'"):
            escaped = not escaped
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif not quote or (quote == '"' and (char in "$`" or line[place - 1] in "$`(")):
            found.append(char)
    return "".join(found)


def test_every_finding_says_something_of_some_node() -> None:
    for finding in (finding for check in ALL for finding in watched(check).findings):
        assert finding.message.strip() == finding.message != "", finding
        assert finding.nodes != (), finding
