"""--notify URL: one POST where a node or the cluster is not as the history knows it, as a chat's webhook takes it.

The URL of a webhook is a secret: messages name its host alone.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from ncheck.history.entry import PART, Entry
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.report import State
from ncheck.redact import redact
from ncheck.text import printable

SCHEMA = "ncheck.notify/1"
SECONDS, TRIES, PAUSE = 5.0, 3, 0.5  # of one try, from the look-up of the name to the answer; before the next one
_CERTAIN = ("good", "bad", "unreached")
_MOST, _MOST_LINES = 200, 10  # nodes in a message, and lines of its text
_LONGEST = 300  # characters of a summary
_TOO_MANY, _ERRORS, _SERVER_ERRORS = 429, 400, 500


@dataclass(frozen=True)
class NodeChange:
    """A node that is not as before. `before`: "" if no run has seen it. `codes`: of its errors now; `summary`: of the
    first of them.
    """

    node: str
    before: str
    now: str
    codes: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class Changes:
    """`cluster`: its verdict before and now, "good" or "bad" by the exit code, where that changed; else None."""

    nodes: tuple[NodeChange, ...]
    cluster: tuple[str, str] | None = None


def changes_in(entry: Entry, earlier: Sequence[Entry]) -> Changes:
    """Compare a run with those before it, the oldest first. Unknown is no change: the last certain state counts.

    A node that no run has seen counts as good before. The cluster is compared with the last run of the same nodes. What
    was bad is good again only if the checks that found it ran again.
    """
    before: dict[str, str] = {}
    then, still = "good", _Open()
    for run in earlier:
        still.see(run)
        before |= {node: state for state in _CERTAIN for node in run.of(state) if still.is_sure(state, node)}
        if _names(run) == _names(entry) and run.exit_code in _VERDICTS:
            then = _VERDICTS[run.exit_code] if still.is_sure(_VERDICTS[run.exit_code], *_names(run)) else then
    still.see(entry)
    errors = _errors(entry)
    nodes = []
    for state in _CERTAIN:
        for node in entry.of(state):
            if before.get(node, "good") != state and still.is_sure(state, node):
                own = errors.get(node, [("", "")])
                codes = tuple(dict.fromkeys(code for code, _ in own if code)) if state != "good" else ()
                summary = printable(own[0][1], _LONGEST) if state != "good" else ""
                nodes.append(NodeChange(node, before.get(node, ""), state, codes, summary))
    now = _VERDICTS.get(entry.exit_code, then)
    now = now if still.is_sure(now, *_names(entry)) else then
    return Changes(tuple(nodes), None if then == now else (then, now))


class _Open:
    """The errors of nodes that no later run has looked for and not found: a run of some checks ends those of these."""

    def __init__(self) -> None:
        self.codes: dict[str, set[str]] = {}

    def see(self, run: Entry) -> None:
        """Take what one more run found."""
        found, sure = _errors(run), {*run.of("good"), *run.of("bad")}
        for node in {*found, *(self.codes.keys() & sure)}:
            before = self.codes.pop(node, set())
            left = {code for code, _ in found.get(node, ())}
            if run.kind == PART:
                left |= before.difference(run.checks)
            if left:
                self.codes[node] = left

    def is_sure(self, state: str, *nodes: str) -> bool:
        """Whether these nodes are in this state by all runs: good is what has no error left."""
        return state != "good" or self.codes.keys().isdisjoint(nodes)


def _errors(run: Entry) -> dict[str, list[tuple[str, str]]]:
    """Return the code and the summary of each error of a run, by node."""
    errors: dict[str, list[tuple[str, str]]] = {}
    for one in run.findings:
        for node in one.nodes if one.severity == "error" else ():
            errors.setdefault(node, []).append((one.code, one.summary))
    return errors


_VERDICTS: Mapping[int, str] = {0: "good", 1: "bad"}  # by exit code; an interrupted run has none


def _names(run: Entry) -> frozenset[str]:
    return frozenset(node for nodes in run.nodes.values() for node in nodes)


def message_of(changes: Changes, entry: Entry, state: State) -> dict[str, Any]:
    """Return what is posted: `text` for a chat, and the rest for programs. No secret is in it."""
    before, now = changes.cluster or ("", "")
    return {
        "text": redact("\n".join(_lines(changes, state))),
        "schema": SCHEMA,
        "time": entry.time,
        "host": entry.host,
        "state": state.value,
        "cluster": {"from": before, "to": now} if changes.cluster else None,
        "changes": [
            {"node": one.node, "from": one.before, "to": one.now, "codes": one.codes, "summary": redact(one.summary)}
            for one in changes.nodes[:_MOST]
        ],
        "left_out": max(0, len(changes.nodes) - _MOST),
    }


def _lines(changes: Changes, state: State) -> list[str]:
    """Return "gpu03: bad, was good (NC506 Xid 79 of a GPU)"; nodes with the same change share a line."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in changes.nodes:
        why = " ".join(filter(None, (", ".join(one.codes), one.summary)))
        alike.setdefault((one.before, one.now, why), []).append(one.node)
    lines = (
        [f"ncheck: {state.value}: the cluster was {changes.cluster[0]} and is {changes.cluster[1]}"]
        if changes.cluster
        else []
    )
    for (before, now, why), nodes in alike.items():
        lines.append(f"{fold(nodes)}: {now}, {f'was {before}' if before else 'new'}" + (f" ({why})" if why else ""))
    more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return [_escaped(line) for line in (*lines[:_MOST_LINES], *more)]


def _escaped(text: str) -> str:
    """Keep a node's text from being markup: Slack reads <!channel> and links between these signs."""
    return printable(text, 1000).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def posted(url: str, message: Mapping[str, Any], seconds: float = SECONDS) -> str:
    """Post the message; return "" or why it did not arrive. One try takes so many seconds at most, whatever the server
    does.
    """
    body = json.dumps(message).encode()
    error = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        error, again = _within(url, body, seconds)
        if not again:
            break
    return f"{_host(url)} {error}" if error else ""


def _within(url: str, body: bytes, seconds: float) -> tuple[str, bool]:
    """Try once, in a thread that is left alone where it hangs: a time-out of a socket does not bound a name look-up."""
    answers: list[tuple[str, bool]] = []
    thread = threading.Thread(target=lambda: answers.append(_tried(url, body, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else (_late(seconds), True)


def _late(seconds: float) -> str:
    return f"did not answer within {seconds:g} s"


def _tried(url: str, body: bytes, seconds: float) -> tuple[str, bool]:
    """Return "" or what went wrong, without the URL, and whether another try may help."""
    headers = {"Content-Type": "application/json", "User-Agent": "ncheck"}
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  http or https: see settings/values.py
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds):
            return "", False
    except urllib.error.HTTPError as error:
        with suppress(OSError):
            error.close()
        if error.code < _ERRORS:
            return "redirects elsewhere, which is not followed: give the URL that it leads to", False
        return f"answered {error.code}", error.code == _TOO_MANY or error.code >= _SERVER_ERRORS
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        return _late(seconds) if late else f"cannot be reached: {_reason(error.reason)}", True
    except TimeoutError:
        return _late(seconds), True
    except (OSError, HTTPException, ValueError) as error:
        return f"cannot be reached: {_reason(error)}", True


def _reason(error: object) -> str:
    """Return the system's words alone: others may quote the URL."""
    return printable(getattr(error, "strerror", None) or type(error).__name__, 200)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:  # so that it is an error
        return None


def _host(url: str) -> str:
    return printable(urlsplit(url).hostname or "the server", 100)
