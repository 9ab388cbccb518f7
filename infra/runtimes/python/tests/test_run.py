"""What a run does, through HTTP on a started runtime."""

import base64
import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from harness import Agent, Thread, events, repository, wait_for

SOURCE = (Path(__file__).parent / "graphs.py").read_text()

GRAPHS = ("steps", "fan", "waiting", "blocking", "loop_blocking", "failing", "failing_async", "two", "clashing", "three_in_turn", "persistent", "calling", "showing", "saying", "defaults", "reaching", "endless",
          "chat", "bound", "bound_later", "typed", "flow", "traced")


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with repository(SOURCE, **{name: f"./agent.py:{name}" for name in GRAPHS}) as path:
        yield path


@pytest.fixture(scope="module")
def agent(directory: Path) -> Iterator[Agent]:
    with Agent(directory) as started:
        yield started


@pytest.fixture(autouse=True)
def _clean(directory: Path) -> Iterator[None]:
    yield
    for name in ("go", "mended", "notes"):
        (directory / name).unlink(missing_ok=True)


def notes(directory: Path) -> list[str]:
    file = directory / "notes"
    return file.read_text().split("\n")[:-1] if file.exists() else []


def names(seen: list[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in seen]


def test_own_checkpointer_is_replaced_with_a_warning(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": [1]})
    assert len(thread.history) == 5
    assert "graph 'steps': its own checkpointer is replaced by the platform's" in agent.log()


def test_finished_branches_are_not_run_again_after_a_kill(directory: Path) -> None:
    with Agent(directory) as agent:
        thread = Thread()
        invocation = thread.invocation(graph="fan", input={"text": "one slow two"})
        stream = events(agent.post(invocation))
        while sum(ns == "" for ns, *_ in thread.history[-1]["writes"] if thread.history) < 2 if thread.history else True:
            thread.take(*next(stream))
        wait_for(lambda: "slow" in notes(directory))
        agent.kill()
    with Agent(directory) as agent:
        (directory / "go").touch()
        thread.run(agent, **{**invocation, "attempt": 2, "state": thread.state()})
    assert thread.values["items"] == ["one", "slow", "two"]
    assert sorted(notes(directory)) == ["one", "slow", "slow", "two"]


def test_finished_branches_are_not_run_again_after_a_failure(agent: Agent, directory: Path) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="fan", input={"text": "one broken"})
    assert seen[-1] == ("error", {"error": "ValueError", "message": "this branch is broken"})
    said = r"^ERROR slipway_runtime: graph 'fan', run \S+, agent\.py, line \d+: ValueError: this branch is broken$"
    assert re.search(said, agent.log(), re.MULTILINE)
    assert [(t["error"], t["result"]) for t in thread.newest["tasks"]] == [(None, {"items": ["one"]}), ("ValueError('this branch is broken')", None)]
    (directory / "mended").touch()
    thread.run(agent, graph="fan")
    assert thread.values["items"] == ["one", "broken"]
    assert sorted(notes(directory)) == ["broken", "broken", "one"]


def test_a_second_attempt_goes_on_where_the_first_was(agent: Agent) -> None:
    thread = Thread()
    invocation = thread.invocation(graph="steps", input={"items": [1]})
    for name, data in events(agent.post(invocation)):
        if name in ("checkpoint", "writes"):
            thread.take(name, data)
        if name == "checkpoint" and data["next"] == ["b"]:
            break  # as if the worker had died here
    seen = thread.run(agent, **{**invocation, "attempt": 2, "state": thread.state()})
    assert [list(data) for _, data in seen] == [["b"], ["c"]]
    assert thread.values["items"] == [1, "a", "b", "c"]


def test_an_answer_is_not_given_twice_by_a_second_attempt(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="three_in_turn", input={"text": ""})
    invocation = thread.invocation(graph="three_in_turn", command={"resume": "1"})
    thread.run(agent, **invocation)
    seen = thread.run(agent, **{**invocation, "attempt": 2, "state": thread.state()})
    assert seen[-1][0] == "interrupt" and seen[-1][1][0]["value"] == "y?"
    assert thread.values["items"] == ["x: 1"]


def test_what_tasks_have_returned_outlives_new_input(agent: Agent) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="two", input={"text": ""})
    questions = {q["value"]: q["id"] for name, data in seen if name == "interrupt" for q in data}
    thread.run(agent, graph="two", command={"resume": {questions["y?"]: 2}})
    invocation = thread.invocation(graph="two", input={"text": "", "items": ["new"]})
    seen = thread.run(agent, **invocation)
    assert {q["value"] for name, data in seen if name == "interrupt" for q in data} == {"x?", "y?"}
    assert thread.values["items"] == ["y: 2", "new"]
    thread.run(agent, **{**invocation, "attempt": 2, "state": thread.state()})
    assert thread.values["items"] == ["y: 2", "new"]


