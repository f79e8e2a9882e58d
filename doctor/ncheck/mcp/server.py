"""The server of `ncheck mcp`: the protocol, by its official SDK. Each call of a tool is a process (worker.py)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

import anyio
import jsonschema
import mcp_types as types
from anyio.abc import Process
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from ncheck.hostlist import fold
from ncheck.mcp.tools import DATA, Given, Tool, offered, output_schema, visible
from ncheck.mcp.worker import GRACE, request
from ncheck.redact import redact
from ncheck.text import printable
from ncheck.version import __version__

_LONGEST = 120.0  # seconds beyond the deadline of a run: logs may have gigabytes
_MOST = 4 * 2**20  # bytes of an answer on its way here


def serve(given: Given) -> None:
    """Answer on standard output what is asked on standard input, until that ends."""
    anyio.run(_serve, given)


async def _serve(given: Given) -> None:
    tools = {tool.name: (tool, anyio.Lock()) for tool in offered(given)}

    async def list_tools(_context: ServerRequestContext, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_declared(tool) for tool, _ in tools.values()])

    async def call_tool(_context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools:
            return _refused(f"no tool is called {printable(params.name)}; there are {', '.join(tools)}")
        tool, one_at_a_time = tools[params.name]
        arguments = params.arguments or {}
        for error in jsonschema.Draft202012Validator(tool.schema).iter_errors(arguments):
            where = f"{error.json_path}: " if error.path else ""
            return _refused(f"{tool.name}: {where}{error.message}")
        async with one_at_a_time:
            return await _called(given, tool, arguments)

    server = Server(
        "ncheck", version=__version__, title="ncheck, the doctor for multi-node GPU clusters",
        instructions=_instructions(given), on_list_tools=list_tools, on_call_tool=call_tool,
    )  # fmt: skip
    lines = _Lines(anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")))
    async with stdio_server(stdin=lines) as (incoming, outgoing):  # type: ignore[arg-type]  # it reads lines of it alone
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Lines:
    """Standard input, line by line, in a form that the SDK reads: it drops a line with half of a surrogate pair unread,
    and who asked would wait for ever.
    """

    def __init__(self, file: anyio.AsyncFile[str]) -> None:
        self._file = file

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            yield whole(line)


def whole(line: str) -> str:
    """Return a line of JSON with a question mark in place of each half of a surrogate pair."""
    if "\\ud" not in line.lower():
        return line
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):  # the SDK says so
        return line
    return text.encode("utf-8", "replace").decode() + "\n"


def _instructions(given: Given) -> str:
    nodes = fold(node.name for node in given.nodes)
    return (
        f"ncheck tells whether a multi-node GPU job will run, and why not. Its nodes: {printable(nodes, 1000)}. It "
        f"only reads, and runs no fix: show the user what a finding says to type. {DATA}"
    )


def _declared(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=tool.outside
    )
    return types.Tool(
        name=tool.name, title=tool.title, description=tool.about, input_schema=tool.schema,
        output_schema=output_schema(tool.name), annotations=hints,
    )  # fmt: skip


async def _called(given: Given, tool: Tool, arguments: dict[str, Any]) -> types.CallToolResult:
    """Run a call in its process. If it is cancelled, its process has ended before this returns."""
    from ncheck.hook.children import command_of

    command = command_of("ncheck.mcp.worker", "main()", ())
    process = await anyio.open_process(command, stderr=None, start_new_session=True)
    try:
        with anyio.move_on_after(given.settings.deadline + _LONGEST):
            return await _answered(process, request(given, tool.name, arguments, sys.argv))
        return _refused(f"{tool.name} took too long")
    finally:
        await _end(process)


async def _answered(process: Process, call: bytes) -> types.CallToolResult:
    assert process.stdin is not None  # noqa: S101  they are pipes
    assert process.stdout is not None  # noqa: S101
    with suppress(anyio.BrokenResourceError):  # it ended before
        await process.stdin.send(call)
    parts = bytearray()
    with suppress(anyio.EndOfStream):
        while len(parts) <= _MOST:
            parts += await process.stdout.receive()
    try:
        answer = json.loads(parts)
    except ValueError:
        return _refused("ncheck ended without an answer; its standard error says why")
    if "error" in answer:
        return _refused(answer["error"])
    text = types.TextContent(type="text", text=answer["text"])
    return types.CallToolResult(content=[text], structured_content=answer["structured"])


async def _end(process: Process) -> None:
    """End a worker: it interrupts itself when its input ends, and gives up what does not end soon."""
    with anyio.CancelScope(shield=True):
        await process.stdin.aclose()  # type: ignore[union-attr]  # it is a pipe
        with anyio.move_on_after(2 * GRACE):
            await process.wait()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await process.stdout.aclose()  # type: ignore[union-attr]  # the same


def _refused(sentence: str) -> types.CallToolResult:
    text = visible(redact(printable(" ".join(sentence.split()), 2000)))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
