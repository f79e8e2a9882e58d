"""The command line: which command is meant, and that whatever goes wrong is one line and an exit code."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from pathlib import Path

import jsonschema
import pytest
from ncheck.cli.check import probe_settings
from ncheck.cli.examine import settings_of
from ncheck.cli.main import main
from ncheck.errors import EXIT_USAGE
from ncheck.settings import VARIABLES, Settings
from ncheck.settings.options import OPTIONS
from ncheck.version import __version__

from tests.commands import command_of, names


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Run a command line; return its exit code, its output and its errors."""
    code = main(args)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Run a command line that must be refused in one line; return the line."""
    code, out, err = told(capsys, *args)
    assert (code, out) == (EXIT_USAGE, "")
    assert err.startswith("ncheck: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()
    return err


def test_help_names_the_commands_of_this_version_and_no_later_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--help")
    assert code == 0
    assert sorted(names()) == [
        "allow",
        "bundle",
        "check",
        "completion",
        "demo",
        "diff",
        "explain",
        "help",
        "history",
        "init",
        "launch",
        "list",
        "local",
        "mcp",
        "plan",
        "predict",
        "probe",
        "read",
        "replay",
        "schema",
        "speedup",
        "ticket",
        "triage",
        "verdict",
        "version",
    ]
    assert [name for name in names() if f"\n  {name} " not in out] == ["help", "version"]  # hidden: -h, --version


@pytest.mark.parametrize(("words", "begin"), [
    (("-h",), "Usage: ncheck [OPTIONS] COMMAND"), (("help",), "Usage: ncheck [OPTIONS] COMMAND"),
    (("plan", "-h"), "Usage: ncheck plan "), (("help", "plan"), "Usage: ncheck plan "),
    (("nodes.txt", "-h"), "Usage: ncheck check "), (("version",), f"ncheck {__version__}\n"),
    (("--version",), f"ncheck {__version__}\n"),
])  # fmt: skip
def test_help_and_version_are_found_by_each_of_their_names(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], begin: str
) -> None:
    code, out, err = told(capsys, *words)
    assert (code, err, out.startswith(begin)) == (0, "", True)


def test_help_of_a_command_is_what_the_command_prints_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in names():
        assert told(capsys, "help", name) == told(capsys, name, "--help")


def test_help_of_no_command_says_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "help", "NC201")
    assert line.startswith("ncheck: no command is called 'NC201'; ncheck help lists them, ncheck list the checks (see ")


def options_of(*names: str) -> set[str]:
    """Return the options of these commands that are settings."""
    others = {"nodes", "config", "color", "verbose", "quiet", "dry_run", "recording"}
    return {param.name or "" for name in names for param in command_of(name).params} - others


def test_each_setting_has_an_option_and_each_option_is_a_setting() -> None:
    elsewhere = {"nodes_file", "local", "program"}
    assert options_of("check", "plan") == set(OPTIONS) - elsewhere


@pytest.mark.parametrize("name", ["check", "local", "probe", "plan", "launch", "replay"])
def test_whatever_measures_or_plans_can_be_forced(name: str) -> None:
    assert "force" in options_of(name)


def test_a_command_without_the_option_level_is_made_no_deeper_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCHECK_LEVEL", "acceptance")
    assert {name for name in names() if "level" in options_of(name)} == {"check", "local", "probe"}
    assert settings_of({"local": True, "level": None}).deadline == 300
    assert settings_of({"local": True}) == Settings(local=True)


def test_a_level_that_measures_nothing_is_no_probe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "--level quick measures nothing: remove it, or run ncheck check (see ncheck probe --help)"
    assert refused(capsys, "probe", "--level", "quick") == f"ncheck: {why}\n"
    monkeypatch.setenv("NCHECK_LEVEL", "quick")
    assert probe_settings(settings_of({"local": True, "level": None})).probe == "auto"


def test_what_a_level_turns_on_is_turned_off_by_an_option() -> None:
    with command_of("check").make_context("check", ["--level", "acceptance", "--no-storage-probe"]) as context:
        given = {name: context.params[name] for name in ("level", "storage_probe")}
    assert settings_of({**given, "local": True}).beside_level == ("storage-probe false",)


@pytest.mark.parametrize("port", ["0", "65536", "ssh", "-1", ""])
def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], port: str) -> None:
    line = f"ncheck: --port: expected a whole number from 1 to 65535, not '{port}'\n"
    assert refused(capsys, "-p", port) == line


@pytest.mark.parametrize("option", ["--width", "--deadline", "--connect-timeout", "--command-timeout"])
def test_a_time_or_width_of_nothing_is_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert option in refused(capsys, option, "0")


def test_a_misspelt_file_is_answered_with_the_file_that_is_near(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes.txt").write_text("node01\n")
    assert refused(capsys, "node.txt") == "ncheck: no such file or command: 'node.txt'; did you mean nodes.txt?\n"


@pytest.mark.parametrize(("typed", "meant"), [("chek", "check"), ("halp", "help"), ("versions", "version")])
def test_a_misspelt_command_is_answered_with_the_command_that_is_near(
    capsys: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    line = f"ncheck: no such file or command: '{typed}'; did you mean {meant}?\n"
    assert refused(capsys, typed, "nodes.txt") == line


def test_a_command_behind_its_options_is_told_its_place_and_an_option_of_another_command_is_no_misspelling(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refused(capsys, "--select", "NC1", "local").startswith(
        "ncheck: 'local' is a command, which comes first: ncheck local"
    )
    assert "; --probe is an option of ncheck check, local, probe " in refused(capsys, "launch", "--probe", "none")


def test_a_host_in_place_of_a_file_is_told_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "gpu-17.cluster")
    assert line == "ncheck: no such file or command: 'gpu-17.cluster'; to check a host by name: -H gpu-17.cluster\n"


def test_a_list_of_nodes_that_is_not_there_is_no_host(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = refused(capsys, "nodes.txt")
    assert line == "ncheck: no such file or command: 'nodes.txt'; write one host per line into it\n"


def test_a_file_in_a_folder_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'no/such/nodes.txt'" in refused(capsys, "no/such/nodes.txt")


@pytest.mark.parametrize("name", ["$(touch owned)", "`touch owned`", "a;touch owned", "a\x1b[2J\x1b]0;t\x07b", "a\nb"])
def test_a_name_with_shell_signs_or_escapes_runs_nothing_and_steers_no_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(capsys, name)
    refused(capsys, "-H", name)
    assert list(tmp_path.iterdir()) == []


def test_two_files_are_refused_and_a_program_needs_two_dashes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nodes = tmp_path / "nodes.txt"
    nodes.write_text("node01\n")
    assert "only one nodes file is allowed: unexpected argument 'more.txt'" in refused(capsys, str(nodes), "more.txt")
    for command in ("plan", "launch"):
        way = f"a program follows --, as in: ncheck {command} {nodes} -- python train.py (see ncheck {command} --help)"
        told_way = refused(capsys, command, str(nodes), "python", "train.py")
        assert told_way == f"ncheck: unexpected argument 'python': {way}\n"


@pytest.mark.parametrize("option", ["-p", "-i", "-l", "-F"])
def test_a_login_without_nodes_is_refused_because_this_machine_is_checked_without_ssh(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "nodes.txt").write_text("")
    value = {"-p": "10001", "-l": "ann"}.get(option, str(tmp_path / "nodes.txt"))
    line = refused(capsys, option, value)
    assert "no nodes are named, and this machine is checked without SSH; as in: ncheck nodes.txt" in line


@pytest.mark.parametrize(
    ("lists", "words", "how"),
    [
        (("nodes.txt",), (), "for the list in this folder: ncheck nodes.txt"),
        (("hostfile",), ("plan",), "for the list in this folder: ncheck plan hostfile"),
        ((), (), "for others: ncheck nodes.txt"),
    ],
)
def test_without_nodes_it_says_first_that_it_is_about_this_machine_alone(  # noqa: PLR0913, PLR0917  one row
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    lists: tuple[str, ...], words: tuple[str, ...], how: str,
) -> None:  # fmt: skip
    for variable in ("SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    for name in lists:
        (tmp_path / name).write_text("gpu01\ngpu02\n")
    given = words or ("--select", "NC601", "--probe", "none")
    _, out, err = told(capsys, *given)
    assert err.splitlines()[0] == f"ncheck: no nodes are named, so this is about this machine alone; {how}"
    if not words:
        assert "this machine alone" in out.splitlines()[0]
        _, _, err = told(capsys, "local", "--select", "NC601", "--probe", "none")
        assert "no nodes are named" not in err


def test_a_folder_in_place_of_a_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert str(tmp_path) in refused(capsys, str(tmp_path))


def test_an_empty_file_is_refused_and_no_green_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.txt"
    nodes.write_text("# nobody\n\n")
    assert str(nodes) in refused(capsys, str(nodes))


def test_a_file_that_is_no_text_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.bin"
    nodes.write_bytes(bytes(range(256)) * 8)
    refused(capsys, str(nodes))


def test_a_dangling_link_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").symlink_to(tmp_path / "gone")
    assert "nodes.txt" in refused(capsys, str(tmp_path / "nodes.txt"))


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_a_check_that_is_none_is_refused_with_what_is_near(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert "nccl-version-differs" in refused(capsys, "-H", "localhost", option, "nccl-version-difers")


def test_a_fail_on_word_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "errors" in refused(capsys, "-H", "localhost", "--fail-on", "errors")


def test_a_recording_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    refused(capsys, "replay", str(tmp_path))
    refused(capsys, "replay", str(tmp_path / "gone"))


@pytest.mark.parametrize("word", ["NC201", "nc201", "nccl-version-differs"])
def test_explain_prints_the_page_of_a_code_or_a_name(capsys: pytest.CaptureFixture[str], word: str) -> None:
    code, out, err = told(capsys, "explain", word)
    assert (code, err) == (0, "")
    assert out.startswith("# NC201 nccl-version-differs\n")
    assert all(f"\n## {heading}\n" in out for heading in ("What it finds", "Why it matters", "What to type"))


def test_explain_of_no_check_says_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean nccl-version-differs?" in refused(capsys, "explain", "nccl-versions-differ")
    assert "name one" in refused(capsys, "explain", "versions")


def test_list_prints_every_check_on_a_line_and_the_same_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    code, out, _ = told(capsys, "list")
    assert code == 0
    _, as_json, _ = told(capsys, "list", "-o", "json")
    rows = json.loads(as_json)
    assert {"code": "NC201", "name": "nccl-version-differs", "severity": "error", "topic": "Versions",
            "title": "The NCCL version differs between nodes"} in rows  # fmt: skip
    assert all(f"  {row['code']} {row['name']} " in out for row in rows)
    assert [row for row in rows if not any(row["title"] in line for line in out.splitlines())] == []


@pytest.mark.slow
def test_schema_prints_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "schema")
    assert code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(out))


def test_read_prints_what_a_saved_output_says_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "mpirun.txt"
    saved.write_bytes(b"mpirun (Open MPI) 4.1.6\n\nReport bugs to http://www.open-mpi.org/community/help/\n")
    code, plain, _ = told(capsys, "read", "versions", str(saved))
    assert code == 0
    assert "4.1.6" in json.dumps(json.loads(plain))
    assert told(capsys, "read", "versions", str(saved), "-o", "json") == (0, plain, "")


TOPO = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"


@pytest.mark.parametrize("words", [
    ("FILE",), ("topo", "FILE"), ("nvidia-smi", "topo", "-m", "FILE"), ("nvidia-smi topo -m", "FILE"),
])  # fmt: skip
def test_read_takes_a_kind_in_one_word_in_several_or_not_at_all(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    saved = tmp_path / "topo.txt"
    saved.write_text(TOPO)
    code, out, _ = told(capsys, "read", *(word.replace("FILE", str(saved)) for word in words), "-o", "json")
    record = json.loads(out)
    assert (code, record["kind"], record["gpus"]) == (0, "topo", 2)
    assert record["remarks"][0]["text"] == "worst hop of a ring over all 2 GPUs: NV4 (NVLink)"


@pytest.mark.parametrize("words", [(), ("-",), ("topo",), ("topo", "-"), ("nvidia-smi", "topo", "-m")])
def test_read_takes_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TOPO.encode("utf-16"))))
    code, out, _ = told(capsys, "read", *words)
    assert (code, json.loads(out)["gpus"]) == (0, 2)


def test_read_prints_text_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "topo.txt"
    saved.write_text(f"$ nvidia-smi topo -m\n{TOPO}$ mpirun --version\nmpirun (Open MPI) 4.1.6\n")
    assert told(capsys, "read", str(saved), "-o", "text") == (
        0,
        """topo: nvidia-smi topo -m (nvidia-smi topo -m)
  info     worst hop of a ring over all 2 GPUs: NV4 (NVLink)
  info     the matrix has no NIC: no RDMA device that nvidia-smi knows, or an old driver
  place on the PCIe bus not shown: GPU0, GPU1
  NVLink NV4: every two of 2 GPUs
  gpus: 2