@pytest.mark.parametrize("pending", [[], [{"values": {"items": ["earlier"]}, "as_node": "__input__"}]])
def test_a_thread_goes_on_after_returns_that_its_graph_refuses(agent: Agent, pending: list[dict[str, Any]]) -> None:
    thread = Thread()
    for _ in range(2):
        seen = thread.run(agent, graph="clashing", input={"text": "clash"})
        assert [data["error"] for name, data in seen if name == "error"] == ["InvalidUpdateError"]
        assert (thread.newest["next"], thread.values) == (["x", "y"], {"items": [], "text": "clash"})
    thread.pending = pending
    seen = thread.run(agent, graph="clashing", input={"items": ["new"], "text": ""})
    assert "error" not in names(seen)
    earlier = [item for update in pending for item in update["values"]["items"]]
    assert (thread.newest["next"], thread.values) == ([], {"items": [*earlier, "new", "x", "y"], "text": "x"})


def test_two_questions_at_once(agent: Agent) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="two", input={"text": ""})
    questions = {q["value"]: q["id"] for name, data in seen if name == "interrupt" for q in data}
    assert set(questions) == {"x?", "y?"}
    seen = thread.run(agent, graph="two", command={"resume": {questions["y?"]: 2}})
    assert {t["name"]: [q["value"] for q in t["interrupts"]] for t in thread.newest["tasks"] if t["interrupts"]}["x"] == ["x?"]
    assert thread.newest["next"] == ["x"]
    thread.run(agent, graph="two", command={"resume": {questions["x?"]: 1}})
    assert thread.values["items"] == ["x: 1", "y: 2"]


@pytest.mark.parametrize("addressed", [False, True])
def test_fork_from_an_older_checkpoint(agent: Agent, addressed: bool) -> None:
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": [1]})
    older = next(i for i, entry in enumerate(thread.history) if entry["root"]["next"] == ["b"])
    root = thread.history[older]["root"]
    config = {"configurable": {"checkpoint_id": root["id"]}} if addressed else None
    count = len(thread.history)
    thread.run(agent, at=older, graph="steps", config=config)
    assert thread.values["items"] == [1, "a", "b", "c"]
    assert thread.history[count]["root"]["parent_id"] == root["id"]
    # Replaying from an addressed checkpoint begins a branch with a checkpoint of its own, as the
    # framework does since 1.2.
    assert thread.history[count]["root"]["metadata"]["source"] in ("fork", "loop")
    thread.run(agent, at=older, graph="steps", input={"items": [2]})
    assert thread.values["items"] == [1, "a", 2, "a", "b", "c"]


def test_an_older_question_is_asked_again_when_replayed(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="three_in_turn", input={"text": ""})
    asked = len(thread.history) - 1
    thread.run(agent, graph="three_in_turn", command={"resume": "1"})
    config = {"configurable": {"checkpoint_id": thread.history[asked]["root"]["id"]}}
    seen = thread.run(agent, at=asked, graph="three_in_turn", config=config)
    assert seen[-1][1][0]["value"] == "x?"
    thread.run(agent, graph="three_in_turn", command={"resume": "other"})
    assert thread.values["items"] == ["x: other"]


@pytest.mark.skipif(tuple(map(int, version("langgraph").split(".")[:2])) < (1, 2), reason="the release begins no branch at an update")
def test_a_question_after_an_update_is_asked_again_when_replayed(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="three_in_turn", input={"text": ""})
    steps = [{"updates": [{"values": {"text": "new"}, "as_node": "__start__"}]}]
    assert thread.run(agent, graph="three_in_turn", operation="update_state", supersteps=steps) == []
    thread.run(agent, graph="three_in_turn")
    asked = len(thread.history) - 1
    assert thread.newest["metadata"]["source"] == "update"
    thread.run(agent, graph="three_in_turn", command={"resume": "1"})
    config = {"configurable": {"checkpoint_id": thread.history[asked]["root"]["id"]}}
    seen = thread.run(agent, at=asked, graph="three_in_turn", config=config)
    assert seen[-1][1][0]["value"] == "x?"
    thread.run(agent, graph="three_in_turn", command={"resume": "other"})
    assert thread.values["items"] == ["x: other"]


