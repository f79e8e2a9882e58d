"""Words for a line that somebody types, in quotes where a shell would read them as something else."""

from __future__ import annotations

from shlex import quote


def shell_word(word: str) -> str:
    """Return the word as bash and zsh read it; zsh would take =eth0 for the path of a program eth0."""
    return f"'{word}'" if word.startswith("=") and quote(word) == word else quote(word)


def sudo_for(path: str) -> str:
    """Return what a line that changes this file has to begin with: "sudo ", or "" for a user's own."""
    return "sudo " if path.startswith("/etc/") else ""


def export(name: str, value: str) -> str:
    """Return the line that sets a variable, such as export NCCL_SOCKET_IFNAME='=eth0'."""
    return f"export {name}={shell_word(value)}"
