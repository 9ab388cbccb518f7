"""What stream transformers make for clients is what the framework itself makes of the same run."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from harness import Agent, Thread, events, repository

pytest.importorskip("langgraph.stream", reason="the release has no transformers")

SOURCE = """
import asyncio

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.stream import StreamChannel, StreamTransformer
from langgraph.types import interrupt


class Seen(StreamTransformer):
    required_stream_modes = ("values", "updates", "messages", "custom", "tasks")

    def init(self):
        self.seen, self.late, self.inside = StreamChannel("seen"), StreamChannel("late"), StreamChannel()
        return {"seen": self.seen, "late": self.late, "inside": self.inside}

    def process(self, event):
        data = event["params"]["data"]
        if event["method"] == "messages":
            data = data[0] if isinstance(data[0], dict) else {"whole": data[0].content}
            data = {key: value for key, value in data.items() if key in ("event", "index", "delta", "content", "whole")}
        if event["method"] == "values":
            data = [sorted(data), len(event["params"].get("interrupts", ()))]
        if event["method"] in ("tasks", "updates"):
            data = sorted(name for name in data if name != "metadata")
        if data == "fail":
            raise ValueError("a transformer fails")
        self.seen.push([event["method"], len(event["params"]["namespace"]), data])
        self.inside.push("inside")
        return True

    async def afinalize(self):
        self.late.push("the end")

    async def afail(self, error):
        self.late.push(str(error))


class Scheduling(StreamTransformer):
    requires_async = True
    before_builtins = True

    def init(self):
        self.late = StreamChannel("later")
        self.schedule(self.wait())
        return {"later": self.late}

    def process(self, event):
        if event["method"] == "updates":
            self.late.push("an event that another transformer asked for")
        return True

    async def wait(self):
        self.late.push("at once")
        await asyncio.sleep(0.01)
        self.late.push("scheduled")


class Native(StreamTransformer):
    _native = True

    def init(self):
        return {"native": StreamChannel("native")}

    def process(self, event):
        return True


async def speak(state):
    model = GenericFakeChatModel(messages=iter([AIMessage("one two three", id="m1")]))
    get_stream_writer()({"step": 1})
    return {"messages": [await model.ainvoke("hello"), AIMessage("whole", id="m2")]}


def ask(state):
    if state["messages"][0].content == "fail":
        get_stream_writer()("fail")
    return {"messages": [AIMessage(interrupt("?"), id="m3")]}


inner = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak").compile()
builder = StateGraph(MessagesState).add_node("inner", inner).add_node("ask", ask).add_edge(START, "inner").add_edge("inner", "ask")
graph = builder.compile(transformers=[Seen, Scheduling, Native])
native = builder.compile(transformers=[Native])
"""
# What the server asks of a run whose client subscribes to channels.
SHOWN = ["updates", "values", "messages", "custom", "tasks", "tools"]
INPUT = {"messages": [{"role": "user", "content": "hi", "id": "h1"}]}


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with repository(SOURCE, agent="./agent.py:graph", native="./agent.py:native") as directory, Agent(directory) as started:
        yield started


def framework(given: Any) -> list[tuple[str, Any]]:
    """What the framework's own stream of events has for channels with names."""
    module: dict[str, Any] = {"__name__": "graph_of_the_test"}
    exec(SOURCE, module)

    async def events() -> list[tuple[str, Any]]:
        from langgraph.checkpoint.memory import InMemorySaver

        graph = module["graph"].copy({"checkpointer": InMemorySaver()})
        run = await graph.astream_events(given, {"configurable": {"thread_id": "t"}}, version="v3")
        found = []
        async with run:
            async for event in run:
                if event["method"].startswith("custom:"):
                    found.append((event["method"].removeprefix("custom:"), event["params"]["data"]))
        return found

    return asyncio.run(events())


def extensions(events: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(data["name"], data["payload"]) for name, data in events if name == "custom" and "payload" in data]


def of(channel: str, found: list[tuple[str, Any]]) -> list[Any]:
    return [payload for name, payload in found if name == channel]


def test_channels_with_names_are_shown(agent: Agent) -> None:
    wanted = framework(INPUT)
    assert {name for name, _ in wanted} == {"seen", "late", "later"}
    thread = Thread()
    shown = extensions(thread.run(agent, input=INPUT, stream_mode=SHOWN, stream_subgraphs=True))
    for channel in ("seen", "late"):
        assert of(channel, shown) == of(channel, wanted), channel
    assert sorted(of("later", shown)) == sorted(of("later", wanted))
    thread.run(agent, command={"resume": "yes"}, stream_mode=SHOWN, stream_subgraphs=True)
    assert [m["content"] for m in thread.values["messages"]] == ["hi", "one two three", "whole", "yes"]


def test_nothing_is_shown_before_the_first_checkpoint(agent: Agent) -> None:
    names = [name for name, _ in events(agent.post(Thread().invocation(input=INPUT, stream_mode=SHOWN, stream_subgraphs=True)))]
    assert names.index("checkpoint") < names.index("custom") < names.index("updates")


def test_an_error_of_a_transformer_is_one_of_the_run(agent: Agent) -> None:
    given = {"messages": [{"role": "user", "content": "fail", "id": "h1"}]}
    with pytest.raises(ValueError, match="a transformer fails"):
        framework(given)
    shown = Thread().run(agent, input=given, stream_mode=SHOWN, stream_subgraphs=True)
    assert shown[-1] == ("error", {"error": "ValueError", "message": "a transformer fails"})
    assert of("late", extensions(shown)) == ["a transformer fails"]


@pytest.mark.parametrize(("graph", "modes"), [("agent", ["updates", "messages", "custom"]), ("native", SHOWN)])
def test_runs_that_show_no_channels_run_no_transformers(agent: Agent, graph: str, modes: list[str]) -> None:
    shown = Thread().run(agent, graph=graph, input=INPUT, stream_mode=modes, stream_subgraphs=True)
    assert extensions(shown) == [] and "updates" in [name for name, _ in shown]


@pytest.mark.parametrize(
    ("exported", "channels"),
    [
        ("def stream_transformers():\n    return [Counting]", {"counted"}),
        ("def stream_transformers():\n    return [Counting(())]", {"counted"}),
        ("def stream_transformers():\n    raise ValueError", set()),
        ("stream_transformers = [Counting]", set()),
    ],
)
def test_a_module_exports_transformers(exported: str, channels: set[str]) -> None:
    counting = """
class Counting(StreamTransformer):
    def init(self):
        self.counted = StreamChannel("counted")
        return {"counted": self.counted}

    def process(self, event):
        self.counted.push(event["method"])
        return True

"""
    with repository(SOURCE + counting + exported, agent="./agent.py:native") as directory, Agent(directory) as started:
        shown = extensions(Thread().run(started, input=INPUT, stream_mode=SHOWN, stream_subgraphs=True))
    assert {name for name, _ in shown} == channels