def test_a_question_of_a_subgraph_is_asked_again_when_replayed(agent: Agent) -> None:
    """The client names the subgraph's checkpoint, whose map names that of the graph."""
    thread = Thread()
    thread.run(agent, graph="calling", input={"text": ""})
    asked = len(thread.history) - 1
    root = thread.history[asked]["root"]["id"]
    [(ns, inner)] = thread.history[asked]["subgraphs"].items()
    configurable = {"checkpoint_ns": ns, "checkpoint_id": inner["id"], "checkpoint_map": {"": root, ns: inner["id"]}}
    thread.run(agent, graph="calling", command={"resume": "1"})
    seen = thread.run(agent, at=asked, graph="calling", config={"configurable": configurable})
    assert seen[-1][1][0]["value"] == "inner?"
    thread.run(agent, graph="calling", command={"resume": "other"})
    assert thread.values["items"] == [["first", "inner: other"]]


def test_update_state(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": [1]})
    before = thread.newest
    steps = [{"updates": [{"values": {"items": ["u"]}, "as_node": "a"}]}]
    assert thread.run(agent, graph="steps", operation="update_state", supersteps=steps) == []
    assert (thread.values["items"], thread.newest["next"]) == ([1, "a", "b", "c", "u"], ["b"])
    assert (thread.newest["parent_id"], thread.newest["metadata"]["source"]) == (before["id"], "update")
    thread.run(agent, graph="steps")
    assert thread.values["items"] == [1, "a", "b", "c", "u", "b", "c"]


def test_update_state_of_a_new_thread_in_several_steps(agent: Agent) -> None:
    thread = Thread()
    steps = [
        {"updates": [{"values": {"items": ["in"]}, "as_node": "__input__"}]},
        {"updates": [{"values": {"items": ["in"]}, "as_node": "__start__"}]},
        {"updates": [{"command": {"update": {"items": ["a"]}}, "as_node": "a"}]},
    ]
    assert thread.run(agent, graph="steps", operation="update_state", supersteps=steps) == []
    assert len(thread.history) == 3
    assert (thread.values["items"], thread.newest["next"]) == (["in", "a"], ["b"])


def test_update_state_at_an_older_checkpoint_is_a_fork(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": [1]})
    older = next(i for i, entry in enumerate(thread.history) if entry["root"]["next"] == ["b"])
    thread.run(agent, at=older, graph="steps", operation="update_state", supersteps=[{"updates": [{"values": {"items": ["u"]}}]}])
    assert (thread.values["items"], thread.newest["next"]) == ([1, "a", "u"], ["b"])
    assert thread.newest["parent_id"] == thread.history[older]["root"]["id"]


@pytest.mark.skipif(tuple(map(int, version("langgraph").split(".")[:2])) < (1, 2), reason="the release finds no subgraph that a function calls")
def test_update_state_at_an_older_checkpoint_of_a_subgraph(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="calling", input={"text": ""})
    entry = thread.history[-1]
    [(ns, asking)] = entry["subgraphs"].items()
    thread.run(agent, graph="calling", command={"resume": "1"})
    state = thread.state(len(thread.history) - 2)
    newest = state["checkpoint"]["checkpoints"].pop()
    assert newest["id"] != asking["id"]
    state["checkpoint"]["checkpoints"] += [{key: asking[key] for key in newest}, newest]
    configurable = {"checkpoint_ns": ns, "checkpoint_id": asking["id"], "checkpoint_map": {"": entry["root"]["id"], ns: asking["id"]}}
    steps = [{"updates": [{"values": {"items": ["u"]}}]}]
    response = agent.post(thread.invocation(state=state, graph="calling", operation="update_state", supersteps=steps, config={"configurable": configurable}))
    [made] = [data for name, data in events(response) if name == "checkpoint" and data["ns"] == ns]
    assert (made["parent_id"], made["values"]["items"], made["next"]) == (asking["id"], ["first", "u"], ["ask"])


def test_a_copy_of_a_checkpoint_has_its_values(agent: Agent) -> None:
    """The framework says of a copy that nothing has changed since the parent of what it copies."""
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": [1]})
    before = thread.newest
    steps = [{"updates": [{"values": {"items": ["u"]}, "as_node": "c"}]}, {"updates": [{"as_node": "__copy__"}]}]
    assert thread.run(agent, graph="steps", operation="update_state", supersteps=steps) == []
    assert (thread.values["items"], thread.newest["parent_id"]) == ([1, "a", "b", "c", "u"], before["id"])
    assert thread.newest["metadata"]["source"] == "fork"
    thread.run(agent, graph="steps", input={"items": [2]})
    assert thread.values["items"] == [1, "a", "b", "c", "u", 2, "a", "b", "c"]


def test_an_update_that_the_graph_refuses(agent: Agent) -> None:
    thread = Thread()
    [(name, data)] = thread.run(agent, graph="steps", operation="update_state", supersteps=[{"updates": [{"values": {}, "as_node": "nowhere"}]}])
    assert (name, data) == ("error", {"error": "InvalidUpdateError", "message": "Node nowhere does not exist"})
    assert thread.history == []


def test_pending_updates_come_before_the_input(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="chat", input={"messages": [{"role": "user", "content": "1"}]})
    partial = {"type": "ai", "content": "unfini", "id": "partial", "response_metadata": {"incomplete": True}}
    thread.pending = [
        {"values": {"messages": [{"role": "user", "content": "2", "id": "h2"}]}, "as_node": "__input__"},
        {"values": {"messages": [partial]}, "as_node": "model"},
        {"values": {"messages": [{"role": "user", "content": "3", "id": "h3"}]}, "as_node": "a node of an older revision"},
    ]
    thread.run(agent, graph="chat", input={"messages": [{"role": "user", "content": "4"}]})
    assert [m["content"] for m in thread.values["messages"]] == ["1", "answer 1", "2", "unfini", "3", "4", "answer 6"]
    assert thread.values["messages"][3]["response_metadata"] == {"incomplete": True}
    assert thread.pending == []


@pytest.mark.parametrize("graph", ["bound", "bound_later"])
def test_a_graph_with_a_bound_configuration_takes_the_input_after_pending_updates(agent: Agent, graph: str) -> None:
    thread = Thread()
    thread.run(agent, graph=graph, input={"messages": [{"role": "user", "content": "one", "id": "h1"}]})
    thread.pending = [{"values": {"messages": [{"type": "ai", "content": "partial", "id": "p1"}]}, "as_node": "model"}]
    thread.run(agent, graph=graph, input={"messages": [{"role": "user", "content": "two", "id": "h2"}]})
    assert [m["content"] for m in thread.values["messages"]] == ["one", "answer 1", "partial", "two", "answer 4"]
    assert [e["root"]["metadata"]["source"] for e in thread.history[-4:]] == ["update", "input", "loop", "loop"]


def test_a_graph_with_a_bound_configuration_goes_on_in_a_second_attempt(agent: Agent) -> None:
    thread = Thread()
    invocation = thread.invocation(graph="bound", input={"messages": [{"role": "user", "content": "use a tool", "id": "h1"}]})
    for name, data in events(agent.post(invocation)):
        if name in ("checkpoint", "writes"):
            thread.take(name, data)
        if name == "checkpoint" and data["next"] == ["model"]:
            break  # as if the worker had died here
    thread.run(agent, **{**invocation, "attempt": 2, "state": thread.state()})
    assert [m["content"] for m in thread.values["messages"]] == ["use a tool", "answer 1"]


def test_pending_updates_of_a_thread_without_a_checkpoint(agent: Agent) -> None:
    thread = Thread()
    thread.pending = [{"values": {"messages": [{"role": "user", "content": "0"}]}, "as_node": "__input__"},
                      {"values": {"messages": [{"type": "ai", "content": "par"}]}, "as_node": "model"}]
    thread.run(agent, graph="chat", input={"messages": [{"role": "user", "content": "1"}]})
    assert [m["content"] for m in thread.values["messages"]] == ["0", "par", "1", "answer 3"]


def test_the_input_of_a_run_that_was_interrupted_before_its_first_step(agent: Agent) -> None:
    thread, given = Thread(), {"items": ["in"]}
    response = agent.post(thread.invocation(graph="steps", input=given))
    for name, data in events(response):
        thread.take(name, data)
        if name == "checkpoint":
            break  # the server hears no more of it
    response.close()
    assert thread.newest["metadata"]["source"] == "input"
    thread.pending = [{"values": given, "as_node": "__input__"}]
    thread.run(agent, graph="steps", input={"items": ["new"]})
    assert [item for item in thread.values["items"] if item in ("in", "new")] == ["in", "new"]


@pytest.mark.parametrize("graph", ["waiting", "blocking"])
def test_a_closed_connection_stops_the_run(agent: Agent, directory: Path, graph: str) -> None:
    response = agent.post(Thread().invocation(graph=graph, input={"text": ""}))
    wait_for(lambda: notes(directory))
    assert agent.ping()["status"] == "HealthyBusy"
    response.connection.close()
    response.close()
    wait_for(lambda: agent.ping()["status"] == "Healthy")
    if graph == "waiting":
        wait_for(lambda: "stopped" in notes(directory))
    (directory / "go").touch()


@pytest.mark.parametrize("graph", ["blocking", "loop_blocking"])
def test_a_node_that_blocks_does_not_block_ping(agent: Agent, directory: Path, graph: str) -> None:
    thread = Thread()
    response = agent.post(thread.invocation(graph=graph, input={"text": ""}))
    wait_for(lambda: notes(directory))
    for _ in range(20):
        start = time.monotonic()
        assert agent.ping()["status"] == "HealthyBusy"
        assert time.monotonic() - start < 1
    (directory / "go").touch()
    list(thread.follow(response))
    assert thread.values["text"] == "done"


def test_many_invocations_at_once(agent: Agent, directory: Path) -> None:
    """All are in their blocking node before the first may go on."""
    threads = [Thread() for _ in range(40)]
    responses = [agent.post(thread.invocation(graph="blocking", input={"text": str(n)})) for n, thread in enumerate(threads)]
    wait_for(lambda: len(notes(directory)) == len(threads))
    (directory / "go").touch()
    for thread, response in zip(threads, responses, strict=True):
        list(thread.follow(response))
        assert thread.values["text"] == "done"
    wait_for(lambda: agent.ping()["status"] == "Healthy")


@pytest.mark.parametrize("graph", ["failing", "failing_async"])
@pytest.mark.parametrize(("text", "wanted"), [
    ("x", {"error": "RuntimeError", "message": "it is broken: \ufffd"}), ("exit", {"error": "SystemExit", "message": "3"}),
    ("interrupt", {"error": "KeyboardInterrupt", "message": "stop"}),
    ("speechless", {"error": "Speechless", "message": "the text of the error cannot be made: AttributeError"})])
def test_a_failing_graph_is_an_event(agent: Agent, graph: str, text: str, wanted: dict[str, str]) -> None:
    thread = Thread()
    seen = thread.run(agent, graph=graph, input={"text": text})
    assert seen[0] == ("updates", {"ok": {"items": ["ok"]}})
    assert seen[-1] == ("error", wanted)
    assert (thread.values, thread.newest["next"]) == ({"items": ["ok"], "text": text}, ["fail"])
    thread.run(agent, graph="steps", input={"items": []})
    assert agent.process.poll() is None


def test_a_cancellation_that_nobody_asked_for_is_an_event() -> None:
    source = """
import asyncio
from langgraph.graph import START, MessagesState, StateGraph

calls = []

def graph():
    calls.append(1)
    if len(calls) > 1:  # the first one describes the graph
        raise asyncio.CancelledError("no more")
    return StateGraph(MessagesState).add_node("a", lambda state: {}).add_edge(START, "a")
"""
    with repository(source) as directory, Agent(directory) as agent:
        assert Thread().run(agent, graph="agent", input={}) == [("error", {"error": "CancelledError", "message": "no more"})]


def test_a_run_that_has_ended_leaves_no_checkpoints_in_memory() -> None:
    source = """
import gc
from typing import TypedDict
from langgraph.graph import START, StateGraph
from slipway_runtime.checkpointer import Checkpointer

class State(TypedDict):
    kept: int
    text: str

def count(state):
    return {"kept": sum(len(c._threads) > 0 for c in gc.get_objects() if isinstance(c, Checkpointer)), "text": "x"}

gc.disable()
graph = StateGraph(State).add_node("count", count).add_edge(START, "count").compile()
"""
    with repository(source) as directory, Agent(directory) as agent:
        for _ in range(3):
            thread = Thread()
            thread.run(agent, graph="agent", input={"text": ""})
            assert thread.values["kept"] == 1


def test_limits_and_empty_input_are_errors(agent: Agent) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="endless", input={"items": []}, config={"recursion_limit": 3})
    assert seen[-1][1]["error"] == "GraphRecursionError"
    assert Thread().run(agent, graph="steps")[0][1]["error"] == "EmptyInputError"


def test_interrupt_before_and_after(agent: Agent) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="steps", input={"items": []}, interrupt_before=["b"])
    assert seen[-1] == ("interrupt", [])
    assert thread.newest["next"] == ["b"]
    seen = thread.run(agent, graph="steps", interrupt_after=["b"])
    assert (thread.values["items"], thread.newest["next"], seen[-1]) == (["a", "b"], ["c"], ("interrupt", []))
    seen = thread.run(agent, graph="steps", interrupt_before="*")
    assert (thread.values["items"], thread.newest["next"]) == (["a", "b", "c"], [])
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": []}, interrupt_after="*")
    assert thread.newest["next"] == ["b"]


