"""The stream transformers that a graph was compiled with, and those that the function
stream_transformers of its module returns.

A transformer observes the events of a run. What it pushes into a channel with a name is for
clients, which subscribe to "custom:NAME"; the framework's own server shows it in the same form. As
there, transformers run only for runs whose clients see all kinds of events.
"""

import contextlib
import functools
import logging
import types
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any

from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.pregel import Pregel

from .encode import encode

try:
    from langchain_core.language_models._compat_bridge import achunks_to_events
    from langgraph.stream._convert import convert_to_protocol_event
    from langgraph.stream._mux import StreamMux
    from langgraph.stream._types import StreamTransformer
except ImportError:  # before langgraph 1.2, whose graphs have no transformers
    StreamMux = None  # type: ignore[assignment,misc]

log = logging.getLogger("slipway_runtime")

# The modes of runs whose clients subscribe to channels.
SHOWN = {"updates", "messages", "custom", "tasks", "tools"}
# What the framework's own transformers ask for.
_ALWAYS = {"values", "messages", "tasks"}
_INTERRUPTED = "__interrupt__"


class Transformers:
    """Runs the transformers of one run."""

    def __init__(self, mux: Any, modes: set[str], emit: Callable[[str, bytes], None], *, has_checkpoint: bool) -> None:
        # The modes of the events that all transformers get.
        self.modes = modes
        self._mux = mux
        self._emit = emit
        # Nothing may be shown before the first checkpoint of a thread.
        self._held: list[bytes] | None = None if has_checkpoint else []
        self._messages: dict[tuple[Any, ...], _Message] = {}
        for channel in mux._channels:
            if channel.name is not None:
                channel._wire(functools.partial(self._forward, channel.name))

    @classmethod
    def of(
        cls, graph: Pregel, exported: Callable[[], Any] | None, emit: Callable[[str, bytes], None], *, has_checkpoint: bool
    ) -> "Transformers | None":
        """Returns None if nothing of the graph's transformers is for clients."""
        if StreamMux is None:
            return None
        made = [_make(item) for item in (*getattr(graph, "stream_transformers", ()), *_call(exported))]
        # A native transformer makes what the server has in events of its own.
        mux = StreamMux(transformers=[transformer for transformer in made if not getattr(transformer, "_native", False)], is_async=True)
        if all(channel.name is None for channel in mux._channels):
            return None
        modes = _ALWAYS.union(*(transformer.required_stream_modes for transformer in made))
        return cls(mux, modes, emit, has_checkpoint=has_checkpoint)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tells the transformers how the run ended."""
        try:
            yield
            for key in list(self._messages):
                await self._finish(key)
            await self._mux.aclose()
            self.begin()
        except BaseException as e:
            await self._mux.afail(e)
            raise

    async def take(self, ns: tuple[str, ...], mode: str, payload: Any) -> None:
        """Shows the transformers a chunk of the graph. An error of a transformer is one of the
        run, as in the framework."""
        if mode == "tasks" and "result" in payload:
            for key in [key for key, message in self._messages.items() if message.task == payload["id"]]:
                await self._finish(key)
        if mode not in self.modes:
            return
        if mode == "messages":
            await self._take_message(ns, *payload)
            return
        part = {"type": mode, "ns": ns, "data": payload}
        if mode == "values":
            part["interrupts"] = ()
            if isinstance(payload, dict) and _INTERRUPTED in payload:
                part |= {"data": {name: value for name, value in payload.items() if name != _INTERRUPTED}, "interrupts": payload[_INTERRUPTED]}
        await self._push(part)

    def begin(self) -> None:
        """Shows what was pushed before the first checkpoint."""
        held, self._held = self._held or [], None
        for data in held:
            self._emit("custom", data)

    async def _take_message(self, ns: tuple[str, ...], message: Any, metadata: dict[str, Any]) -> None:
        if isinstance(message, ToolMessage):
            return
        if not isinstance(message, AIMessageChunk):
            await self._push({"type": "messages", "ns": ns, "data": (message, metadata)})
            return
        key = (ns, message.id)
        if key not in self._messages:
            self._messages[key] = _Message(ns, message.id, metadata)
        await self._push_blocks(self._messages[key], self._messages[key].add(message))
        if getattr(message, "chunk_position", None) == "last":
            await self._finish(key)

    async def _finish(self, key: tuple[Any, ...]) -> None:
        message = self._messages.pop(key)
        await self._push_blocks(message, message.end())

    async def _push_blocks(self, message: "_Message", events: list[Any]) -> None:
        for event in events:
            await self._push({"type": "messages", "ns": message.ns, "data": (event, message.metadata)})

    async def _push(self, part: dict[str, Any]) -> None:
        await self._mux.apush(convert_to_protocol_event(part))

    def _forward(self, name: str, item: Any) -> None:
        data = encode({"name": name, "payload": item})
        if self._held is None:
            self._emit("custom", data)
        else:
            self._held.append(data)


def _call(exported: Callable[[], Any] | None) -> Sequence[Any]:
    """Returns what a module exports for a run. As in the framework's own server, a run goes on
    without it if the function fails."""
    try:
        made = exported() if exported is not None else ()
    except Exception:
        log.exception("stream_transformers failed; the run goes on without them")
        return ()
    return made if isinstance(made, list | tuple) else ()


def _make(item: Any) -> Any:
    """Makes a transformer for the whole of a run from a factory. A module may export transformers
    that are made already."""
    return item if isinstance(item, StreamTransformer) else item(())


class _Message:
    """Makes the events of a message's blocks from its chunks. The framework's own generator makes
    them; it is resumed by hand, because it waits for nothing but the next chunk."""

    def __init__(self, ns: tuple[str, ...], message_id: str | None, metadata: dict[str, Any]) -> None:
        self.ns = ns
        self.metadata = {**metadata, "run_id": str(message_id)}
        self.task = str(metadata.get("langgraph_checkpoint_ns", "")).rpartition(":")[2]
        self._chunks: deque[AIMessageChunk] = deque()
        self._ended = False
        self._events = achunks_to_events(self, message_id=message_id)
        self._step: Any = None

    def add(self, chunk: AIMessageChunk) -> list[Any]:
        self._chunks.append(chunk)
        return self._resume()

    def end(self) -> list[Any]:
        self._ended = True
        return self._resume()

    def _resume(self) -> list[Any]:
        events = []
        while True:
            self._step = self._step or self._events.__anext__()
            try:
                self._step.send(None)
            except StopIteration as e:
                events.append(e.value)
                self._step = None
            except StopAsyncIteration:
                return events
            else:
                return events

    def __aiter__(self) -> "_Message":
        return self

    async def __anext__(self) -> ChatGenerationChunk:
        while not self._chunks:
            if self._ended:
                raise StopAsyncIteration
            await _next_chunk()
        return ChatGenerationChunk(message=self._chunks.popleft())


@types.coroutine
def _next_chunk() -> Generator[None, None, None]:
    yield
