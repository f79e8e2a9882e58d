"""What the user can mend, as exceptions; `cli.py` alone turns them into words and an exit code."""

from __future__ import annotations

EXIT_CLEAN = 0


EXIT_FINDINGS = 1


EXIT_USAGE = 2


EXIT_BUG = 3


EXIT_INTERRUPTED = 130


class NcheckError(Exception):
    """Something that the user can mend: one line, and exit code 2."""

    exit_code = EXIT_USAGE


class InventoryError(NcheckError):
    """The list of nodes cannot be used: names the file, the line and what would be right."""


class SettingsError(NcheckError):
    """A flag, a variable or ncheck.toml says something that cannot be meant."""


class RecordingError(NcheckError):
    """A saved recording cannot be read: truncated, of a newer format, or not one at all."""
