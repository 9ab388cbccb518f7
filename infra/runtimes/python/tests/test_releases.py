"""What holds with every release of the framework that a repository may bring. The other tests use
what only the newest have."""

from collections.abc import Iterator

import pytest
from harness import Agent, Thread, repository

GRAPHS = """
import operator
from typing import Annotated
from typing_extensions import TypedDict
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


class State(TypedDict):
    items: Annotated[list, operator.add]


def asks(state):
    return {"items": [interrupt("name?")]}


def configured(state, config):
    return {"items": [config["configurable"]["user"]]}


def talk(state):
    return {"messages": [GenericFakeChatModel(messages=iter([AIMessage("one two")])).invoke(state["messages"])]}


def fails(state):
    raise ValueError("it fails")


def chain(schema, *nodes):
    return StateGraph(schema).add_sequence(nodes).add_edge(START, nodes[0][0] if isinstance(nodes[0], tuple) else nodes[0].__name__)


inner = chain(State, asks).compile()
steps = chain(State, ("a", lambda s: {"items": ["a"]}), asks, ("b", lambda s: {"items": ["b"]}))
nested = chain(State, ("outer", inner), ("b", lambda s: {"items": ["b"]}))
chat = chain(MessagesState, talk)
failing = chain(State, ("a", lambda s: {"items": ["a"]}), fails)


def factory(config):
    return chain(State, configured)


@entrypoint()
def flow(inputs: dict) -> dict:
    return {"items": inputs["items"] + [interrupt("flow?")]}
"""


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    names = ("steps", "nested", "chat", "failing", "factory", "flow")
    with repository(GRAPHS, **{name: f"./agent.py:{name}" for name in names}) as directory, Agent(directory) as started:
        yield started


@pytest.mark.parametrize(("graph", "question", "answered"), [
    ("steps", "name?", ["x", "a", "me", "b"]), ("nested", "name?", ["x", "x", "me", "b"]), ("flow", "flow?", ["x", "me"]),
])
@pytest.mark.parametrize("durability", ["async", "sync"])
def test_a_question_is_asked_and_answered(agent: Agent, graph: str, question: str, answered: list[str], durability: str) -> None:
    thread = Thread()
    seen = thread.run(agent, graph=graph, input={"items": ["x"]}, stream_mode=["values", "updates", "tasks", "checkpoints", "debug"], durability=durability)
    asked = [data for name, data in seen if name == "interrupt"]
    assert [q["value"] for q in asked[0]] == [question] and asked[0][0]["id"] and "ns" not in asked[0][0], seen
    assert {name for name, _ in seen} >= {"tasks", "checkpoints", "debug"}
    (task,) = [task for task in thread.newest["tasks"] if task["interrupts"]]
    assert task["interrupts"] == asked[0]
    thread.run(agent, graph=graph, command={"resume": "me"}, durability=durability)
    values = thread.values if "items" in thread.values else next(iter(thread.values.values()))
    assert values["items"] == answered
    assert thread.newest["next"] == []


def test_modes_that_were_not_asked_for_are_not_shown(agent: Agent) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="chat", input={"messages": [{"role": "user", "content": "hello"}]}, stream_mode=["messages", "updates"], context={"user": "u"})
    assert {name for name, _ in seen} == {"messages", "updates"}
    assert "".join(data[0]["content"] for name, data in seen if name == "messages") == "one two"
    assert [m["content"] for m in thread.values["messages"]] == ["hello", "one two"]


def test_a_factory_gets_the_configuration(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="factory", input={"items": []}, config={"configurable": {"user": "u"}})
    assert thread.values == {"items": ["u"]}


def test_an_error_and_an_update(agent: Agent) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="failing", input={"items": ["x"]})
    assert seen[-1] == ("error", {"error": "ValueError", "message": "it fails"})
    assert thread.newest["next"] == ["fails"] and "it fails" in thread.newest["tasks"][0]["error"]
    thread.run(agent, graph="failing", operation="update_state", supersteps=[{"updates": [{"values": {"items": ["y"]}, "as_node": "fails"}]}])
    assert (thread.values["items"], thread.newest["next"]) == (["x", "a", "y"], [])


def test_events_of_callbacks(agent: Agent) -> None:
    seen = Thread().run(agent, graph="chat", input={"messages": [{"role": "user", "content": "hello"}]}, stream_mode=["events", "values"])
    assert {"values", "events"} == {name for name, _ in seen}
    assert "on_chat_model_stream" in {data["event"] for name, data in seen if name == "events"}
