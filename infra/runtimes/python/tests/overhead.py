"""Measures what the runtime adds to a run: a graph of one node that does nothing, called in a loop
in this process with the framework's own checkpointer in memory, and through a started runtime over
one connection."""

import asyncio
import http.client
import json
import statistics
import sys
import time
import uuid

from harness import Agent, repository

SOURCE = '''
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph


class State(TypedDict):
    text: str


async def node(state: State) -> dict:
    return {}


graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
'''


async def in_process(runs: int) -> list[float]:
    from langgraph.checkpoint.memory import InMemorySaver

    names: dict = {}
    exec(SOURCE, names)
    graph = names["graph"]
    graph.checkpointer = InMemorySaver()
    times = []
    for _ in range(runs):
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        start = time.perf_counter()
        async for _ in graph.astream({"text": "a"}, config, stream_mode=["updates"]):
            pass
        times.append(time.perf_counter() - start)
    return times


def through_runtime(runs: int) -> list[float]:
    with repository(SOURCE) as directory, Agent(directory) as agent:
        connection = http.client.HTTPConnection("127.0.0.1", agent.port)
        times = []
        for _ in range(runs):
            body = json.dumps({"graph": "agent", "thread_id": str(uuid.uuid4()), "run_id": str(uuid.uuid4()), "input": {"text": "a"},
                               "stream_mode": ["updates"], "state": {"values": {}, "checkpoint": None, "pending": []}})
            start = time.perf_counter()
            connection.request("POST", "/invocations", body, {"Authorization": f"Bearer {agent.token}"})
            answer = connection.getresponse().read()
            times.append(time.perf_counter() - start)
            assert b"event: checkpoint" in answer and b"event: error" not in answer
    return times


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    loop = statistics.median(asyncio.run(in_process(count))[count // 10:])
    runtime = statistics.median(through_runtime(count)[count // 10:])
    print(f"p50 of {count} runs: {loop * 1e3:.2f} ms in process, {runtime * 1e3:.2f} ms through the runtime, {(runtime - loop) * 1e3:.2f} ms more")
