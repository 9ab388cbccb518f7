"""A checkpointer of the framework's own interface that lives for one invocation.

It is seeded with what the server kept, and tells a listener of everything that it is given, in a
form that seeds the next one. Values are serialised as soon as they come, because a graph goes on
changing them; each version of a channel only once.
"""

import threading
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from .encode import Fragment, encode
from .identify import identify_writes

# TASKS is the framework's channel of sends.
TASKS = "__pregel_tasks"
# ROOT is the channel of a state that is no object.
ROOT = "__root__"
# The channels whose value is all that a task returns: also those of the functional API, for a task
# and for the entrypoint.
_WHOLE = ("__return__", "__end__", ROOT)
# The framework's own task, under which it saves what a command writes: such writes belong to the
# checkpoint's state, and make no next checkpoint.
NULL_TASK_ID = "00000000-0000-0000-0000-000000000000"
# The id that the thread's newest checkpoint has for the framework if that checkpoint is not here.
# The framework compares it with the id of the checkpoint at which a run begins.
_NEWEST = "newest"
# FORMAT is that of the opaque data. A reader knows all that were ever written.
FORMAT = 1

Typed = tuple[str, bytes]
# History is a value to begin with, if there is one, and the writes since, each with its task's id.
History = tuple[Typed | None, list[tuple[str, Typed]]]


class DataError(Exception):
    """Data that no version of this package has written."""


@dataclass(slots=True)
class Write:
    channel: str
    value: Typed
    task_path: str
    # shown is the value as clients see it, of a write to the graph's own state that was made here.
    shown: bytes | None = None


@dataclass(slots=True)
class Saved:
    """One checkpoint."""

    id: str
    parent_id: str | None
    # checkpoint is the framework's, without its channel values.
    checkpoint: Typed
    metadata: Typed
    # channels holds version and value of each channel that has one.
    channels: dict[str, tuple[Any, Typed]]
    # history belongs to the channels that are made from what came before: only a seed has it, as
    # its ancestors are not here.
    history: dict[str, History]
    writes: dict[tuple[str, int], Write]

    def ordered(self) -> list[tuple[str, Write]]:
        """The writes with their task ids, in the order in which the framework applies those of a
        step."""
        items = sorted(self.writes.items(), key=lambda item: (item[1].task_path, *item[0]))
        return [(task_id, write) for (task_id, _), write in items]


class Listener(Protocol):
    """Hears of the invocation's own thread, from whatever thread of the process the framework is
    in."""

    def on_checkpoint(self, ns: str, saved: Saved) -> None: ...

    def on_writes(self, ns: str, saved: Saved, task_id: str) -> None: ...


