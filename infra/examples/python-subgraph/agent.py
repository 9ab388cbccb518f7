"""A graph as a node of another: the inner one asks a person in its middle, and goes on there."""

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Booking(TypedDict, total=False):
    city: str
    hotel: str
    nights: int


def find_hotel(state: Booking) -> Booking:
    return {"hotel": f"Grand Hotel {state['city']}"}


def ask_nights(state: Booking) -> Booking:
    return {"nights": interrupt(f"How many nights at the {state['hotel']}?")}


booking = StateGraph(Booking)
booking.add_node("find_hotel", find_hotel)
booking.add_node("ask_nights", ask_nights)
booking.add_edge(START, "find_hotel")
booking.add_edge("find_hotel", "ask_nights")


class Trip(Booking, total=False):
    summary: str


def choose_city(state: Trip) -> Trip:
    return {"city": state.get("city") or "Lima"}


def summarize(state: Trip) -> Trip:
    return {"summary": f"{state['nights']} nights at the {state['hotel']}"}


builder = StateGraph(Trip)
builder.add_node("choose_city", choose_city)
builder.add_node("book", booking.compile())
builder.add_node("summarize", summarize)
builder.add_edge(START, "choose_city")
builder.add_edge("choose_city", "book")
builder.add_edge("book", "summarize")
graph = builder.compile()
