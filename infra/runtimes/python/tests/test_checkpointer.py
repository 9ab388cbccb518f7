import asyncio
import operator
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

try:
    from langgraph.channels.delta import DeltaChannel
except ImportError:  # it came with langgraph 1.2
    DeltaChannel = None

from slipway_runtime.checkpointer import Checkpointer, DataError, Saved


def test_conformance() -> None:
    """The framework's own suite. What is left out deletes and copies across threads, which is the
    server's to do."""

    @checkpointer_test(name="Checkpointer")
    async def one():
        yield Checkpointer()

    report = asyncio.run(validate(one))
    results = {name: (r.passed, r.failures) for name, r in report.results.items() if r.detected}
    assert results == dict.fromkeys(("put", "put_writes", "get_tuple", "list", "delete_thread"), (True, []))
    assert sum(r.tests_passed for r in report.results.values()) >= 58


class Kept:
    """Keeps the newest checkpoint alone, as a server does."""

    def __init__(self) -> None:
        self.checkpointer: Checkpointer
        self.newest: tuple[str, str, str | None, bytes] | None = None
        self.writes: dict[str, tuple[str, bytes]] = {}

    def on_checkpoint(self, ns: str, saved: Saved) -> None:
        self.newest = (ns, saved.id, saved.parent_id, self.checkpointer.data(ns, saved))
        self.writes = {}

    def on_writes(self, ns: str, saved: Saved, task_id: str) -> None:
        if self.newest and self.newest[1] == saved.id:
            self.writes[task_id] = (saved.id, self.checkpointer.writes_data(saved, task_id))

    def next(self) -> Checkpointer:
        self.checkpointer = Checkpointer("t", self)
        if self.newest:
            self.checkpointer.seed(*self.newest)
        for task_id, (checkpoint_id, data) in self.writes.items():
            self.checkpointer.seed_writes("", checkpoint_id, task_id, data)
        return self.checkpointer


def runs(graph: Any, kept: Kept, durability: str) -> list[Any]:
    """Runs the graph ten times, each with nothing but what the one before has left."""
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    found = []
    for number in range(10):
        graph.checkpointer = kept.next()
        asyncio.run(graph.ainvoke({"items": [number]}, config, durability=durability))
        graph.checkpointer = kept.next()
        found.append(asyncio.run(graph.aget_state(config)).values["items"])
    return found


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("delta", [False, True] if DeltaChannel else [False])
def test_state_comes_back_from_the_newest_checkpoint_alone(durability: str, delta: bool) -> None:
    reducer: Any = operator.add
    if delta:
        def joined(state: list, writes: list) -> list:
            return [*(state or []), *(item for write in writes for item in write)]

        reducer = DeltaChannel(joined, snapshot_frequency=3)

    class State(TypedDict):
        items: Annotated[list, reducer]

    graph: Any = StateGraph(State).add_node("node", lambda s: {"items": [-len(s["items"])]}).add_edge(START, "node").compile()
    found = runs(graph, Kept(), durability)

    graph.checkpointer = InMemorySaver()
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    wanted = [asyncio.run(graph.ainvoke({"items": [n]}, config, durability=durability))["items"] for n in range(10)]
    assert found == wanted


def test_data_that_nothing_has_written_is_refused() -> None:
    for data in (b"", b"\x81\xa1a\x01", b'{"format": 1}'):
        with pytest.raises(DataError):
            Checkpointer("t").seed("", "1", None, data)
    with pytest.raises(DataError):
        Checkpointer("t").seed_writes("", "1", "task", b"\x01")
