"""Gives the messages that nodes return their ids before anybody sees them.

The framework's reducer of messages does so when a step ends. A client that reads what a node has
returned would be shown a message without an id, and could not tell it from the one that the state
has afterwards. An id that is there is kept by the reducer, so it is the same everywhere.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage

CHANNEL = "messages"


def identify_update(payload: Any) -> None:
    """Takes an event of the stream mode "updates"."""
    if isinstance(payload, Mapping):
        for update in payload.values():
            for part in update if isinstance(update, list) else (update,):
                if isinstance(part, Mapping):
                    _identify(part.get(CHANNEL))


def identify_result(payload: Any) -> None:
    """Takes an event of the stream mode "tasks". The framework's releases differ in the form of a
    result: an object by channel, or a list of pairs."""
    result = payload.get("result") if isinstance(payload, Mapping) else None
    pairs = result.items() if isinstance(result, Mapping) else result or ()
    identify_writes(pair for pair in pairs if isinstance(pair, (tuple, list)) and len(pair) == 2)


def identify_writes(writes: Iterable[tuple[str, Any]]) -> None:
    """Takes what a task has written, by channel."""
    for channel, value in writes:
        if channel == CHANNEL:
            _identify(value)


def _identify(value: Any) -> None:
    if isinstance(value, Mapping):
        value = value.get("$writes", ())  # several writes of one task
    for message in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(message, BaseMessage):
            if message.id is None:
                message.id = str(uuid.uuid4())
        elif isinstance(message, (list, tuple)):
            _identify(message)
