from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph_sdk import get_client


class State(TypedDict, total=False):
    user: Any
    permissions: Any
    owners: list[str]


async def node(state: State, config: RunnableConfig) -> State:
    configurable = config["configurable"]
    user = configurable["langgraph_auth_user"]
    threads = await get_client().threads.search(limit=100)
    return {
        "user": [user["identity"], user["role"], configurable["langgraph_auth_user_id"]], "permissions": list(configurable["langgraph_auth_permissions"]),
        "owners": sorted({thread["metadata"].get("owner", "nobody") for thread in threads}),
    }


graph = StateGraph(State).add_node("a", node).add_edge(START, "a").compile()
