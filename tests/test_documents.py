"""What README and CHANGELOG say is so."""

from __future__ import annotations

import io
import re
from pathlib import Path

import click
from ncheck.cli.main import commands
from ncheck.demo import run
from ncheck.observer import Silent
from ncheck.pipeline import replay
from ncheck.registry import load_checks
from ncheck.report import show
from ncheck.settings import Settings
from ncheck.settings.file import read_settings_file

TREE = Path(__file__).parents[1]
README = (TREE / "README.md").read_text(encoding="utf-8")


def known_options() -> set[str]:
    """Return every option of every command."""
    context = click.Context(commands)
    found = {"--help", "--version"}
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command
        found.update(word for option in command.params for word in (*option.opts, *option.secondary_opts))
    return found


def test_every_option_that_readme_names_is_there() -> None:
    ours = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    lines = [line for line in ours.splitlines() if not re.search("pip install|horovodrun", line)]
    # `--connect-timeout 15`
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines)))
    assert named - known_options() == set()


def test_every_option_of_check_is_in_readme() -> None:
    check = commands.get_command(click.Context(commands), "check")
    assert check
    options = {word for option in check.params for word in option.opts if word.startswith("-")}
    short = {"--port", "--user", "--config", "--color"}  # -p and -l stand for the first two
    assert {word for word in options - short if word not in README} == set()


def test_every_command_that_readme_names_is_there() -> None:
    # ncheck replay trouble/
    named = set(re.findall(r"^ +(?:python3 )?ncheck(?:\.pyz)? ([a-z]+)(?: |$)", README, re.MULTILINE))
    assert named <= set(commands.list_commands(click.Context(commands)))
    assert {"replay", "explain", "list"} <= named


def without_what_varies(text: str) -> str:
    """Return a demo's report without its free port, its time, and the counts that a new check changes."""
    # nothing listens on its port 46351  ...  51 checks could not tell  ...  276 passed · 0.1 s
    varying = r"port \d{4,5}|-p \d{4,5}|\d+\.\d s$|\d+ (?=checks|more checks|verdicts|unknown|passed)"
    return re.sub(varying, "... ", text, flags=re.MULTILINE)


def test_the_demo_in_readme_is_what_the_demo_prints() -> None:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    show(run(Settings(), Silent()), "console", printed, {}, color=False)
    printed.seek(0)
    blocks = re.findall(r"^```\n(ncheck \d.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    assert [without_what_varies(block) for block in blocks] == [without_what_varies(printed.read())]


def test_what_readme_shows_of_a_recorded_cluster_is_what_its_replay_prints() -> None:
    # (`ncheck replay fixtures/one-way-and-hole`):
    shown = re.findall(r"fixtures/([\w-]+)`\)[^`]*^```\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    slow = "slow-node-and-rail"
    assert [name for name, _ in shown] == [slow, "one-way-and-hole", "docker0-and-veth", slow]
    for name, block in shown:
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        show(replay(str(TREE / "fixtures" / name), Settings(), Silent()), "console", printed, {}, color=False)
        printed.seek(0)
        assert block in printed.read()


def test_the_settings_file_in_readme_can_be_used(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "ncheck.toml").write_text(block)
    file = read_settings_file(None, {}, tmp_path)
    assert {"port", "setup", "ignore"} <= set(file.values)
    assert [nodes for nodes, _ in file.hosts] == ["node[01-04]"]


def test_every_check_is_in_the_changelog_under_its_code() -> None:
    text = " ".join((TREE / "CHANGELOG.md").read_text(encoding="utf-8").split())
    assert [check.code for check in load_checks().checks if f"{check.code} {check.name}" not in text] == []


def test_every_part_that_architecture_names_is_there() -> None:
    text = (TREE / "docs" / "architecture.md").read_text(encoding="utf-8")
    # | `doctor/ncheck/inventory/`, `hostlist.py` | which nodes | connect |
    named = set(re.findall(r"`((?:doctor|checks|tests|fixtures)/[\w./]*)`", text))
    assert {path for path in named if not (TREE / path).exists()} == set()
    assert len(named) > 10
