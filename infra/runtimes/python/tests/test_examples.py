"""The framework's documentation examples, each through HTTP on a started runtime, with the state
carried by nothing but its events."""

import json
from typing import Any

import pytest
from harness import Thread
from test_store import StoreServer


def modes(seen: list[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in seen]


def test_react(example: Any) -> None:
    agent, thread = example("react"), Thread()
    seen = thread.run(agent, input={"messages": [{"role": "user", "content": "weather in paris and oslo?"}]}, stream_mode=["updates", "messages"])
    assert [m["type"] for m in thread.values["messages"]] == ["human", "ai", "tool", "tool", "ai"]
    assert thread.values["messages"][-1]["content"] == "It is sunny in Paris. It is snowing in Oslo."
    assert [list(data) for name, data in seen if name == "updates"] == [["agent"], ["tools"], ["agent"]]
    chunks = [data for name, data in seen if name == "messages" and data[0]["type"] == "AIMessageChunk"]
    assert "".join(chunk["content"] for chunk, _ in chunks) == "It is sunny in Paris. It is snowing in Oslo."
    assert {metadata["langgraph_node"] for _, metadata in chunks} == {"agent"}
    assert len({chunk["id"] for chunk, _ in chunks if chunk["content"]}) == 1
    assert [entry["root"]["metadata"]["step"] for entry in thread.history] == [-1, 0, 1, 2, 3]
    assert [entry["root"]["next"] for entry in thread.history] == [["__start__"], ["agent"], ["tools"], ["agent"], []]
    parents = [entry["root"]["parent_id"] for entry in thread.history]
    assert parents == ["", *(entry["root"]["id"] for entry in thread.history[:-1])]
    returned = [result["messages"] for entry in thread.history[1:] for result in entry["root"]["results"].values()]
    assert [[m["content"] for m in messages] for messages in returned] == [
        ["weather in paris and oslo?"], [""], ["It is sunny in Paris.", "It is snowing in Oslo."], ["It is sunny in Paris. It is snowing in Oslo."],
    ]

    thread.run(agent, input={"messages": [{"role": "user", "content": "and lima?"}]})
    assert [m["type"] for m in thread.values["messages"]] == ["human", "ai", "tool", "tool", "ai", "human", "ai", "tool", "ai"]
    assert thread.values["messages"][-1]["content"] == "It is foggy in Lima."


@pytest.mark.parametrize(("answer", "status", "draft"), [
    (True, "sent", "Dear customer, about the leak: we are on it."),
    (False, "discarded", "Dear customer, about the leak: we are on it."),
    ("Better.", "sent", "Better."),
])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_approval(example: Any, answer: Any, status: str, draft: str, durability: str) -> None:
    agent, thread = example("approval"), Thread()
    seen = thread.run(agent, input={"request": "the leak"}, durability=durability)
    [question] = next(data for name, data in seen if name == "interrupt")
    assert question["value"]["question"] == "Send this?"
    assert modes(seen) == ["updates", "interrupt"]
    assert thread.newest["next"] == ["approve"]
    assert thread.newest["tasks"][0]["interrupts"] == [question]
    assert len(thread.history) == 3

    seen = thread.run(agent, command={"resume": answer}, durability=durability)
    assert (thread.values["status"], thread.values["draft"], thread.newest["next"]) == (status, draft, [])
    assert [next(iter(data)) for name, data in seen if name == "updates"] == ["approve", "send" if status == "sent" else "discard"]


def test_an_answer_by_the_id_of_its_question(example: Any) -> None:
    agent, thread = example("approval"), Thread()
    seen = thread.run(agent, input={"request": "the leak"})
    thread.run(agent, command={"resume": {seen[-1][1][0]["id"]: True}})
    assert thread.values["status"] == "sent"


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_subgraph(example: Any, durability: str) -> None:
    agent, thread = example("subgraph"), Thread()
    seen = thread.run(agent, input={"city": "Oslo"}, stream_subgraphs=True, durability=durability)
    [child] = {name.split("|", 1)[1] for name in modes(seen) if "|" in name}
    assert [data for name, data in seen if name == f"updates|{child}"][0] == {"find_hotel": {"hotel": "Grand Hotel Oslo"}}
    assert [data[0]["value"] for name, data in seen if name == "interrupt"] == ["How many nights at the Grand Hotel Oslo?"]
    [task] = thread.newest["tasks"]
    assert (task["name"], task["interrupts"][0]["value"]) == ("book", "How many nights at the Grand Hotel Oslo?")
    inner = thread.history[-1]["subgraphs"][child]
    assert task["checkpoint"]["checkpoint_ns"] == child
    assert (inner["values"], inner["next"]) == ({"city": "Oslo", "hotel": "Grand Hotel Oslo"}, ["ask_nights"])
    assert inner["tasks"][0]["interrupts"][0]["value"] == "How many nights at the Grand Hotel Oslo?"
    assert not inner["persistent"]

    seen = thread.run(agent, command={"resume": 3}, durability=durability)
    # The inner graph has gone on in its middle, and is not shown to those who have not asked for
    # it.
    assert seen[0][0] == "updates" and set(modes(seen)) == {"updates"}
    assert [list(data) for _, data in seen] == [["book"], ["summarize"]]
    assert thread.values["summary"] == "3 nights at the Grand Hotel Oslo"


def test_a_subgraph_is_drawn_when_it_is_asked_for(example: Any) -> None:
    described = json.loads(example("subgraph").post({"operation": "describe"}).read())["graphs"]["agent"]
    drawings = [described["graph"], *described["xray"]]
    assert not [node for drawing in drawings for node in drawing["nodes"] if "id" in node.get("data", {})], "no client sees the modules"
    names = [[node["id"] for node in drawing["nodes"]] for drawing in drawings]
    assert names == [
        ["__start__", "choose_city", "book", "summarize", "__end__"],
        ["__start__", "choose_city", "summarize", "__end__", "book:find_hotel", "book:ask_nights"],
    ]


def test_a_paused_subgraph_is_changed(example: Any) -> None:
    agent, thread = example("subgraph"), Thread()
    thread.run(agent, input={"city": "Oslo"})
    ns = thread.newest["tasks"][0]["checkpoint"]["checkpoint_ns"]
    place = {"configurable": {"checkpoint_ns": ns, "checkpoint_id": ""}}
    thread.run(agent, operation="update_state", config=place, supersteps=[{"updates": [{"values": {"hotel": "Inn"}}]}])
    inner = thread.history[-1]["subgraphs"][ns]
    assert (inner["values"], inner["next"]) == ({"city": "Oslo", "hotel": "Inn"}, ["ask_nights"])
    thread.run(agent, command={"resume": 3})
    assert thread.values["summary"] == "3 nights at the Inn"


def test_map_reduce(example: Any) -> None:
    agent, thread = example("map-reduce"), Thread()
    thread.run(agent, input={"topic": "animals"})
    assert len(thread.values["jokes"]) == 3 and "elephants" in thread.values["best"]
    assert [t["name"] for t in thread.history[2]["root"]["tasks"]] == ["tell_joke"] * 3


def test_custom(example: Any) -> None:
    agent, thread = example("custom"), Thread()
    seen = thread.run(agent, input={"files": ["a", "b"]}, stream_mode=["updates", "custom"])
    assert seen == [("custom", {"file": "a", "progress": 0.5}), ("custom", {"file": "b", "progress": 1.0}), ("updates", {"read_files": {"read": 2}})]


def test_store(example: Any) -> None:
    agent = example("store")
    with StoreServer() as store:
        for text in ("remember I like tea", "remember I live in Oslo"):
            thread = Thread()
            seen = thread.run(agent, input={"messages": [{"role": "user", "content": text}]}, server_url=store.url,
                              config={"configurable": {"user_id": "u1"}})
            assert [name for name, _ in seen] == ["updates"], seen
        for user, wanted in (("u1", "I know this of you: I like tea; I live in Oslo."), ("u2", "I know this of you: nothing.")):
            thread = Thread()
            thread.run(agent, input={"messages": [{"role": "user", "content": "who am I?"}]}, server_url=store.url,
                       config={"configurable": {"user_id": user}})
            assert thread.values["messages"][-1]["content"] == wanted
