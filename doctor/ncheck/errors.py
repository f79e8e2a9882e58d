"""Errors that the user can fix. Only cli/main.py turns them into a message and an exit code."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_INTERRUPTED = 130


class NcheckError(Exception):
    """Something that the user can fix: one line of text and exit code 2."""

    exit_code = EXIT_USAGE


class InventoryError(NcheckError):
    """The list of nodes is invalid. The message names the file, the line and the correct form."""


class SettingsError(NcheckError):
    """An option, a variable or a value in ncheck.toml is invalid."""


class RecordingError(NcheckError):
    """A recording cannot be read: truncated, of a newer format, or not a recording."""
