"""The commands of the command line, each imported when it is asked for."""

from __future__ import annotations

import click
from ncheck.cli.main import commands


def names() -> list[str]:
    return commands.list_commands(click.Context(commands))


def command_of(name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command
    return command
