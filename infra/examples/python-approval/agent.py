"""A person approves: the graph drafts a mail, pauses, and sends it only if it is told to."""

from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    request: str
    draft: str
    status: str


def write(state: State) -> State:
    return {"draft": f"Dear customer, about {state['request']}: we are on it."}


def approve(state: State) -> Command[Literal["send", "discard"]]:
    answer = interrupt({"question": "Send this?", "draft": state["draft"]})
    if isinstance(answer, str):  # a better text
        return Command(goto="send", update={"draft": answer})
    return Command(goto="send" if answer else "discard")


def send(state: State) -> State:
    return {"status": "sent"}


def discard(state: State) -> State:
    return {"status": "discarded"}


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("approve", approve)
builder.add_node("send", send)
builder.add_node("discard", discard)
builder.add_edge(START, "write")
builder.add_edge("write", "approve")
builder.add_edge("send", END)
builder.add_edge("discard", END)
graph = builder.compile()