class Checkpointer(BaseCheckpointSaver[int]):
    def __init__(self, thread_id: str = "", listener: Listener | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._thread_id = thread_id
        self._listener = listener
        # The objects and lists in the metadata of the run, and of its thread and assistant. The
        # framework passes on only texts, numbers and booleans.
        self.nested_metadata: dict[str, Any] = {}
        # True while the thread's newest checkpoint is not here, because the run begins a branch at
        # an older checkpoint.
        self.superseded = False
        self._lock = threading.RLock()
        # By thread, namespace and id; the last one put is the newest, whatever the clocks that made
        # their ids.
        self._threads: dict[str, dict[str, dict[str, Saved]]] = {}
        # By thread, namespace and checkpoint id. Writes can come before their checkpoint, which the
        # framework saves in the background.
        self._writes: dict[tuple[str, str, str], dict[tuple[str, int], Write]] = {}

    # What the server keeps

    def seed(self, ns: str, checkpoint_id: str, parent_id: str | None, data: bytes) -> None:
        try:
            fields = ormsgpack.unpackb(data)
            if fields["format"] != FORMAT:
                raise DataError(f"format {fields['format']} is not known")
            saved = Saved(
                id=checkpoint_id,
                parent_id=parent_id or None,
                checkpoint=tuple(fields["checkpoint"]),
                metadata=tuple(fields["metadata"]),
                channels={name: (version, (kind, value)) for name, (version, kind, value) in fields["channels"].items()},
                history={
                    name: (tuple(start) if start else None, [(task, (kind, value)) for task, kind, value in writes])
                    for name, (start, writes) in fields["history"].items()
                },
                writes=self._writes.setdefault((self._thread_id, ns, checkpoint_id), {}),
            )
        except (ormsgpack.MsgpackDecodeError, KeyError, TypeError, ValueError) as e:
            raise DataError(f"{type(e).__name__}: {e}") from e
        self._of(self._thread_id, ns)[checkpoint_id] = saved

    def seed_writes(self, ns: str, checkpoint_id: str, task_id: str, data: bytes) -> None:
        stored = self._writes.setdefault((self._thread_id, ns, checkpoint_id), {})
        try:
            for index, channel, kind, value, path in ormsgpack.unpackb(data):
                stored[(task_id, index)] = Write(channel, (kind, value), path)
        except (ormsgpack.MsgpackDecodeError, TypeError, ValueError) as e:
            raise DataError(f"{type(e).__name__}: {e}") from e

    def data(self, ns: str, saved: Saved) -> bytes:
        """The checkpoint for seed, by itself."""
        counters = self.metadata(saved).get("counters_since_delta_snapshot") or ()
        with self._lock:
            history = {name: self._history(ns, saved, name) for name in counters if name not in saved.channels}
        return ormsgpack.packb({
            "format": FORMAT,
            "checkpoint": saved.checkpoint,
            "metadata": saved.metadata,
            "channels": {name: (version, *value) for name, (version, value) in saved.channels.items()},
            "history": {
                name: (start, [(task, *value) for task, value in writes]) for name, (start, writes) in history.items()
            },
        })

    def writes_data(self, saved: Saved, task_id: str) -> bytes:
        """All that a task has written so far, for seed_writes."""
        with self._lock:
            writes = [(index, write.channel, *write.value, write.task_path) for (task, index), write in saved.writes.items() if task == task_id]
        return ormsgpack.packb(writes)

    def metadata(self, saved: Saved) -> dict[str, Any]:
        return self.serde.loads_typed(saved.metadata)

    def results(self, saved: Saved, channels: Container[str]) -> dict[str, Any]:
        """What the tasks of the step that led to a checkpoint have returned, by task: what they
        have written to these channels, as clients see it."""
        before = self._of(self._thread_id, "").get(saved.parent_id or "")
        results: dict[str, Any] = {}
        for task_id, write in before.ordered() if before else ():
            if write.channel in WRITES_IDX_MAP or task_id == NULL_TASK_ID:
                continue
            result = results.setdefault(task_id, {})
            if write.channel not in _WHOLE and write.channel not in channels:
                continue
            value = Fragment(write.shown if write.shown is not None else encode(self.serde.loads_typed(write.value)))
            if write.channel in _WHOLE:
                results[task_id] = value
            elif isinstance(result, dict):
                result[write.channel] = {"$writes": [*_several(result[write.channel]), value]} if write.channel in result else value
        return results

    def sends(self, saved: Saved) -> list[str]:
        """The nodes that the checkpoint's sends start, in order."""
        if TASKS not in saved.channels:
            return []
        waiting = self.serde.loads_typed(saved.channels[TASKS][1])
        waiting = waiting[1] if isinstance(waiting, tuple) else waiting  # earlier releases have the sends that they have seen beside them
        return [send.node for send in waiting]

    def newest(self, ns: str) -> Saved | None:
        return next(reversed(self._of(self._thread_id, ns).values()), None)

    def forget_returned(self, saved: Saved) -> None:
        """Forgets the writes of the tasks that have returned at a checkpoint."""
        with self._lock:
            returned = {task_id for task_id, index in saved.writes if index >= 0 and task_id != NULL_TASK_ID}
            for key in [key for key in saved.writes if key[0] in returned]:
                del saved.writes[key]

    def has(self, ns: str, checkpoint_id: str) -> bool:
        return checkpoint_id in self._of(self._thread_id, ns)

    # The framework's interface

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread_id, ns = _place(config)
        with self._lock:
            checkpoints = self._of(thread_id, ns)
            wanted = get_checkpoint_id(config)
            saved = checkpoints.get(wanted) if wanted else next(reversed(checkpoints.values()), None)
            if saved is None:
                return None
            found = self._tuple(thread_id, ns, saved)
            if self.superseded and not wanted and not ns and thread_id == self._thread_id:
                found.checkpoint["id"] = _NEWEST
            return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        wanted = config["configurable"] if config else {}
        with self._lock:
            found = [
                (thread_id, ns, saved)
                for thread_id, namespaces in self._threads.items() if wanted.get("thread_id", thread_id) == thread_id
                for ns, checkpoints in namespaces.items() if wanted.get("checkpoint_ns") in (None, ns)
                for saved in reversed(checkpoints.values()) if wanted.get("checkpoint_id") in (None, "", saved.id)
            ]
        end = get_checkpoint_id(before) if before else None
        for thread_id, ns, saved in found:
            if limit is not None and limit <= 0:
                return
            if end and saved.id >= end:
                continue
            if filter and not filter.items() <= self.metadata(saved).items():
                continue
            if limit is not None:
                limit -= 1
            yield self._tuple(thread_id, ns, saved)

    def put(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Mapping[str, Any]) -> RunnableConfig:
        thread_id, ns = _place(config)
        parent_id = get_checkpoint_id(config)
        bare: dict[str, Any] = dict(checkpoint)
        values = bare.pop("channel_values")
        own = self.nested_metadata if thread_id == self._thread_id else {}
        with self._lock:
            checkpoints = self._of(thread_id, ns)
            parent = checkpoints.get(parent_id) if parent_id else None
            saved = Saved(
                id=checkpoint["id"],
                parent_id=parent_id,
                checkpoint=self.serde.dumps_typed(bare),
                metadata=self.serde.dumps_typed({**own, **get_checkpoint_metadata(config, metadata)}),
                channels={
                    name: (version, self._value(parent, name, version, values, new_versions))
                    for name, version in checkpoint["channel_versions"].items() if name in values
                },
                history={},
                writes=self._writes.setdefault((thread_id, ns, checkpoint["id"]), {}),
            )
            checkpoints.pop(saved.id, None)
            checkpoints[saved.id] = saved
            if thread_id == self._thread_id and not ns:
                self.superseded = False
            if self._listener and thread_id == self._thread_id:
                self._listener.on_checkpoint(ns, saved)
                for task_id in dict.fromkeys(task_id for task_id, _ in saved.writes):
                    self._listener.on_writes(ns, saved, task_id)
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": saved.id}}

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        thread_id, ns = _place(config)
        with self._lock:
            checkpoint_id = config["configurable"]["checkpoint_id"]
            identify_writes(writes)
            stored = self._writes.setdefault((thread_id, ns, checkpoint_id), {})
            for position, (channel, value) in enumerate(writes):
                key = (task_id, WRITES_IDX_MAP.get(channel, position))
                if key[1] < 0 or key not in stored:
                    shown = encode(value) if not ns and _is_returned(channel) else None
                    stored[key] = Write(channel, self.serde.dumps_typed(value), task_path, shown)
            saved = self._of(thread_id, ns).get(checkpoint_id)
            if self._listener and saved and thread_id == self._thread_id:
                self._listener.on_writes(ns, saved, task_id)

    def close(self) -> None:
        """Gives the memory of an invocation back. The listener holds the checkpointer, too, so the
        collector of cycles would come to it late."""
        with self._lock:
            self._listener = None
            self._threads.clear()
            self._writes.clear()

    def delete_thread(self, thread_id: str) -> None:
        with self._lock:
            self._threads.pop(thread_id, None)
            for key in [key for key in self._writes if key[0] == thread_id]:
                del self._writes[key]

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        thread_id, ns = _place(config)
        with self._lock:
            wanted = get_checkpoint_id(config)
            checkpoints = self._of(thread_id, ns)
            saved = checkpoints.get(wanted) if wanted else next(reversed(checkpoints.values()), None)
            found = {name: self._history(ns, saved, name, thread_id) if saved else (None, []) for name in channels}
        result = {}
        for name, (start, writes) in found.items():
            entry: dict[str, Any] = {"writes": [(task, name, self.serde.loads_typed(value)) for task, value in writes]}
            if start is not None:
                entry["seed"] = self.serde.loads_typed(start)
            result[name] = entry
        return result

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in self.list(config, **options):
            yield found

    async def aput(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Mapping[str, Any]) -> RunnableConfig:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        return self.get_delta_channel_history(config=config, channels=channels)

    # Parts

    def _of(self, thread_id: str, ns: str) -> dict[str, Saved]:
        return self._threads.setdefault(thread_id, {}).setdefault(ns, {})

    def _value(self, parent: Saved | None, name: str, version: Any, values: Mapping[str, Any], new_versions: Iterable[str]) -> Typed:
        """A channel's value in serialised form: the parent's where the channel has not changed
        since."""
        known = parent.channels.get(name) if parent and name not in new_versions else None
        if known and known[0] == version:
            return known[1]
        return self.serde.dumps_typed(values[name])

    def _history(self, ns: str, saved: Saved, name: str, thread_id: str | None = None) -> History:
        """What a channel without a value of its own is made from. The checkpoint's own writes are
        not among it: they make the next."""
        checkpoints = self._of(self._thread_id if thread_id is None else thread_id, ns)
        steps = []
        start: Typed | None = None
        while True:
            if name in saved.history:
                start, before = saved.history[name]
                steps.append(before)
                break
            parent = checkpoints.get(saved.parent_id) if saved.parent_id else None
            if parent is None:
                break
            steps.append([(task, write.value) for task, write in parent.ordered() if write.channel == name])
            if name in parent.channels:
                start = parent.channels[name][1]
                break
            saved = parent
        return start, [write for step in reversed(steps) for write in step]

    def _tuple(self, thread_id: str, ns: str, saved: Saved) -> CheckpointTuple:
        load = self.serde.loads_typed

        def at(checkpoint_id: str) -> RunnableConfig:
            return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}

        return CheckpointTuple(
            config=at(saved.id),
            checkpoint={**load(saved.checkpoint), "channel_values": {name: load(value) for name, (_, value) in saved.channels.items()}},
            metadata=load(saved.metadata),
            parent_config=at(saved.parent_id) if saved.parent_id else None,
            pending_writes=[(task_id, write.channel, load(write.value)) for task_id, write in saved.ordered()],
        )


def _is_returned(channel: str) -> bool:
    """Whether a channel can be one of the state, and not one by which the framework starts
    nodes."""
    return channel in _WHOLE or not channel.startswith(("__", "branch:"))


def _several(value: Any) -> list[Any]:
    return value["$writes"] if isinstance(value, dict) else [value]


def _place(config: RunnableConfig) -> tuple[str, str]:
    return str(config["configurable"]["thread_id"]), config["configurable"].get("checkpoint_ns") or ""
