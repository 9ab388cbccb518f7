"""What the releases of the framework differ in.

A repository brings its own release, and the runtime adapts to it: the rest of the runtime is
written for the newest, and asks this module for what an older one lacks.
"""

import dataclasses
import hashlib
import inspect
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from langgraph.pregel import Pregel
from langgraph.types import Interrupt, StreamMode

try:
    from langgraph_sdk import Auth
except ImportError:  # langgraph-sdk 0.1.42, which comes with the framework 0.3, has none
    Auth = None  # type: ignore[assignment,misc]

try:
    from langgraph_sdk import Encryption, EncryptionContext

    if not hasattr(Encryption, "context") or "field" not in inspect.signature(EncryptionContext).parameters:
        Encryption = None  # type: ignore[assignment,misc]
except ImportError:  # before langgraph-sdk 0.3.1
    Encryption = EncryptionContext = None  # type: ignore[assignment,misc]

try:
    from langgraph_sdk.encryption.types import DecryptResult
except ImportError:  # what a handler returned was the plaintext
    DecryptResult = None  # type: ignore[assignment,misc]

try:
    from langgraph_sdk.runtime import ServerRuntime, _ExecutionRuntime as ExecutionRuntime, _ReadRuntime as ReadRuntime
except ImportError:  # before langgraph-sdk 0.3.5

    @dataclass(frozen=True, kw_only=True)
    class ReadRuntime:  # type: ignore[no-redef]
        """What a factory is told of a call that runs nothing."""

        access_context: str
        store: Any
        user: Any = None
        execution_runtime: Any = None

    @dataclass(frozen=True, kw_only=True)
    class ExecutionRuntime(ReadRuntime):  # type: ignore[no-redef]
        """What a factory is told of a run."""

        context: Any = None

        def __post_init__(self) -> None:
            object.__setattr__(self, "execution_runtime", self)

    ServerRuntime = ReadRuntime | ExecutionRuntime  # type: ignore[misc]

__all__ = ["Auth", "DecryptResult", "Encryption", "EncryptionContext", "ExecutionRuntime", "ReadRuntime", "ServerRuntime", "named", "stream_options", "translated"]

_PARAMETERS = inspect.signature(Pregel.astream).parameters
# The modes that were parts of the mode "debug" before they were modes.
_OF_DEBUG = {"checkpoint": "checkpoints", "task": "tasks", "task_result": "tasks"}
_LACKING = set(_OF_DEBUG.values()) - set(get_args(StreamMode))
# Interrupts had their namespace in place of an id.
_NAMELESS = "id" not in {field.name for field in dataclasses.fields(Interrupt)}

# What names a checkpoint in a configuration.
_PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


def stream_options(modes: set[str], durability: str | None, context: Any) -> dict[str, Any]:
    """The options of `astream` for the modes. No durability means that the graph keeps its state
    elsewhere."""
    options: dict[str, Any] = {"stream_mode": sorted(modes - _LACKING | ({"debug"} if modes & _LACKING else set())), "subgraphs": True}
    if durability is None:
        return options
    if "durability" in _PARAMETERS:
        options["durability"] = durability
    elif "checkpoint_during" in _PARAMETERS:
        options["checkpoint_during"] = True
    if "context" in _PARAMETERS:  # else it is among the configurable values
        options["context"] = context
    return options


async def translated(chunks: AsyncGenerator[tuple], modes: set[str]) -> AsyncGenerator[tuple]:
    """The chunks as the newest release has them: each with its namespace, mode and payload."""
    try:
        async for ns, mode, payload in chunks:
            if mode == "debug" and _LACKING:
                part = _OF_DEBUG[payload["type"]]
                if part in modes:
                    yield ns, part, _named(payload["payload"])
                if mode not in modes:
                    continue
            elif mode == "messages" and ns and ns == tuple(str(payload[1].get("langgraph_checkpoint_ns")).split("|")):
                ns = ns[:-1]  # the task, not the graph that it is in
            yield ns, mode, payload
    finally:
        await chunks.aclose()


def _named(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives the questions of a task or of a checkpoint's tasks their ids."""
    if not _NAMELESS:
        return payload
    if "tasks" in payload:
        return {**payload, "tasks": [_named(task) for task in payload["tasks"]]}
    if payload.get("interrupts"):
        return {**payload, "interrupts": [named(question) for question in payload["interrupts"]]}
    return payload


def named(question: Any) -> Any:
    """A question with the id by which it is answered."""
    if not _NAMELESS:
        return question
    if isinstance(question, Mapping):
        question = Interrupt(**{field.name: question[field.name] for field in dataclasses.fields(Interrupt) if field.name in question})
    # Releases that take answers by id say which it is; to others it is only a name.
    own_id = getattr(question, "interrupt_id", None) or hashlib.md5("|".join(question.ns or ()).encode(), usedforsecurity=False).hexdigest()
    return {"value": question.value, "id": own_id}


def located(mode: str, payload: Any) -> Any:
    """A payload with the places of its checkpoints in the form that states have. The framework
    gives them as configurations. A graph that runs elsewhere has the form already, from the server
    there."""
    if mode == "debug" and payload["type"] == "checkpoint":
        return {**payload, "payload": located("checkpoints", payload["payload"])}
    if mode != "checkpoints" or "checkpoint" in payload:
        return payload
    tasks = [{**task, "checkpoint": _place(task.get("state"))} for task in payload["tasks"]]
    return {**payload, "checkpoint": _place(payload["config"]), "parent_checkpoint": _place(payload.get("parent_config")), "tasks": tasks}


def _place(config: Any) -> dict[str, Any] | None:
    place = config.get("configurable") if isinstance(config, Mapping) else None
    return {key: place[key] for key in _PLACE if key in place} if place else None
