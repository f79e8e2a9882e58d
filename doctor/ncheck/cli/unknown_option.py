"""What to type in place of an option that a command does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import click

_FILE, _NAMES = "the file alone, as in: ncheck nodes.txt", "-H node01,node02"

# What people type who know other tools: the parameter of ours that it means, and what to type.
_MEANT = {
    "--json": ("-o", "-o json"),
    "--html": ("-o", "-o html=FILE"),
    "--format": ("-o", "-o FORMAT"),
    **dict.fromkeys(("--output", "--out", "--report"), ("-o", "-o FORMAT=FILE")),
    "--timeout": ("--deadline", "--deadline S"),
    **dict.fromkeys(
        ("--hostfile", "--machinefile", "--nodefile", "--nodes", "--inventory", "-f", "-hostfile", "-machinefile"),
        ("nodes", _FILE),
    ),
    **dict.fromkeys(("--host", "-host", "--hosts", "--nodelist", "--limit", "-w"), ("-H", _NAMES)),
    **dict.fromkeys(("--ssh-port", "-P"), ("--port", "-p PORT")),
    **dict.fromkeys(("--username", "--login", "--remote-user", "-u"), ("--user", "-l USER")),
    **dict.fromkeys(("--key", "--identity", "--identity-file", "--private-key"), ("-i", "-i KEY")),
    **dict.fromkeys(("--password", "--ask-pass", "-k"), ("-i", "a key: ncheck never asks for a password (-i KEY)")),
    **dict.fromkeys(("--parallel", "--forks", "--fanout", "--jobs", "-j"), ("--width", "--width N")),
    **dict.fromkeys(
        ("--np", "-np", "-n", "--nproc", "--nproc-per-node", "--nproc_per_node", "--ntasks-per-node", "--ppn"),
        ("--slots", "--slots N (ranks per node)"),
    ),
    **dict.fromkeys(("--launcher", "--mpirun", "--torchrun"), ("--for", "--for LAUNCHER")),
    **dict.fromkeys(("--interface", "--iface", "--nic"), ("--ifname", "--ifname NAME")),
    **dict.fromkeys(("--only", "--checks", "--tags", "-t"), ("--select", "--select CHECK")),
    **dict.fromkeys(("--skip", "--skip-tags", "--disable"), ("--ignore", "--ignore CHECK")),
    **dict.fromkeys(("--become", "-b"), ("--sudo", "--sudo")),
    **dict.fromkeys(("--check", "-C"), ("--dry-run", "--dry-run")),
    **dict.fromkeys(("--debug", "--details", "-V"), ("--verbose", "-v")),
}

# A misspelt word must not lead to what continues in spite of errors, trusts unknown hosts, becomes root, or can disturb
# a job.
_NEVER_PROPOSED = ("--force", "--accept-new-host-keys", "--sudo", "--native", "--ras")

_SHORTEST = 5  # characters of a prefix, with its dashes
_MOST_COMMANDS = 5


def typed(error: click.NoSuchOption, args: Sequence[str]) -> str:
    """Return the option as it was typed where other tools have it: "-np", of which click names the first letter."""
    name = error.option_name
    return next((word for word in args if word in _MEANT and word.startswith(name)), name)


def to_type_instead(name: str, context: click.Context | None) -> str:
    """Return "; use -o json", "; did you mean --port?", "; --logs is an option of ncheck triage", or ""."""
    if context is None:
        return ""
    own = _parameters(context.command)
    meant, words = _MEANT.get(name, (name, ""))
    if meant in own:
        offered = _formats(own[meant])
        line = words.replace("ncheck nodes", f"{context.command_path.removesuffix(' check')} nodes")
        return f"; use {line if words in offered else ' or '.join(offered) or line}"
    flags = [flag for flag in own if flag.startswith("--") and flag not in _NEVER_PROPOSED]
    others = [] if name in _NEVER_PROPOSED else list(_commands_with(meant, context))
    if 0 < len(others) <= _MOST_COMMANDS:  # it is no misspelt word
        return f"; {meant} is an option of ncheck {', '.join(others)}"
    near = [] if name in _MEANT else _near(name, flags)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _near(name: str, flags: list[str]) -> list[str]:
    from difflib import get_close_matches

    longer = [flag for flag in flags if len(name) >= _SHORTEST and flag.startswith(name)]
    return longer or get_close_matches(name, flags, cutoff=0.75)


def _formats(option: click.Parameter) -> list[str]:
    """Return what can be typed for an -o that takes some formats only."""
    known = isinstance(option.type, click.Choice) and "-o" in option.opts
    return [f"-o {form}" for form in cast("click.Choice[str]", option.type).choices] if known else []


def _parameters(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options of a command by each of their names; "nodes" is its list of nodes."""
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    lists = {"nodes": one for one in command.params if one.name in {"nodes", "paths"}}  # noqa: B035  at most one
    return {flag: one for one in options for flag in one.opts} | lists


def _commands_with(flag: str, context: click.Context) -> Iterator[str]:
    """Yield the names of the commands that have this option."""
    root = cast("click.Group", context.find_root().command)
    for word in root.list_commands(context):
        command = root.get_command(context, word)
        if command and not command.hidden and flag in _parameters(command):
            yield word
