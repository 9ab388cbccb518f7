"""Keeps what it is told in its state, shows it, stores it, asks about it, and fails with it if it
is told to."""

import asyncio
from typing import TypedDict

from langgraph.config import get_store, get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    text: str
    seen: list[str]
    answer: str
    slow: float
    fail: bool


async def remember(state: State) -> State:
    store = get_store()
    await store.aput(("notes",), "last", {"text": state["text"]})
    kept = await store.aget(("notes",), "last")
    write = get_stream_writer()
    write({"shown": state["text"]})
    for _ in range(20 if state.get("slow") else 0):
        await asyncio.sleep(state["slow"] / 20)
        write({"shown": state["text"]})
    if state.get("fail"):
        raise ValueError(state["text"])
    return {"seen": [kept.value["text"]]}


def ask(state: State) -> State:
    return {"answer": interrupt({"question": state["text"]})}


graph = StateGraph(State).add_node("remember", remember).add_node("ask", ask).add_edge(START, "remember").add_edge("remember", "ask").compile(name="agent")
