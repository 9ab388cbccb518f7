"""Tells the server which of the messages that were shown are to be kept if the run ends now.

A step that is interrupted has no result, so its graph keeps nothing of it. What a client has read
of such a step belongs to the thread all the same, where the step would have put it there: into the
graph's own channel `messages`, or into that of a subgraph which hands it to the same channel of its
parent. This module follows which message belongs to which task. It emits the whole list as an
`unfinished` event before a message's first chunk, and again when a task has finished.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.pregel import Pregel

from .encode import encode

_CHANNEL = "messages"
# Tasks are named "node:task id"; these are one task within the other.
Path = tuple[str, ...]


class StructuredCalls(BaseCallbackHandler):
    """Notes the messages of model calls whose text is a structured output: it is data for the node
    that asks, and no answer."""

    run_inline = True  # before the framework streams the chunk

    def __init__(self) -> None:
        self._calls: set[Any] = set()
        self.messages: set[str] = set()

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **options: Any) -> None:
        if (options.get("options") or {}).get("ls_structured_output_format"):
            self._calls.add(run_id)

    def on_llm_new_token(self, token: str, *, run_id: Any, chunk: Any = None, **_: Any) -> None:
        if run_id in self._calls:
            self._note(chunk)

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        if run_id in self._calls:
            self._calls.discard(run_id)
            for generation in (response.generations or [[]])[0]:
                self._note(generation)

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        self._calls.discard(run_id)

    def _note(self, generation: Any) -> None:
        message_id = getattr(getattr(generation, "message", None), "id", None)
        if message_id:
            self.messages.add(message_id)


class Unfinished:
    """The messages of one invocation that belong to the graph's channel, and that no finished step
    of the graph has decided about."""

    def __init__(self, graph: Pregel, emit: Callable[[str, bytes], None]) -> None:
        self.structured = StructuredCalls()
        self._graph = graph
        self._emit = emit
        self._open: dict[str, Path] = {}
        self._seen: set[str] = set()
        self._tell()

    def show(self, ns: Path, payload: tuple[Any, Mapping[str, Any]]) -> None:
        """Takes a chunk that a client is about to be shown."""
        message, metadata = payload
        message_id = getattr(message, "id", None)
        if not message_id or message_id in self._seen:
            return
        self._seen.add(message_id)
        task: Path = tuple(str(metadata.get("langgraph_checkpoint_ns") or "").split("|"))[: len(ns) + 1]
        if message_id not in self.structured.messages and self._belongs(task):
            self._open[message_id] = task
            self._tell()

    def finish(self, ns: Path, payload: Mapping[str, Any]) -> None:
        """Takes the result of a task, as the stream mode "tasks" has it. What a step of a subgraph
        has put into the channel stays open until the subgraph has finished."""
        if "result" not in payload:
            return  # the task has begun
        task: Path = (*ns, f"{payload['name']}:{payload['id']}")
        within = [message_id for message_id, path in self._open.items() if path[: len(task)] == task]
        if not within:
            return
        returned = set(_ids(_written(payload["result"]))) if ns else set()
        for message_id in within:
            if message_id in returned:
                self._open[message_id] = task
            else:
                del self._open[message_id]
        self._tell()

    def _tell(self) -> None:
        self._emit("unfinished", encode([{"id": message_id, "node": _name(path[0])} for message_id, path in self._open.items()]))

    def _belongs(self, task: Path) -> bool:
        """Whether the text that a task's own code shows goes to the graph's channel. Of a graph
        that a node's code calls nobody knows what becomes of its words."""
        graph = self._graph
        for place in task[:-1]:
            inner = getattr(graph.nodes.get(_name(place)), "bound", None)
            if not _adds_messages(graph) or not isinstance(inner, Pregel) or _CHANNEL not in inner.output_channels:
                return False
            graph = inner
        node = graph.nodes.get(_name(task[-1]))
        return node is not None and _adds_messages(graph) and not hasattr(node.bound, "tools_by_name")  # a tool's text is no answer


def _name(place: str) -> str:
    return place.partition(":")[0]


def _adds_messages(graph: Pregel) -> bool:
    """Whether the graph has the channel, and adds to it. One that replaces its value would lose
    what it holds."""
    channel = graph.channels.get(_CHANNEL)
    return isinstance(channel, BinaryOperatorAggregate) or type(channel).__name__ == "DeltaChannel"


def _written(result: Any) -> Any:
    """What a task has written to the channel. The framework's releases differ in the form: an
    object by channel, or a list of pairs."""
    if isinstance(result, Mapping):
        return result.get(_CHANNEL)
    return [value for channel, value in result or () if channel == _CHANNEL]


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("id"), str):
            yield value["id"]
        value = value.get("$writes", ())
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            yield from _ids(item)
    elif isinstance(getattr(value, "id", None), str):
        yield value.id
