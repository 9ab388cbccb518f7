"""A graph that does nothing: what a run of it takes is what its server takes."""

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    n: int


async def nothing(state: State) -> State:
    return {"n": 1}


graph = StateGraph(State).add_node(nothing).add_edge(START, "nothing").compile()
