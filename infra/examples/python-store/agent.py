"""An agent that remembers a person from thread to thread, in the store."""

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore


async def answer(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    namespace = ("memories", config["configurable"].get("user_id", "nobody"))
    text = str(state["messages"][-1].content)
    if text.lower().startswith("remember "):
        known = await store.asearch(namespace, limit=100)
        await store.aput(namespace, f"memory-{len(known) + 1}", {"text": text[len("remember "):]})
        return {"messages": [AIMessage("I will remember that.")]}
    known = await store.asearch(namespace, limit=100)
    facts = "; ".join(sorted(item.value["text"] for item in known)) or "nothing"
    return {"messages": [AIMessage(f"I know this of you: {facts}.")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
