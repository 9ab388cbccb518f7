"""Asks a person before a mail is sent, in the form that the Agent Inbox shows."""

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    to: str
    text: str
    sent: str
    ignored: bool


def draft(state: State) -> State:
    return {"text": f"Dear {state['to']}"}


def review(state: State) -> Command:
    question = {
        "action_request": {"action": "send_mail", "args": {"to": state["to"], "text": state["text"]}},
        "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
        "description": f"A mail to {state['to']}",
    }
    answer = interrupt([question])[0]
    if answer["type"] == "ignore":
        return Command(goto=END, update={"ignored": True})
    if answer["type"] == "response":
        return Command(goto="review", update={"text": f"{state['text']}, {answer['args']}"})
    if answer["type"] == "edit":
        return Command(goto="send", update=answer["args"]["args"])
    return Command(goto="send")


def send(state: State) -> State:
    return {"sent": f"{state['to']}: {state['text']}"}


builder = StateGraph(State).add_node("draft", draft).add_node("review", review, destinations=("review", "send", END))
builder.add_node("send", send).add_edge(START, "draft").add_edge("draft", "review").add_edge("send", END)
graph = builder.compile()
