"""A command that takes a program behind `--`, word for word, and one whose output a shell takes by eval."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import click

from ncheck.cli.options import GroupedCommand

_PROGRAM = "ncheck.program"


class ProgramCommand(GroupedCommand):
    """A command whose words behind `--` are no options and no files of its own: `program_of` returns them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the program aside before anything else is read."""
        if "--" in args:
            at = args.index("--")
            args, program = args[:at], args[at + 1 :]
            if not program or not program[0].strip() or program[0].startswith("-"):
                raise click.UsageError(f"-- stands before the program: {ctx.command_path} -- python train.py", ctx)
            ctx.meta[_PROGRAM] = tuple(program)
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show where the program stands."""
        formatter.write_usage(ctx.command_path, " ".join([*self.collect_usage_pieces(ctx), "[-- PROGRAM ...]"]))


class EvalCommand(ProgramCommand):
    """A command that ends with `false` on standard output where a shell was promised exports and there are none.

    `eval "$(...)"` of nothing is a success, and the script would go on without them.
    """

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:  # noqa: ANN401  click's own
        promised = _says_env(args)  # asked first: click takes words away as it reads them
        try:
            return super().make_context(info_name, args, *rest, **extra)
        except click.ClickException:
            _false(promised=promised)
            raise

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  click's own
        promised = ctx.params.get("launcher") == "env"
        try:
            code = super().invoke(ctx)
        except BaseException:
            _false(promised=promised)
            raise
        _false(promised=promised and bool(code))
        return code


def program_of(ctx: click.Context) -> tuple[str, ...]:
    """Return the words behind `--`, or none."""
    program: tuple[str, ...] = ctx.meta.get(_PROGRAM, ())
    return program


def _false(*, promised: bool) -> None:
    if promised:
        click.echo("false")


def _says_env(args: list[str]) -> bool:
    """Look for --for env in a command line that may be one that cannot be read."""
    own = args[: args.index("--")] if "--" in args else args
    return "--for=env" in own or any(pair == ("--for", "env") for pair in pairwise(own))
