"""The two event loops of the process: one serves HTTP, the other runs graphs.

So a node that blocks its loop, as asynchronous code should not and does, stops neither the answer
to GET /ping nor the notice that a caller has gone. Synchronous nodes run in threads, as the
framework does it; there are many, because each may wait for long.
"""

import asyncio
import concurrent.futures
import logging
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("slipway_runtime")

_THREADS = 256
# An answer that is read more slowly than it is made holds at most about so many bytes.
_HIGH_WATER = 4 << 20
# A comment after so many seconds shows proxies that the agent is there, and shows it a connection
# that has died without a word.
HEARTBEAT = 15.0


class GraphLoop:
    """An event loop in a thread of its own."""

    def __init__(self, name: str = "graphs") -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(_THREADS, "node"))
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # A node that raises these ends its own task; asyncio would end the loop, and
                # everyone else's, with it.
                log.warning("a node tried to end the process")
            else:
                return

    def submit(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future:
        return asyncio.run_coroutine_threadsafe(work, self.loop)


class Outlet:
    """Takes the events of an answer from the loop that makes them to the loop that sends them."""

    def __init__(self, writer: asyncio.AbstractEventLoop) -> None:
        self._writer = writer
        self._reader = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._waiting = False
        self._arrived = asyncio.Event()  # of the reader's loop
        self._space = asyncio.Event()  # of the writer's loop

    # The writer's side

    def emit(self, name: str, data: bytes) -> None:
        name = name.replace("\r", " ").replace("\n", " ")
        self._add(b"event: " + name.encode(errors="replace") + b"\ndata: " + data + b"\n\n")

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._add(b"")

    @property
    def full(self) -> bool:
        return self._size > _HIGH_WATER

    async def drain(self) -> None:
        while self.full and not self._closed:
            self._space.clear()
            if self.full and not self._closed:
                await self._space.wait()

    def _add(self, chunk: bytes) -> None:
        with self._lock:
            if not self._closed:
                self._chunks.append(chunk)
                self._size += len(chunk)
            wake, self._waiting = self._waiting, False
        if wake:
            self._reader.call_soon_threadsafe(self._arrived.set)

    # The reader's side

    async def read(self) -> bytes | None:
        """Returns all that has come since, or None at the end."""
        while True:
            with self._lock:
                if self._size:
                    chunk = b"".join(self._chunks)
                    was_full = self.full
                    self._chunks.clear()
                    self._size = 0
                    break
                if self._closed:
                    return None
                self._arrived.clear()
                self._waiting = True
            await self._arrived.wait()
        if was_full:
            self._writer.call_soon_threadsafe(self._space.set)
        return chunk

    async def read_or_beat(self, patience: float = HEARTBEAT) -> bytes | None:
        """Returns what read does, or a comment if nothing has come for so many seconds."""
        try:
            async with asyncio.timeout(patience):
                return await self.read()
        except TimeoutError:
            return b": heartbeat\n\n"

    def abandon(self) -> None:
        """Ends the answer, whose reader has gone."""
        with self._lock:
            self._closed, self._size = True, 0
            self._chunks.clear()
        self._arrived.set()
        self._writer.call_soon_threadsafe(self._space.set)