def test_commands(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": []}, interrupt_before=["b"])
    thread.run(agent, graph="steps", command={"update": {"items": ["u"]}, "goto": "c"})
    assert thread.values["items"] == ["a", "u", "b", "c", "c"]
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": []})
    thread.run(agent, graph="steps", command={"update": [["items", [1]], ["items", [2]]], "goto": [{"node": "c", "input": {"items": []}}]})
    assert thread.values["items"] == ["a", "b", "c", 1, 2, "c"]


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_an_update_that_makes_no_step(agent: Agent, durability: str) -> None:
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": []}, durability=durability)
    count = len(thread.history)
    for text in "uv":
        thread.run(agent, graph="steps", command={"update": {"items": [text]}}, durability=durability)
    assert (thread.values["items"], thread.newest["next"], len(thread.history)) == (["a", "b", "c", "u", "v"], [], count)
    thread.run(agent, graph="steps", input={"items": ["i"]}, durability=durability)
    assert thread.values["items"] == ["a", "b", "c", "u", "v", "i", "a", "b", "c"]


def test_an_update_while_a_question_is_open(agent: Agent) -> None:
    thread = Thread()
    thread.run(agent, graph="three_in_turn", input={"items": []})
    thread.run(agent, graph="three_in_turn", command={"update": {"items": ["u"]}})
    assert (thread.values["items"], thread.newest["tasks"][0]["interrupts"][0]["value"]) == (["u"], "x?")
    thread.run(agent, graph="three_in_turn", command={"resume": "yes", "update": {"items": ["v"]}})
    assert (thread.values["items"], thread.newest["tasks"][0]["interrupts"][0]["value"]) == (["u", "v", "x: yes"], "y?")


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_tasks_have_their_paths(agent: Agent, durability: str) -> None:
    thread = Thread()
    thread.run(agent, graph="fan", input={"text": "one two"}, interrupt_before="*", durability=durability)
    assert [task["path"] for task in thread.newest["tasks"]] == [["__pregel_push", 0, False], ["__pregel_push", 1, False]]
    thread = Thread()
    thread.run(agent, graph="steps", input={"items": []})
    paths = [[task["path"] for task in entry["root"]["tasks"]] for entry in thread.history]
    assert paths == [[["__pregel_pull", name]] for name in ("__start__", "a", "b", "c")] + [[]]


def test_a_subgraph_that_keeps_its_state_from_call_to_call(agent: Agent) -> None:
    thread = Thread()
    for wanted in ("0", "1", "2"):
        thread.run(agent, graph="persistent", input={"text": ""})
        assert thread.values["text"] == wanted
    assert set(thread.persistent) == {"inner"} and thread.persistent["inner"]["values"]["items"] == [0, 1, 2]


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_a_subgraph_that_a_synchronous_node_calls(agent: Agent, durability: str) -> None:
    thread = Thread()
    seen = thread.run(agent, graph="calling", input={"items": []}, stream_subgraphs=True, durability=durability)
    assert ("interrupt", "inner?") in [(name, data[0]["value"]) for name, data in seen if name == "interrupt"]
    [inner] = thread.history[-1]["subgraphs"].values()
    assert (inner["values"]["items"], inner["next"], inner["tasks"][0]["interrupts"][0]["value"]) == (["first"], ["ask"], "inner?")
    thread.run(agent, graph="calling", command={"resume": "yes"}, durability=durability)
    assert thread.values["items"] == [["first", "inner: yes"]]


def test_configuration_and_context(agent: Agent) -> None:
    thread, run_id = Thread(), str(uuid.uuid4())
    config = {"configurable": {"user": "u", "__pregel_evil": 1, "thread_id": "another"}, "tags": ["t"], "metadata": {"m": 1}, "recursion_limit": 7}
    thread.run(agent, graph="showing", run_id=run_id, input={"items": []}, config=config, context={"language": "fr"})
    [shown] = thread.values["items"]
    assert shown["context"] == {"language": "fr"}
    configurable = shown["configurable"]
    assert (configurable["user"], configurable["thread_id"], configurable["run_id"], configurable["graph_id"]) == ("u", thread.id, run_id, "showing")
    assert (shown["internal"], shown["tags"], shown["limit"], shown["metadata"]["m"], shown["metadata"]["run_id"]) == ([], ["t"], 7, 1, run_id)
    assert thread.newest["metadata"]["m"] == 1 and thread.newest["metadata"]["user"] == "u"

    thread = Thread()
    seen = thread.run(agent, graph="showing", input={"items": []}, config={"configurable": {"language": "de", "other": 1}})
    assert names(seen) == ["updates"], seen
    assert thread.values["items"][0]["context"] == {"language": "de"}


def test_a_run_without_a_context_gets_the_defaults_of_the_schema(agent: Agent) -> None:
    for context in (None, {}):
        thread = Thread()
        assert names(thread.run(agent, graph="defaults", input={"items": []}, context=context)) == ["updates"]
        assert thread.values["items"] == ["a model"]


def test_a_graph_sees_what_it_sees_elsewhere(agent: Agent) -> None:
    thread, run_id = Thread(), str(uuid.uuid4())
    forged = {"langgraph_auth_user": {"identity": "evil"}, "langgraph_auth_user_id": "evil", "langgraph_auth_permissions": ["all"], "assistant_id": "evil"}
    thread.run(agent, graph="showing", run_id=run_id, input={"items": []}, config={"configurable": forged}, context={"language": "fr", **forged},
               assistant_id="an assistant", metadata={"of": "the run", "tree": {"a": [1]}, "list": [1, {"b": 2}]}, user={"identity": "a user", "permissions": ["read"]}, headers={"x-tier": "gold"},
               trace={"langsmith-trace": "an id", "langsmith-tags": ["a", "b"], "langsmith-metadata": {"nested": True}})
    [shown] = thread.values["items"]
    configurable = shown["configurable"]
    wanted = {"assistant_id": "an assistant", "graph_id": "showing", "run_id": run_id, "thread_id": thread.id, "x-tier": "gold", "langgraph_auth_user_id": "a user",
              "langsmith-trace": "an id", "langsmith-tags": ["a", "b"], "langsmith-metadata": {"nested": True},
              "langgraph_auth_user": {"identity": "a user", "display_name": "a user", "is_authenticated": True, "permissions": ["read"]}, "langgraph_auth_permissions": ["read"]}
    assert {key: configurable[key] for key in wanted} == wanted
    assert shown["identity"] == "a user"
    wanted = {"assistant_id": "an assistant", "graph_id": "showing", "run_id": run_id, "thread_id": thread.id, "of": "the run", "tree": {"a": [1]},
              "list": [1, {"b": 2}]}
    assert {key: shown["metadata"][key] for key in wanted} == wanted
    del wanted["thread_id"]  # which the server says of each checkpoint itself
    for checkpoint in thread.history:
        metadata = checkpoint["root"]["metadata"]
        assert {key: metadata[key] for key in wanted} == wanted

    thread.run(agent, graph="showing", input={"items": []}, config={"configurable": forged}, context=forged)
    assert not any("evil" in str(value) for key, value in thread.values["items"][-1]["configurable"].items() if key.startswith("langgraph_auth_"))


def test_a_run_is_traced_where_its_client_says(directory: Path, agent: Agent) -> None:
    tracer = {"project_name": "a project", "example_id": str(uuid.uuid4())}
    with Agent(directory, LANGSMITH_TRACING="true", LANGSMITH_PROJECT="its own", LANGSMITH_ENDPOINT="http://127.0.0.1:9", LANGSMITH_API_KEY="none") as tracing:
        for wanted in (tracer, None, {"example_id": None}):
            for modes in (["updates"], ["messages"]):
                thread = Thread()
                thread.run(tracing, graph="traced", input={"items": []}, tracer=wanted, stream_mode=modes)
                [[project, example]] = thread.values["items"]
                # Releases differ in whether a tracer already knows the project of its process.
                assert (project, example) == ("a project", tracer["example_id"]) if wanted is tracer else project in (None, "its own") and example == "None"
    thread = Thread()
    thread.run(agent, graph="traced", input={"items": []}, tracer=tracer)
    assert thread.values["items"] == []


def test_the_client_without_a_url_reaches_the_own_server_for_the_runs_user(agent: Agent) -> None:
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, dict(self.headers.items())))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            streams = self.path.endswith("/stream")
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.end_headers()
            self.wfile.write(b'event: values\ndata: "streamed"\n\n' if streams else b'{"thread_id": "made"}')

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        thread = Thread()
        thread.run(agent, graph="reaching", input={"items": []}, server_url=f"http://127.0.0.1:{server.server_address[1]}/d/x", user={"identity": "a user"})
    finally:
        server.shutdown()
        server.server_close()
    assert thread.values["items"] == ["made", "streamed"]
    assert [path for path, _ in seen] == ["/d/x/threads", "/d/x/runs/stream"]
    for _, headers in seen:
        assert headers["x-api-key"] == agent.token
        assert json.loads(base64.urlsafe_b64decode(headers["x-slipway-caller"])) == {"identity": "a user", "display_name": "a user", "is_authenticated": True, "permissions": []}


