"""The graphs of the tests, as a repository has them."""

import asyncio
import operator
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt
from langgraph_sdk import get_client
from typing_extensions import TypedDict

DIRECTORY = Path(__file__).parent


def note(text):
    with open(DIRECTORY / "notes", "a") as file:
        file.write(text + "\n")


class State(TypedDict, total=False):
    items: Annotated[list, operator.add]
    text: str


def build(*names, **nodes):
    builder = StateGraph(State)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder


steps = build(a=lambda s: {"items": ["a"]}, b=lambda s: {"items": ["b"]}, c=lambda s: {"items": ["c"]}).compile(checkpointer=InMemorySaver())


async def branch(state):
    note(state["name"])
    if state["name"] == "slow":
        while not (DIRECTORY / "go").exists():
            await asyncio.sleep(0.01)
    if state["name"] == "broken" and not (DIRECTORY / "mended").exists():
        raise ValueError("this branch is broken")
    return {"items": [state["name"]]}


fan = StateGraph(State)
fan.add_node("branch", branch)
fan.add_conditional_edges(START, lambda s: [Send("branch", {"name": name}) for name in s["text"].split()], ["branch"])


async def wait_for_ever(state):
    note("waiting")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note("stopped")
        raise


waiting = build(wait=wait_for_ever)


def block(state):
    note("blocking")
    while not (DIRECTORY / "go").exists():
        time.sleep(0.01)
    return {"text": "done"}


async def block_loop(state):
    return block(state)


blocking, loop_blocking = build(block=block), build(block=block_loop)


def fail(state):
    note(state["text"])
    if state["text"] == "exit":
        sys.exit(3)
    if state["text"] == "interrupt":
        raise KeyboardInterrupt("stop")
    if state["text"] == "speechless":
        raise Speechless
    raise RuntimeError("it is broken: \ud800")


class Speechless(Exception):
    def __str__(self):
        return self.response.text


async def fail_async(state):
    return fail(state)


failing, failing_async = build(ok=lambda s: {"items": ["ok"]}, fail=fail), build(ok=lambda s: {"items": ["ok"]}, fail=fail_async)


def ask(name):
    return lambda state: {"items": [f"{name}: {interrupt(name + '?')}"]}


two = StateGraph(State).add_node("x", ask("x")).add_node("y", ask("y")).add_edge(START, "x").add_edge(START, "y")

# Both nodes write the text, which holds only one value of a step, if the text of the input says so.
clashing = (
    StateGraph(State)
    .add_node("x", lambda s: {"items": ["x"], "text": "x"})
    .add_node("y", lambda s: {"items": ["y"], **({"text": "y"} if s["text"] == "clash" else {})})
    .add_edge(START, "x").add_edge(START, "y")
)
three_in_turn = build(x=ask("x"), y=ask("y"), z=ask("z"))

remembering = build(count=lambda s: {"items": [len(s.get("items") or [])], "text": str(len(s.get("items") or []))})


class Outer(TypedDict, total=False):
    text: str


persistent = StateGraph(Outer).add_node("inner", remembering.compile(checkpointer=True)).add_edge(START, "inner")


called = build(first=lambda s: {"items": ["first"]}, ask=ask("inner")).compile()
calling = build(call=lambda s: {"items": [(called if s else None).invoke({"items": []})["items"]]})


class Context(TypedDict, total=False):
    language: str


async def show(state, config: RunnableConfig, runtime: Runtime[Context]):
    return {"items": [{
        "context": runtime.context, "configurable": {k: v for k, v in config["configurable"].items() if not k.startswith("__")},
        "internal": [k for k in config["configurable"] if k.startswith("__pregel_evil")], "metadata": config["metadata"],
        "identity": getattr(config["configurable"].get("langgraph_auth_user"), "identity", None), "tags": config.get("tags"), "limit": config.get("recursion_limit"),
    }]}


showing = StateGraph(State, context_schema=Context).add_node("show", show).add_edge(START, "show")


def name_tracers(state, config: RunnableConfig):
    tracers = [handler for handler in config["callbacks"].handlers if isinstance(handler, LangChainTracer)]
    return {"items": [[tracer.project_name, str(tracer.example_id)] for tracer in tracers]}


traced = StateGraph(State).add_node("name_tracers", name_tracers).add_edge(START, "name_tracers")


@dataclass
class Defaults:
    model: str = "a model"


def tell(state, runtime: Runtime[Defaults]):
    return {"items": [runtime.context.model]}


defaults = StateGraph(State, context_schema=Defaults).add_node("tell", tell).add_edge(START, "tell")
saying = (
    StateGraph(MessagesState)
    .add_node("one", lambda s: {"messages": AIMessage("one")})
    .add_node("two", lambda s: {"messages": [AIMessage("two"), AIMessage("three")]})
    .add_edge(START, "one").add_edge("one", "two")
)
own = get_client()


async def reach(state):
    made = await own.threads.create()
    return {"items": [made["thread_id"], *[part.data async for part in own.runs.stream(None, "agent", input={})]]}


reaching = StateGraph(State).add_node("reach", reach).add_edge(START, "reach")
endless = StateGraph(State).add_node("again", lambda s: note("again")).add_edge(START, "again").add_edge("again", "again")


def route(state):
    return "tools" if state["messages"][-1].content == "use a tool" else END


chat = StateGraph(MessagesState)
chat.add_node("model", lambda s: {"messages": [AIMessage(f"answer {len(s['messages'])}", id=f"ai{len(s['messages'])}")]})
chat.add_node("tools", lambda s: {"messages": [AIMessage("tool")]})
chat.add_edge(START, "model")
chat.add_conditional_edges("model", route, ["tools", END])


def bound(config: RunnableConfig):
    """A factory that binds all of the run's configuration to its graph."""
    return chat.compile().with_config(config)


async def bound_later(config: RunnableConfig):
    return bound(config)


@dataclass
class Point:
    x: int


class Typed(TypedDict):
    point: Point


typed = StateGraph(Typed).add_node("move", lambda s: {"point": Point(s["point"].x + 1 if s.get("point") else 0)}).add_edge(START, "move")


@task
async def double(n):
    note(f"double {n}")
    return 2 * n


@entrypoint()
async def flow(inputs: dict, *, previous: Any = None):
    doubled = [await double(n) for n in inputs["numbers"]]
    answer = interrupt({"doubled": doubled})
    return entrypoint.final(value={"answer": answer, "previous": previous}, save=answer)
