"""A settings file that was only found runs no code before the user has approved it, in this place with this content."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.errors import SettingsError
from ncheck.settings import JobEnvironment, Settings, make_settings
from ncheck.settings.approval import covered

TOML = """
port = 7
setup = "touch /tmp/pwned"
rsh = "sh -c 'touch /tmp/pwned'"
sudo = true
ssh-config = "/dev/null"
[host."n[1-2]"]
python = "./evil"
"""

COMMANDS = "setup, rsh, sudo, ssh-config, python of n[1-2]"

WARNING = f"ncheck.toml: ignored: {COMMANDS} (in a file that was only found they count after: ncheck allow)"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with an ncheck.toml in it, of a user with an empty home."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    (folder / "ncheck.toml").write_text(TOML)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


def made(folder: Path, **flags: object) -> tuple[Settings, list[str]]:
    warnings: list[str] = []
    return make_settings(flags, os.environ, folder, warnings.append), warnings


def test_a_found_file_runs_nothing_and_its_other_keys_are_used(here: Path) -> None:
    assert made(here) == (Settings(port=7), [WARNING])


def test_a_file_named_by_the_user_is_used_whole(here: Path) -> None:
    settings, warnings = made(here, config="ncheck.toml")
    assert (settings.sudo, settings.environment.setup, warnings) == (True, "touch /tmp/pwned", [])


def test_an_approval_is_for_this_content_in_this_place(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["allow"]) == 0
    assert capsys.readouterr().out == (
        "setup = touch /tmp/pwned\nrsh = sh -c 'touch /tmp/pwned'\nsudo = True\nssh-config = /dev/null\n"
        f"python of n[1-2] = ./evil\napproved in {here}/ncheck.toml, until the file changes\n"
    )
    settings, warnings = made(here)
    assert (settings.environment, warnings) == (
        JobEnvironment(setup="touch /tmp/pwned", rsh="sh -c 'touch /tmp/pwned'"),
        [],
    )
    elsewhere = here.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "ncheck.toml").write_text(TOML)
    assert made(elsewhere) == (Settings(port=7), [WARNING])
    (here / "ncheck.toml").write_text(TOML + "# changed\n")
    assert made(here) == (Settings(port=7), [WARNING])


def test_an_approval_covers_the_ssh_configuration_and_what_it_includes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, more = here / "sshc", here / "more"
    (here / "ncheck.toml").write_text('ssh-config = "sshc"')
    config.write_text(f"Include {here}/mor*\nHost n1\n  Port 7\n")
    more.write_text("Host n2\n")
    warning = WARNING.replace(COMMANDS, "ssh-config")

    assert main(["allow"]) == 0
    assert made(here) == (Settings(ssh_config=str(config)), [])
    for file in (config, more):
        before = file.read_text()
        file.write_text(before + "ProxyCommand touch /tmp/pwned\n")
        assert made(here) == (Settings(), [warning])
        file.write_text(before)
        assert made(here) == (Settings(ssh_config=str(config)), [])
    (here / "more2").write_text("ProxyCommand touch /tmp/pwned\n")
    assert made(here) == (Settings(), [warning])

    config.write_text("Include ${EVIL}\n")
    capsys.readouterr()
    assert main(["allow"]) == 2
    words = "ssh-config: the files that it includes are unknown or unreadable, so it cannot be approved"
    assert capsys.readouterr().err == f"ncheck: {words}\n"


FORMS = (
    "Include {f}", '"Include" {f}', "\rInclude {f}", "Include '{f}'", 'Include "{f}"', 'Inc"lude" {f}',
    "=Include {f}", "\t = include={f}", '"" Include {f}', "Include ~/none {f}", "Include '/none' \"{f}\" ~/none",
    "Include = {f}\f", '#it"s\nInclude {f}', "Host *\n Include /none\t{f} # {f}2", "Match all\nInclude {d}/m?re",
    "Include {d}/m\\ore", "Include {d}/[[:lower:]]ore",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_include_reads_what_the_approval_does_not_cover(
    form: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ssh itself says that it reads the file; then the file changes."""
    home, config, more = pwd.getpwuid(os.getuid()).pw_dir, here / "sshc", here / "more"
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_STATE_HOME", str(here.parent / "state"))
    config.write_text(form.format(f=more, d=here) + "\n")
    (here / "ncheck.toml").write_text('ssh-config = "sshc"')
    more.write_text("Port 7\n")
    asked = subprocess.run(["ssh", "-G", "-F", str(config), "n1"], capture_output=True, text=True, check=True)
    assert "port 7\n" in asked.stdout

    if main(["allow"]) == 0:
        assert made(here) == (Settings(ssh_config=str(config)), [])
    else:
        assert form.count("[") + form.count("\\")
    more.write_text("ProxyCommand touch /tmp/pwned\n")
    assert made(here) == (Settings(), [WARNING.replace(COMMANDS, "ssh-config")])