@pytest.mark.parametrize("mode", ["updates", "tasks"])
@pytest.mark.parametrize("durability", ["async", "sync"])
def test_a_message_has_the_same_id_wherever_it_is_shown(agent: Agent, mode: str, durability: str) -> None:
    thread = Thread()
    shown = thread.run(agent, graph="saying", input={"messages": []}, stream_mode=[mode], durability=durability)
    ids = [m["id"] for name, data in shown if name == mode for m in messages_in(data)]
    assert ids == [m["id"] for m in thread.values["messages"]]
    assert len(set(ids)) == 3 and None not in ids


def messages_in(data: Any) -> list[Any]:
    if isinstance(data, dict):
        return [data] if data.get("type") == "ai" else [m for key, value in data.items() if key != "input" for m in messages_in(value)]
    return [m for value in data for m in messages_in(value)] if isinstance(data, list) else []


def test_own_types_survive_a_restart(agent: Agent, directory: Path) -> None:
    thread = Thread()
    thread.run(agent, graph="typed", input={})
    with Agent(directory) as another:
        thread.run(another, graph="typed", input={})
        assert thread.values == {"point": {"x": 1}}


def test_functional_api(agent: Agent, directory: Path) -> None:
    thread = Thread()
    for answer, previous in (("first", None), ("second", "first")):
        seen = thread.run(agent, graph="flow", input={"numbers": [1, 2]})
        assert seen[-1][1][0]["value"] == {"doubled": [2, 4]}
        seen = thread.run(agent, graph="flow", command={"resume": answer})
        assert seen[-1] == ("updates", {"flow": {"answer": answer, "previous": previous}})
        assert thread.values == {"answer": answer, "previous": previous}
    assert notes(directory) == ["double 1", "double 2"] * 2  # not once more after the answer


