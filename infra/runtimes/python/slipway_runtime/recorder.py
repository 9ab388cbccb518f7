"""Makes `checkpoint` and `writes` events of what the checkpointer is given.

A checkpoint is two things that arrive apart: the saved form, from the checkpointer, and how clients
see it (values, next, tasks), which the framework streams from its live state in the mode
"checkpoints". So no state is computed a second time. The event is sent when both are there; events
keep the order in which the framework saved.
"""

import asyncio
import base64
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.pregel.protocol import PregelProtocol

from .checkpointer import NULL_TASK_ID, ROOT, Checkpointer, Saved
from .encode import Fragment, encode
from .framework import named

# The framework's channels of what a task has failed with, and of what it asks.
ERROR, INTERRUPT, RESUME = "__error__", "__interrupt__", "__resume__"

Emit = Callable[[str, bytes], None]


@dataclass(slots=True)
class _Entry:
    ns: str
    saved: Saved
    # task_id is that of writes; None for the checkpoint itself.
    task_id: str | None


class Recorder:
    def __init__(self, thread_id: str, emit: Emit) -> None:
        self.checkpointer = Checkpointer(thread_id, self)
        self._thread_id = thread_id
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Entry] = deque()
        # The parts of a checkpoint of the graph that the framework has not saved yet: it saves
        # checkpoints in the background, or at the end.
        self._early: list[_Entry] = []
        self._described: dict[tuple[str, str], dict[str, Any]] = {}
        # By namespace, how the newest checkpoint was described when it was sent.
        self._shown: dict[str, dict[str, Any]] = {}
        # The only task of the newest checkpoint of a namespace, where it has only one.
        self._alone: dict[str, str] = {}
        # Namespaces whose newest checkpoint is sent once more at the end: tasks have stopped there,
        # with a question or an error, or a command has changed the state there.
        self._again: set[str] = set()

    # What the framework saves

    def on_checkpoint(self, ns: str, saved: Saved) -> None:
        self._call(self._put, _Entry(ns, saved, None))

    def on_writes(self, ns: str, saved: Saved, task_id: str) -> None:
        self._call(self._put, _Entry(ns, saved, task_id))

    def _call(self, function: Callable[[_Entry], None], entry: _Entry) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            function(entry)
        else:
            self._loop.call_soon_threadsafe(function, entry)

    def _put(self, entry: _Entry) -> None:
        if entry.task_id is None:
            self._again.discard(entry.ns)
        elif entry.task_id == NULL_TASK_ID:
            if not entry.ns and any(task == NULL_TASK_ID and write.channel != RESUME for (task, _), write in tuple(entry.saved.writes.items())):
                self._again.add(entry.ns)
        elif any(index < 0 for task, index in tuple(entry.saved.writes) if task == entry.task_id):
            if any(write.channel in (INTERRUPT, ERROR) for write in tuple(entry.saved.writes.values())):
                self._again.add(entry.ns)
        elif entry.task_id == self._alone.get(entry.ns):
            return  # it has finished its step, whose checkpoint comes now
        self._enqueue(entry)
        self._drain()

    def _enqueue(self, entry: _Entry) -> None:
        if entry.ns:
            above = self.checkpointer.metadata(entry.saved).get("parents", {}).get("")
            if above and not self.checkpointer.has("", above):
                self._early.append(entry)
                return
        self._queue.append(entry)
        if not entry.ns and entry.task_id is None:
            early, self._early = self._early, []
            for waiting in early:
                self._enqueue(waiting)

    # What the framework streams

    def describe(self, payload: Mapping[str, Any]) -> None:
        """Takes an event of the stream mode "checkpoints"."""
        place = payload["config"]["configurable"]
        ns = place.get("checkpoint_ns") or ""
        tasks = [_task(t) for t in payload["tasks"]]
        self._alone[ns] = tasks[0]["id"] if len(tasks) == 1 else ""
        if "checkpoint_id" not in place:
            return  # a graph without a checkpointer
        description = _description(payload["values"], payload["next"], tasks)
        description["values"] = Fragment(encode(description["values"]))  # the graph goes on changing the state
        self._described[ns, place["checkpoint_id"]] = description
        self._drain()

    def _drain(self) -> None:
        while self._queue:
            entry = self._queue[0]
            if entry.task_id is None and (entry.ns, entry.saved.id) not in self._described:
                return
            self._send(self._queue.popleft())

    @property
    def has_sent(self) -> bool:
        """Whether a checkpoint of the graph itself was sent. The framework saves in the background,
        so this may come after the event of the stream mode."""
        return "" in self._shown

    def _send(self, entry: _Entry) -> None:
        saved = entry.saved
        if entry.task_id is not None:
            data = self.checkpointer.writes_data(saved, entry.task_id)
            self._emit("writes", encode({"checkpoint_id": saved.id, "ns": entry.ns, "task_id": entry.task_id, "data": _base64(data)}))
            return
        description = self._described.pop((entry.ns, saved.id))
        channels = description.pop("channels", None)
        results = self.checkpointer.results(saved, channels) if channels is not None and not entry.ns else None
        description["tasks"] = _with_paths(description["tasks"], self.checkpointer.sends(saved))
        self._shown[entry.ns] = description
        self._emit("checkpoint", encode({
            "id": saved.id,
            "parent_id": saved.parent_id or "",
            "ns": entry.ns,
            "metadata": self.checkpointer.metadata(saved),
            # A subgraph that keeps its state from call to call has no task in its namespace.
            "persistent": bool(entry.ns) and ":" not in entry.ns,
            "data": _base64(self.checkpointer.data(entry.ns, saved)),
            **({"results": results} if results else {}),
            **description,
        }))

    # The end

    async def finish(self, graph: PregelProtocol) -> None:
        """Sends what is left, and once more the newest checkpoints that have changed since: with
        the questions and errors of their tasks, and with what a command has written."""
        self._queue.extend(self._early)
        self._early = []
        while self._queue:
            self._drain()
            if self._queue:
                entry = self._queue[0]
                await self._look(graph, entry.ns, entry.saved.id)
        for ns in sorted(self._again):
            saved = self.checkpointer.newest(ns)
            if saved is None:
                continue
            if ns and ns in self._shown:
                # Not every subgraph can be asked: one that a node calls is known to that node
                # alone.
                self._described[ns, saved.id] = self._with_stops(self._shown[ns], saved)
            else:
                await self._look(graph, ns, saved.id, live=True)
            self._send(_Entry(ns, saved, None))
        self._again.clear()

    async def _look(self, graph: PregelProtocol, ns: str, checkpoint_id: str, live: bool = False) -> None:
        """Describes a checkpoint as the framework does on request: the newest, with what has been
        written since, or one as it was."""
        place = {"thread_id": self._thread_id, "checkpoint_ns": ns, **({} if live else {"checkpoint_id": checkpoint_id})}
        snapshot = await graph.aget_state({"configurable": place})
        tasks = [_task(t._asdict()) for t in snapshot.tasks]
        self._described[ns, checkpoint_id] = _description(snapshot.values, snapshot.next, tasks)

    def _with_stops(self, description: dict[str, Any], saved: Saved) -> dict[str, Any]:
        stops: dict[str, dict[str, Any]] = {}
        for task_id, write in saved.ordered():
            if write.channel in (INTERRUPT, ERROR):
                value = self.checkpointer.serde.loads_typed(write.value)
                stops.setdefault(task_id, {}).update({"interrupts": value} if write.channel == INTERRUPT else {"error": value})
        tasks = [_task({**task, **stops[task["id"]]}) if task["id"] in stops else task for task in description["tasks"]]
        return {**description, "tasks": tasks}


def _description(values: Any, following: Any, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        values = {} if values is None else {ROOT: values}
    return {"values": values, "channels": frozenset(values), "next": list(following), "tasks": tasks}


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task in the form of the agent server's interface. The state of a subgraph is where it is to
    be found."""
    state, error = task.get("state"), task.get("error")
    return {
        **({"path": task["path"]} if "path" in task else {}),
        "id": task["id"],
        "name": task["name"],
        "error": None if error is None else error if isinstance(error, str) else repr(error),
        "interrupts": [named(question) for question in task.get("interrupts") or ()],
        "checkpoint": state.get("configurable") if isinstance(state, Mapping) else task.get("checkpoint"),
        "state": None,
        "result": task.get("result"),
    }


def _with_paths(tasks: list[dict[str, Any]], sends: list[str]) -> list[dict[str, Any]]:
    """Gives tasks the paths that the framework has for them and does not stream. The tasks of sends
    come first, in the order of the sends."""
    return [
        task if "path" in task
        else {"path": ["__pregel_push", i, False] if sends[i:i + 1] == [task["name"]] else ["__pregel_pull", task["name"]], **task}
        for i, task in enumerate(tasks)
    ]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
