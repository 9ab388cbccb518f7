"""Drives threads through the Python SDK. Arguments: the agent's URL, the key."""

import uuid

from langgraph_sdk.errors import NotFoundError
from story import ANSWERED, FAST, SLOW, ask, create, expect, refused, tell, types


def ids(threads):
    return [thread["thread_id"] for thread in threads]


async def found(client):
    of = {"test": str(uuid.uuid4())}
    threads = [await create(client, metadata={**of, "n": n}) for n in range(3)]
    await client.runs.wait(threads[0], "agent", input=ask("sf"), config=FAST)
    await client.runs.create(threads[1], "agent", input=ask("sf"), config=SLOW)
    expect("by creation", ids(await client.threads.search(metadata=of, sort_by="created_at", sort_order="asc")), threads)
    pages = [ids(await client.threads.search(metadata=of, sort_by="created_at", sort_order="asc", limit=2, offset=n)) for n in (0, 2)]
    expect("in pages", pages, [threads[:2], threads[2:]])
    expect("by status", ids(await client.threads.search(metadata=of, status="busy")), [threads[1]])
    expect("by ids", ids(await client.threads.search(ids=[threads[2]])), [threads[2]])
    [shown] = await client.threads.search(ids=[threads[0]], select=["thread_id"], extract={"last": "values.messages[-1].type"})
    expect("what is shown", shown, {"thread_id": threads[0], "extracted": {"last": "ai"}})
    expect("the counts", [await client.threads.count(metadata=of), await client.threads.count(metadata=of, status="busy")], [3, 1])
    await client.threads.prune(threads)
    expect("after all are pruned", await client.threads.count(metadata=of), 0)


async def changed(client):
    thread = await create(client, metadata={"a": 1})
    expect("the metadata", (await client.threads.update(thread, metadata={"b": 2}, ttl=60))["metadata"], {"a": 1, "b": 2})
    got = await client.threads.get(thread, include=["ttl"])
    expect("its time", got["ttl"]["ttl_minutes"], 60)
    await client.threads.delete(thread)
    await refused(NotFoundError, client.threads.get(thread))
    await refused(NotFoundError, client.threads.delete(thread))


async def copied(client):
    thread = await create(client, metadata={"from": "a test"})
    await client.runs.wait(thread, "agent", input=ask("sf"), config=FAST)
    copy = await client.threads.copy(thread)
    expect("what is copied", (copy["metadata"]["from"], copy["values"]), ("a test", (await client.threads.get(thread))["values"]))
    await client.runs.wait(copy["thread_id"], "agent", input=ask("nyc"), config=FAST)
    expect("the copy", types((await client.threads.get_state(copy["thread_id"]))["values"]), [*ANSWERED, *ANSWERED])
    expect("the thread", types((await client.threads.get_state(thread))["values"]), ANSWERED)


async def pruned(client):
    thread = await create(client)
    for city in ("sf", "nyc"):
        await client.runs.wait(thread, "agent", input=ask(city), config=FAST)
    expect("how many", await client.threads.prune([thread], strategy="keep_latest"), {"pruned_count": 1})
    [left] = await client.threads.get_history(thread)
    expect("what is left", types(left["values"]), [*ANSWERED, *ANSWERED])


async def written(client):
    """By the client, which then has the agent go on, and looks back."""
    thread = await create(client)
    await client.runs.wait(thread, "agent", input=ask("sf"), config=FAST)
    wrong = {"type": "ai", "id": "wrong", "content": "It is raining cats."}
    at = (await client.threads.update_state(thread, {"messages": [wrong]}, as_node="model"))["checkpoint"]
    expect("the state", types((await client.threads.get_state(thread, checkpoint=at))["values"]), [*ANSWERED, "ai"])
    history = await client.threads.get_history(thread, limit=2, before=at["checkpoint_id"])
    expect("the history before", [types(state["values"]) for state in history], [ANSWERED, ANSWERED[:3]])
    [update] = await client.threads.get_history(thread, metadata={"source": "update"})
    expect("by its source", update["checkpoint"]["checkpoint_id"], at["checkpoint_id"])


async def streamed(client):
    """All runs of a thread, one after the other."""
    thread = await create(client)
    first = await client.runs.create(thread, "agent", input=ask("sf"), config=FAST)
    second = await client.runs.create(thread, "agent", input=ask("nyc"), config=FAST)
    last, ended = None, []
    async for part in await client.threads.join_stream(thread, last_event_id="-"):
        if part.event == "values":
            last = part.data
        if part.event == "metadata" and part.data.get("status") == "run_done":
            ended.append(part.data["run_id"])
        if len(ended) == 2:
            break
    expect("the runs that ended", ended, [first["run_id"], second["run_id"]])
    expect("the last values", last, (await client.threads.get_state(thread))["values"])


async def begun(client):
    """With a history from elsewhere."""
    steps = [{"updates": [{"values": {"messages": [{"type": kind, "content": kind}]}, "as_node": node}]} for kind, node in (("human", "__input__"), ("ai", "model"))]
    thread = await create(client, supersteps=steps, graph_id="agent")
    *history, empty = await client.threads.get_history(thread)
    expect("the history", [types(state["values"]) for state in history], [["human", "ai"], ["human"]])
    expect("the oldest", (empty["values"], empty["parent_checkpoint"]), ({}, None))


tell(found, changed, copied, pruned, written, streamed, begun)
