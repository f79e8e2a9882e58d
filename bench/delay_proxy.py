"""A long wire to a near node: a proxy that passes on what it reads half a round trip later, both ways.

    delay_proxy.py ADDRESS PORT ROUND_TRIP     prints the port on which it listens, on 127.0.0.1; ROUND_TRIP in seconds;
                                               then NUMBER: FLIGHTS of each connection that ended

At the end of each connection it prints in how many flights its client sent: a chunk that comes when the client has
heard something since the one before, and a sixth of a round trip later, is an answer and begins a new flight.

Chunks keep their order, and further ones are read while one is on its way: those of one flight arrive together.
TCP's handshake takes its round trip, too. Bandwidth has no limit, and there is no slow start.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from contextlib import suppress

CHUNK = 4096  # bytes that are read at once, at most
Wire = asyncio.Queue[tuple[float, bytes]]  # chunks, and when they arrive; an empty one is the end


async def read(source: asyncio.StreamReader, wire: Wire, delay: float, heard: asyncio.Event) -> int:
    """Put what comes onto the wire, and return the number of its flights. `heard`: the source has heard something."""
    chunk, flights, last, clock = b".", 0, 0.0, asyncio.get_running_loop().time
    while chunk:
        try:
            chunk = await source.read(CHUNK)
        except ConnectionError:
            chunk = b""
        wire.put_nowait((clock() + delay, chunk))
        if chunk and (heard.is_set() or not last) and clock() - last > delay / 3:
            flights += 1
            heard.clear()
        last = clock()
    return flights


async def deliver(wire: Wire, target: asyncio.StreamWriter, heard: asyncio.Event) -> None:
    """Write what arrives, each chunk in its time, and note that the target has heard it."""
    with suppress(OSError):
        while True:
            due, chunk = await wire.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if not chunk:
                break
            target.write(chunk)
            heard.set()
        target.write_eof()


async def serve(address: str, port: int, delay: float) -> None:
    """Serve until this process is ended. `delay`: seconds, one way."""
    numbers = itertools.count(1)

    async def connect(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        number = next(numbers)
        # SYN and SYN-ACK have travelled when a client may write, and one packet more when a server accepts.
        await asyncio.sleep(2 * delay)
        up, down, here, there = Wire(), Wire(), asyncio.Event(), asyncio.Event()
        reading = asyncio.create_task(read(client, up, delay, here))
        await asyncio.sleep(delay)
        server, to_server = await asyncio.open_connection(address, port)
        await asyncio.gather(
            reading, read(server, down, delay, there), deliver(up, to_server, there), deliver(down, to_client, here)
        )
        to_server.close()
        to_client.close()
        print(f"{number}: {reading.result()}", flush=True)

    listener = await asyncio.start_server(connect, "127.0.0.1", 0)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 2))
