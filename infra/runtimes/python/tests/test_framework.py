"""What comes through the runtime is what the framework itself gives for the same calls."""

import asyncio
import importlib.util
import json
import re
import sys
import uuid
from typing import Any

import pytest
from conftest import EXAMPLES
from harness import Thread
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from slipway_runtime.encode import encode
from slipway_runtime.framework import located

CALLS: dict[str, list[Any]] = {
    "react": [{"messages": [{"role": "user", "content": "weather in paris and lima?", "id": "h1"}]}],
    "approval": [{"request": "the leak"}, Command(resume="Better.")],
    "subgraph": [{"city": "Oslo"}, Command(resume=2)],
    "map-reduce": [{"topic": "animals"}, {"topic": "food"}],
    "custom": [{"files": ["a", "b", "c"]}],
}
MODES = ["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug"]
# Ids and times that differ from run to run. Their relation to each other does not, and history
# shows it.
VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+\+00:00|[0-9a-f]{32}")


def same(value: Any) -> Any:
    return json.loads(VARYING.sub("~", encode(value).decode()))


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"python-{name}" / "agent.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.graph.copy({"checkpointer": InMemorySaver()})


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("name", list(CALLS))
def test_streams_and_history(name: str, subgraphs: bool, example: Any) -> None:
    agent, thread = example(name), Thread()
    graph = load(name)
    base = {"configurable": {"thread_id": thread.id, "graph_id": "agent"}, "metadata": {"thread_id": thread.id, "graph_id": "agent", "run_attempt": 1}}

    async def framework(given: Any, run_id: str) -> list[tuple[str, Any]]:
        config = {"run_id": uuid.UUID(run_id), **{part: {**fields, "run_id": run_id} for part, fields in base.items()}}
        options: dict[str, Any] = {"stream_mode": MODES, "subgraphs": subgraphs}
        found = []
        async for chunk in graph.astream(given, config, **options):
            ns, mode, payload = chunk if subgraphs else ((), *chunk)
            if mode == "updates" and not ns and "__interrupt__" in payload:
                found.append(("interrupt", payload["__interrupt__"]))
            else:
                found.append(("|".join((mode, *ns)), located(mode, payload)))
        return found

    async def both() -> None:
        for given in CALLS[name]:
            run_id = str(uuid.uuid4())
            wanted = await framework(given, run_id)
            command = {"resume": given.resume} if isinstance(given, Command) else None
            seen = await asyncio.to_thread(thread.run, agent, run_id=run_id, input=None if command else given, command=command,
                                           stream_mode=MODES, stream_subgraphs=subgraphs)
            order = sorted if name == "map-reduce" else list  # branches end in any order
            assert order(json.dumps(same(e), sort_keys=True) for e in seen) == order(json.dumps(same(e), sort_keys=True) for e in wanted)
            state = await graph.aget_state({"configurable": {"thread_id": thread.id}})
            assert same(thread.values) == same(state.values)
            assert thread.newest["next"] == list(state.next)
            assert same([[t["name"], t["interrupts"], t["result"]] for t in thread.newest["tasks"]]) == same(
                [[t.name, t.interrupts, t.result] for t in state.tasks])
        history = [s async for s in graph.aget_state_history({"configurable": {"thread_id": thread.id}})]
        assert [same([s.values, s.next, s.metadata, len(s.tasks)]) for s in reversed(history)] == [
            same([e["root"]["values"], e["root"]["next"], e["root"]["metadata"], len(e["root"]["tasks"])]) for e in thread.history]

    asyncio.run(both())


def test_callback_events(example: Any) -> None:
    thread = Thread()
    seen = thread.run(example("react"), input={"messages": [{"role": "user", "content": "lima?"}]}, stream_mode=["updates", "values", "events"])
    assert [list(data) for name, data in seen if name == "updates"] == [["agent"], ["tools"], ["agent"]]
    assert len([name for name, _ in seen if name == "values"]) == 4
    kinds = {(data["event"], data["name"]) for name, data in seen if name == "events"}
    assert {("on_chat_model_stream", "ScriptedModel"), ("on_tool_end", "get_weather"), ("on_chain_start", "agent")} <= kinds
    assert ("on_chain_start", "LangGraph") not in kinds
    assert thread.values["messages"][-1]["content"] == "It is foggy in Lima."


@pytest.mark.parametrize("config", [{}, {"config": {"configurable": {"checkpoint_id": "c"}}}])
def test_checkpoints_of_graphs_that_run_elsewhere_are_kept(config: dict[str, Any]) -> None:
    payload = {**config, "checkpoint": {"checkpoint_id": "c"}, "tasks": [{"id": "1", "checkpoint": {"checkpoint_ns": "n:1"}}]}
    assert located("checkpoints", payload) == payload
    assert located("debug", {"type": "checkpoint", "payload": payload}) == {"type": "checkpoint", "payload": payload}


def test_checkpoints_say_where_they_are(example: Any) -> None:
    thread = Thread()
    modes = ["checkpoints", "debug"]
    seen = thread.run(example("subgraph"), input=CALLS["subgraph"][0], stream_mode=modes, stream_subgraphs=True)
    for mode in modes:
        shown = [data for name, data in seen if name == mode]
        if mode == "debug":
            shown = [data["payload"] for data in shown if data["type"] == "checkpoint"]
        shown = [c for c in shown if not c["config"]["configurable"]["checkpoint_ns"]]
        ids = [c["config"]["configurable"]["checkpoint_id"] for c in shown]
        assert [c["checkpoint"] for c in shown] == [{"thread_id": thread.id, "checkpoint_ns": "", "checkpoint_id": id} for id in ids]
        assert [c["parent_checkpoint"] for c in shown] == [None, *(c["checkpoint"] for c in shown[:-1])]
        inside = [task["checkpoint"]["checkpoint_ns"].split(":")[0] for c in shown for task in c["tasks"] if task["checkpoint"]]
        assert inside == [task["state"]["configurable"]["checkpoint_ns"].split(":")[0] for c in shown for task in c["tasks"] if task["state"]] != []
