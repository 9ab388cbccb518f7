"""A node that says how far it is, in the stream mode "custom"."""

import asyncio

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    files: list[str]
    read: int


async def read_files(state: State) -> State:
    write = get_stream_writer()
    files = state.get("files") or []
    for number, name in enumerate(files, 1):
        write({"file": name, "progress": number / len(files)})
        await asyncio.sleep(0)
    return {"read": len(files)}


graph = StateGraph(State).add_node("read_files", read_files).add_edge(START, "read_files").compile()
