from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore, PutOp

FACTS = ["the cat sleeps all day", "a dog barks at night", "fish are silent"]


class State(TypedDict):
    question: str
    found: list


async def node(state: State, *, store: BaseStore) -> dict:
    at = ("facts", "ann")
    await store.abatch([PutOp(at, str(n), {"text": fact}) for n, fact in enumerate(FACTS)])
    await store.aput(at, "hidden", {"text": state["question"]}, index=False)
    # A call that blocks the loop of the graphs. The embedding function runs all the same.
    store.put(at, "note", {"note": "why does a dog bark"}, index=["note"])
    try:
        await store.aput(at, "unreadable", {"text": "unreadable"})
    except Exception as e:
        failure = str(getattr(e, "response", None) is not None and e.response.text)
    found = await store.asearch(("facts",), query=state["question"], limit=10)
    blocking = store.search(("facts",), query=state["question"], limit=1)
    return {"found": [[item.key, item.score is not None and item.score > 0] for item in found] + [blocking[0].key, failure]}


graph = StateGraph(State).add_node("a", node).add_edge(START, "a").compile()
