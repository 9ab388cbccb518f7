"""Map-reduce: one branch for each subject, all at once, and one that chooses among what they
made."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


class Branch(TypedDict):
    subject: str


SUBJECTS = {"animals": ["lions", "elephants", "penguins"], "food": ["soup", "bread"]}


def list_subjects(state: State) -> State:
    return {"subjects": SUBJECTS.get(state["topic"], [state["topic"]])}


def to_branches(state: State) -> list[Send]:
    return [Send("tell_joke", {"subject": subject}) for subject in state["subjects"]]


async def tell_joke(branch: Branch) -> State:
    return {"jokes": [f"Why do {branch['subject']} never use a computer? They are afraid of the mouse."]}


def choose(state: State) -> State:
    return {"best": max(state["jokes"], key=len)}


builder = StateGraph(State)
builder.add_node("list_subjects", list_subjects)
builder.add_node("tell_joke", tell_joke)
builder.add_node("choose", choose)
builder.add_edge(START, "list_subjects")
builder.add_conditional_edges("list_subjects", to_branches, ["tell_joke"])
builder.add_edge("tell_joke", "choose")
graph = builder.compile()