@pytest.mark.parametrize("form", ["../elsewhere", "~/.ssh/../elsewhere", "~/.ssh/sub/../../elsewhere", "{}/elsewhere"])
def test_only_what_lies_below_the_users_own_folder_is_left_out(form: str, tmp_path: Path) -> None:
    (tmp_path / ".ssh/sub").mkdir(parents=True)
    (tmp_path / "config").write_text(f"Include {form.format(tmp_path)} own\n")

    def now() -> bytes | None:
        return covered(b"", str(tmp_path / "config"), str(tmp_path))

    before = now()
    (tmp_path / ".ssh/own").write_text("Port 7")
    assert now() == before is not None
    (tmp_path / "elsewhere").write_text("Port 7")
    assert now() not in (before, None)


def test_approvals_are_the_users_own(here: Path) -> None:
    main(["allow"])
    main(["allow", str(here / "ncheck.toml")])
    notes = Path(os.environ["HOME"]) / ".local/state/ncheck/allowed"
    assert notes.stat().st_mode & 0o777 == 0o600
    assert len(notes.read_text().splitlines()) == 1
    notes.chmod(0o666)
    assert made(here)[1] == [WARNING]


def test_the_file_in_the_users_configuration_is_used_where_the_folder_has_none(here: Path) -> None:
    own = Path(os.environ["HOME"]) / ".config/ncheck"
    own.mkdir(parents=True)
    (own / "ncheck.toml").write_text("setup = 'module load nccl'")
    assert made(own.parent) == (Settings(environment=JobEnvironment(setup="module load nccl")), [])
    assert made(own) == (Settings(environment=JobEnvironment(setup="module load nccl")), [])
    assert made(here) == (Settings(port=7), [WARNING])


def test_the_warning_is_one_line_and_the_run_goes_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert "pwned" not in out
    assert err == f"ncheck: {WARNING}\n"
    assert here.is_dir()


def test_a_found_pipe_is_not_waited_for(here: Path) -> None:
    (here / "ncheck.toml").unlink()
    os.mkfifo(here / "ncheck.toml")
    with pytest.raises(SettingsError, match=r"ncheck\.toml: it is not a file; to run without it: --config none"):
        made(here)


def test_there_must_be_something_to_approve(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "ncheck.toml").write_text("port = 7")
    assert main(["allow"]) == 2
    assert main(["allow", "gone.toml"]) == 2
    assert capsys.readouterr().err == (
        "ncheck: ncheck.toml: it has no key that needs an approval\nncheck: gone.toml: no such file\n"
    )


def test_a_found_file_names_no_file_that_is_written_or_opened_elsewhere(here: Path) -> None:
    inside = '\nnodes = "hosts.txt"\nidentity = "key"\nrequirements = "req.txt"\n'
    outside = '\nnodes = "../hosts.txt"\nidentity = "link"\nrequirements = "../req.txt"\n'
    for name in ("hosts.txt", "key", "req.txt"):
        (here / name).write_text("torch\n")
    (here.parent / "req.txt").write_text("torch\n")
    (here / "link").symlink_to("/etc/passwd")

    def ignored(text: str) -> list[str]:
        (here / "ncheck.toml").write_text(text)
        return [one.partition(" (")[0] for one in made(here)[1]]

    assert ignored(inside) == []
    assert made(here)[0].identity == str(here / "key")
    assert ignored('history = "h.db"' + inside) == ["ncheck.toml: ignored: history"]
    assert ignored('nodes = "-"') == []
    for row in outside.split("\n")[1:-1]:
        (here / "ncheck.toml").write_text(row)
        with pytest.raises(SettingsError, match=f"ncheck.toml: {row.split()[0]} is a file outside this folder"):
            made(here)
    assert main(["allow"]) == 0
    assert made(here)[0].requirements == str(here / "../req.txt")
    (here / "ncheck.toml").write_text('history = "h.db"')
    assert main(["allow"]) == 0
    assert made(here) == (Settings(history=str(here / "h.db")), [])


def test_what_a_found_file_makes_milder_is_in_the_headline(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "ncheck.toml").write_text('fail-on = "never"\nselect = ["NC201"]\nignore = ["NC305=n[1-2]", "NC304"]\n')
    named = "fail-on never, select NC201, ignore NC305=n[1-2],NC304"
    assert made(here)[0].run.milder == ("fail-on never", "select NC201", "ignore NC305=n[1-2],NC304")
    assert main(["check", "-H", "127.0.0.1", "-p", "1", "-q"]) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        f"? Not verified: 127.0.0.1: unreachable (refused); {named} by the ncheck.toml of this folder"
    )
    monkeypatch.setenv("NCHECK_FAIL_ON", "error")
    assert made(here, select=("NC1",))[0].run.milder == ("ignore NC305=n[1-2],NC304",)
    assert made(here, config="ncheck.toml")[0].run.milder == ()
