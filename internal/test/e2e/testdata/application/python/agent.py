from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    text: str

def node(state, config):
    return {"text": config["configurable"].get("accept-language", "no header")}

graph = StateGraph(State).add_node("a", node).add_edge(START, "a").compile()