def test_requests_that_are_refused(agent: Agent) -> None:
    invocation = Thread().invocation(graph="steps", input={"items": []})

    def refusal(body: Any, **headers: str) -> tuple[int, str]:
        response = agent.post(body, **headers)
        return response.status, json.loads(response.read())["error"]

    assert refusal(invocation, Authorization="Bearer wrong") == (401, "the invoke token is missing or wrong")
    assert refusal(b"{")[0] == 400
    assert refusal([]) == (400, "the body is not a JSON object")
    assert refusal({**invocation, "operation": "x"})[0] == 400
    assert refusal({**invocation, "config": {"configurable": 1}}) == (400, "configurable: must be of type dict")
    assert refusal({**invocation, "command": {"goto": 3}})[0] == 400
    assert refusal({**invocation, "state": {"checkpoint": {"checkpoints": [{"id": "1", "data": "?"}]}}}) == (400, "data: is not base64")
    assert refusal({**invocation, "graph": "none"})[0] == 404
    response = agent.post({**invocation, "state": {"checkpoint": {"id": "1", "checkpoints": [{"id": "1", "ns": "", "data": "AAAA"}]}}})
    [(name, data)] = events(response)
    assert name == "error" and data["message"].startswith("the stored checkpoint 1 cannot be read")


def test_the_signature(agent: Agent) -> None:
    import hmac

    body = json.dumps(Thread().invocation(graph="steps", input={"items": []})).encode()

    def status(at: int, nonce: str = "nonce", extra: str = "") -> int:
        signature = hmac.new(agent.token.encode(), f"{at}.nonce".encode(), "sha256").hexdigest()
        return agent.post(body, **{"X-Slipway-Signature": f"t={at},n={nonce},v1={signature}{extra}"}).status

    now = int(time.time())
    assert status(now) == status(now - 290) == status(now, extra=",v2=x") == 200
    assert status(now, "other") == status(now - 310) == status(now + 310) == 401
    assert agent.post(body, **{"X-Slipway-Signature": "nonsense"}).status == 401


def test_sigterm_lets_running_invocations_finish(directory: Path) -> None:
    with Agent(directory) as agent:
        thread = Thread()
        response = agent.post(thread.invocation(graph="blocking", input={"text": ""}))
        wait_for(lambda: notes(directory))
        agent.process.terminate()
        with pytest.raises(OSError):
            wait_for(lambda: not agent.ping())
        (directory / "go").touch()
        list(thread.follow(response))
        assert thread.values["text"] == "done"
        assert agent.process.wait(10) == 0


def test_a_graph_waits_for_a_caller_that_reads_slowly(agent: Agent, directory: Path) -> None:
    response = agent.post(Thread().invocation(graph="endless", input={"text": "x" * 300_000}, config={"recursion_limit": 100}))
    made = 0

    def rests() -> bool:
        nonlocal made
        before, made = made, len(notes(directory))
        time.sleep(0.5)
        return made == before > 0

    wait_for(rests)
    assert made < 60
    *_, last = events(response)
    assert last[1]["error"] == "GraphRecursionError" and len(notes(directory)) >= 100
