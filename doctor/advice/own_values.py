"""Values that are each node's own, in words that are the same for all nodes: a shell there asks for its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.shell_words import shell_word

Own = Mapping[str, Mapping[str, str]]  # variables by the name that a node calls itself by (uname -n)

_UNKNOWN = 'echo "ncheck: nothing is known to be right for $(uname -n)" >&2'


def exported(own: Own) -> str:
    """Return the statement that exports a node's own values in the shell that reads it, and fails on another node."""
    return _case(own, f"  *) {_UNKNOWN}; false ;;", "\n")


def wrapped(own: Own, program: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program behind a shell that exports the node's own values first; the program alone for none."""
    if not own:
        return program
    return ("sh", "-c", _case(own, f"*) {_UNKNOWN}; exit 1 ;;", " ") + '; exec "$@"', "sh", *program)


def _case(own: Own, otherwise: str, between: str) -> str:
    indent = "  " if between == "\n" else ""
    rows = (f"{indent}{'|'.join(names)}) export {values} ;;" for values, names in _alike(own))
    return between.join(['case "$(uname -n)" in', *rows, otherwise, "esac"])


def _alike(own: Own) -> Iterator[tuple[str, list[str]]]:
    """Yield the values as a shell takes them, with the nodes that have them."""
    nodes: dict[str, list[str]] = {}
    for name, values in own.items():
        said = " ".join(f"{variable}={shell_word(value)}" for variable, value in values.items())
        if said:
            nodes.setdefault(said, []).append(quote(name))
    yield from nodes.items()
