"""A graph whose state has a reducer that only the graph knows. internal/test/e2e/durability_test.go
says what is wanted of it."""

import asyncio
import operator
from typing import Annotated

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    x: str
    log: Annotated[list[str], operator.add]


async def a(state: State) -> State:
    return {"log": [f"a:{state['x']}"]}


async def b(state: State, config: RunnableConfig) -> State:
    await asyncio.sleep(config["configurable"].get("hold_ms", 0) / 1000)
    return {"log": ["b"]}


async def c(state: State) -> State:
    return {"log": ["c"]}


graph = StateGraph(State).add_sequence([a, b, c]).add_edge(START, "a").compile()