versions: mpi (mpirun --version)
  mpi: Open MPI
  version: 4.1.6
""",
        "",
    )
    _, out, _ = told(capsys, "read", str(saved), "-o", "json")
    assert [part["part"] for part in json.loads(out)["more"]] == ["mpirun --version"]


def test_read_refuses_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "read", "ibstat", "gone.txt") == "ncheck: gone.txt: No such file or directory\n"


def test_read_refuses_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert str(tmp_path) in refused(capsys, "read", "ibstat", str(tmp_path))


def test_read_refuses_a_kind_that_is_none_and_names_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("text\n")
    assert "ibstat" in refused(capsys, "read", "ibstt", str(tmp_path / "out.txt"))


def test_read_takes_no_option_of_another_name_for_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--quiet" in refused(capsys, "read", "--quiet")
    assert "unknown kind" not in refused(capsys, "read", "--quiet")


def test_a_compressed_log_is_answered_with_how_to_unpack_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    packed = tmp_path / "job 1.log.gz"
    packed.write_bytes(gzip.compress(b"NCCL WARN"))
    answer = f"ncheck: {packed} is compressed; use: zcat '{packed}' | ncheck read log -\n"
    assert refused(capsys, "read", "log", str(packed)) == answer


def test_our_own_bug_is_exit_code_3_and_a_traceback_only_when_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by\x1b[2Jzero")

    monkeypatch.setattr(command_of("schema"), "callback", broken)
    code, out, err = told(capsys, "schema")
    assert (code, out) == (3, "")
    assert "ZeroDivisionError: by?[2Jzero (test_main.py:" in err
    assert "NCHECK_DEBUG=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("NCHECK_DEBUG", "1")
    debug = told(capsys, "schema")[2]
    assert "Traceback" in debug
    assert all(line.isprintable() for line in debug.split("\n"))


def test_whoever_ends_the_process_from_inside_cannot_make_it_green(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaves(*_: object) -> None:
        raise SystemExit(0)  # as a library or a plug-in might

    monkeypatch.setattr(command_of("schema"), "callback", leaves)
    assert told(capsys, "schema")[0] == 3


def test_a_file_called_like_a_command_is_read_by_its_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list").write_text("# nobody\n")
    assert "./list" in refused(capsys, "./list")


def test_an_interrupt_is_exit_code_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_of("schema"), "callback", interrupted)
    assert told(capsys, "schema") == (130, "", "ncheck: interrupted\n")


@pytest.mark.parametrize("size", [2**20, 3 * 2**30])
def test_read_loads_no_more_than_it_can_hold(capsys: pytest.CaptureFixture[str], tmp_path: Path, size: int) -> None:
    sparse = tmp_path / "job.log"
    with sparse.open("wb") as file:
        file.truncate(size)
    if size < 2**21:
        assert told(capsys, "read", "log", str(sparse))[0] == 1  # nothing in it can be read
    else:
        why = f"is larger than 64 MiB; to read its end: tail -c 64M {sparse} | ncheck read log -"
        assert refused(capsys, "read", "log", str(sparse)) == f"ncheck: {sparse} {why}\n"


def test_read_ends_where_a_file_never_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "/dev/zero is larger than 8 MiB" in refused(capsys, "read", "ibstat", "/dev/zero")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refused(capsys, "read", "log", str(pipe)) == f"ncheck: {pipe}: is a pipe that no process writes to\n"


def test_read_waits_for_a_pipe_that_is_written_to(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    text = b"ssh: Could not resolve hostname node07: Name or service not known\n"

    def write() -> None:
        os.write(writer, text)
        os.close(writer)

    threading.Timer(0.2, write).start()
    code, out, _ = told(capsys, "read", "log", str(pipe))
    os.close(reader)
    assert (code, json.loads(out)["cause"]) == (0, "dns_failure")


def test_an_unknown_option_leads_to_ours_and_never_to_a_dangerous_one(capsys: pytest.CaptureFixture[str]) -> None:
    hints = {
        "check": {
            "--porrt": "; did you mean --port?", "--selct": "; did you mean --select?",
            "--conn": "; did you mean --connect-timeout?", "--loudly": "",
            "--format": "; use -o FORMAT", "--output": "; use -o FORMAT=FILE", "--json": "; use -o json",
            "--html": "; use -o html=FILE", "--timeout": "; use --deadline S", "--host": "; use -H node01,node02",
            "--hostfile": "; use the file alone, as in: ncheck nodes.txt", "--key": "; use -i KEY",
            "--password": "; use a key: ncheck never asks for a password (-i KEY)",
            "--logs": "; --logs is an option of ncheck bundle, triage",
            "--for": "; --for is an option of ncheck launch, plan",
            "-np": "; --slots is an option of ncheck launch, plan, predict, probe, replay",
            "-hostfile": "; use the file alone, as in: ncheck nodes.txt", "-host": "; use -H node01,node02",
            "--become": "; use --sudo", "--limit": "; use -H node01,node02", "-C": "; use --dry-run",
            "-V": "; use -v",
            "--forc": "", "--sud": "", "--accept-new-hostkeys": "",
        },
        "plan": {"-np": "; use --slots N (ranks per node)", "--json": "; use -o json"},
        "launch": {"--html": "", "--format": ""},
        "triage": {"--hostfile": "; use the file alone, as in: ncheck triage nodes.txt", "--ra": "", "--nativ": ""},
        "list": {"--format": "; use -o console or -o json", "--port": "", "--force": ""},
        "read": {"--format": "; use -o text or -o json", "--deadline": ""},
    }  # fmt: skip
    for command, of_command in hints.items():
        for option, hint in of_command.items():
            line = f"ncheck: no such option: '{option}'{hint} (see ncheck {command} --help)\n"
            assert refused(capsys, command, option) == line


def test_h_with_nodes_is_no_help_behind_which_a_job_starts(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("-h", "nodes.txt"), ("-h", "node01", "-v")):
        assert refused(capsys, *words).startswith(
            "ncheck: -h shows the help; nodes are named as in: ncheck nodes.txt, "
        )
    assert refused(capsys, "-hnode01").startswith("ncheck: no such option: '-hnode01'")
    assert told(capsys, "-V")[0] == told(capsys, "-h", "plan")[0] == 0
    assert refused(capsys, "-V", "nodes.txt").startswith("ncheck: no such option: '-V'; use -v ")


def test_a_launcher_is_named_by_either_word(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("plan", "launch"):
        for word in ("--for", "--with"):
            assert f"{word}" in (line := refused(capsys, command, "-H", "a", word, "nonsense"))
            assert "'nonsense' is not one of 'mpirun'" in line


def test_a_list_may_be_of_a_topic_or_of_codes(capsys: pytest.CaptureFixture[str]) -> None:
    def codes(*words: str) -> list[str]:
        return [one["code"] for one in json.loads(told(capsys, "list", *words, "-o", "json")[1])]

    every = codes()
    assert codes("NC2") == codes("versions") == codes("VERSIONS") == [code for code in every if code[:3] == "NC2"]
    assert codes("NC4") == codes("infiniband") == codes("ib")
    assert codes("NC201", "nccl-version-differs", "NC402") == ["NC201", "NC402"]
    assert told(capsys, "list", "NC201")[1].endswith("1 check. Explain one: ncheck explain CODE\n")
    assert refused(capsys, "list", "nonsense").startswith("ncheck: no check is called 'nonsense': ")


def test_what_cannot_be_read_is_not_clean_and_an_unknown_kind_lists_all(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("hello world\n")
    code, out, err = told(capsys, "read", str(tmp_path / "words.txt"), "-o", "json")
    assert (code, json.loads(out)["kind"], err) == (1, "unknown", "")
    for words in (("nonsense", str(tmp_path / "words.txt")), ("nonsense",)):
        assert "choose from ras, " in refused(capsys, "read", *words).replace("choose from: ", "choose from ")


def test_quiet_prints_the_answer_and_nothing_else_but_that_nothing_was_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fixture = str(Path(__file__).parents[3] / "fixtures" / "mixed-nccl")
    code, out, err = told(capsys, "replay", fixture, "-q")
    assert (code, len(out.splitlines()), err) == (1, 1, "")
    _, _, err = told(capsys, "replay", fixture, "-q", "--history", str(tmp_path / "db"))
    assert err == "ncheck: history: not in the history: the recording does not say when it was made\n"
    assert refused(capsys, "replay", fixture, "-q", "-v").startswith("ncheck: -v and -q contradict each other: ")


def test_a_plan_may_be_from_a_recording_and_says_where_to_type_a_fix(capsys: pytest.CaptureFixture[str]) -> None:
    fixture = str(Path(__file__).parents[3] / "fixtures" / "mixed-nccl")
    code, out, err = told(capsys, "plan", "--from", fixture)
    assert (code, out) == (1, "")
    assert "ncheck:   fix on gpu03: sudo apt-get install libnccl2=" in err
    code, out, _ = told(capsys, "plan", "--from", fixture, "--with", "torchrun", "--force", "--", "python", "own.py")
    assert (code, "torchrun " in out) == (0, True)
    assert told(capsys, "plan", "--from", fixture, "--force") == told(capsys, "replay", fixture, "plan", "--force")
    assert refused(capsys, "plan", "nodes.txt", "--from", fixture).startswith(
        f"ncheck: --from {fixture} names the nodes"
    )


def test_an_error_names_where_the_value_came_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*VARIABLES, "NCHECK_CONFIG", "SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    key, config = "is not a file; to list your keys: ls ~/.ssh", "is not a file; to list the files: ls ~/.ssh"
    number = "expected a whole number from"
    slurm = "not in an allocation (SLURM_JOB_NODELIST is not set); start one: salloc -N 2 ncheck"
    variables = {
        ("NCHECK_IDENTITY", "/no/key"): f"NCHECK_IDENTITY: /no/key {key}",
        ("NCHECK_PORT", "x"): f"NCHECK_PORT: {number} 1 to 65535, not 'x'",
        ("NCHECK_SSH_CONFIG", "/no/file"): f"NCHECK_SSH_CONFIG: /no/file {config}",
        ("NCHECK_VIA", "srun"): "NCHECK_VIA=srun uses no ssh login: remove --user, or log in by ssh with --via ssh",
        ("NCHECK_CONFIG", "/no/x.toml"): "NCHECK_CONFIG=/no/x.toml: no such file",
    }
    for (name, value), message in variables.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert refused(capsys, "-H", "a", "-l", "ada") == f"ncheck: {message}\n"
    with monkeypatch.context() as patch:
        patch.setenv("NCHECK_VIA", "srun")
        assert refused(capsys, "-H", "a") == f"ncheck: NCHECK_VIA=srun: {slurm} --via srun\n"
    files = {
        '[expect]\ngpus = "x"\n': f"[expect] gpus: {number} 0 to 1024, not 'x'",
        'identity = "/no/key"\n': f"identity: /no/key {key}",
        "slurm = true\n": f"slurm: {slurm} --slurm",
        'nodes = "/no/nodes.txt"\n': "nodes: /no/nodes.txt: no such file",
        'select = ["NC999"]\n': "select: no check is called 'NC999': ncheck list shows them all",
        'ignore = ["NC999=a"]\n': "ignore: no check is called 'NC999': ncheck list shows them all",
    }
    folder = tmp_path / "home" / "ncheck"
    folder.mkdir(parents=True)
    for text, message in files.items():
        Path("ncheck.toml").write_text(text)
        elsewhere = f"{text.split()[0]} is a file outside this folder; to trust what you found here: ncheck allow"
        assert refused(capsys) == f"ncheck: ncheck.toml: {elsewhere if '/no/' in text else message}\n"
        own = Path("ncheck.toml").rename(folder / "ncheck.toml")
        with monkeypatch.context() as patch:
            patch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
            assert refused(capsys) == f"ncheck: {own}: {message}\n"
    own.rename("ncheck.toml").write_text('transport = "openssh"\n')
    monkeypatch.setenv("PATH", "")
    line = "ncheck: ncheck.toml: transport=openssh: there is no ssh program on PATH; use --transport paramiko\n"
    assert told(capsys, "-q", "-H", "a") == (2, "", line)
