"""Drives what a run may be told, and runs without a thread, through the Python SDK. Arguments: the
agent's URL, the key."""

import asyncio
import json
import uuid
from datetime import datetime, timedelta

from langgraph_sdk.errors import NotFoundError
from story import ANSWERED, FAST, SLOW, THINKING, ask, create, expect, refused, tell, types


def at(text):
    return datetime.fromisoformat(text)


async def webhook(client):
    """The receiver listens here, at a private address."""
    received = asyncio.get_running_loop().create_future()

    async def receive(reader, writer):
        length = 0
        while (line := await reader.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        received.set_result(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(receive, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        thread = await create(client)
        run = await client.runs.create(thread, "agent", input=ask("sf"), config=FAST, webhook=f"http://127.0.0.1:{port}/told")
        told = await received
        expect("who is told of", (told["run_id"], told["thread_id"], told["status"]), (run["run_id"], thread, "success"))
        expect("the values", types(told["values"]), ANSWERED)
        assert at(told["run_started_at"]) <= at(told["run_ended_at"]) <= at(told["webhook_sent_at"]), told


async def after_seconds(client):
    thread = await create(client)
    run = await client.runs.create(thread, "agent", input=ask("sf"), config=FAST, after_seconds=1)
    expect("the run", run["status"], "pending")
    expect("the thread", (await client.threads.get(thread))["status"], "busy")
    expect("the values", types(await client.runs.join(thread, run["run_id"])), ANSWERED)
    [answer, *_] = await client.threads.get_history(thread)
    assert at(answer["created_at"]) - at(run["created_at"]) >= timedelta(0), "it has not waited"
    delayed = await client.runs.create(thread, "agent", input=ask("rome"), config=FAST, after_seconds=3600)
    await client.runs.cancel(thread, delayed["run_id"])
    expect("the cancelled run", (await client.runs.get(thread, delayed["run_id"]))["status"], "interrupted")


async def if_not_exists(client):
    thread = str(uuid.uuid4())
    await refused(NotFoundError, client.runs.create(thread, "agent", input=ask("sf"), if_not_exists="reject"))
    values = await client.runs.wait(thread, "agent", input=ask("sf"), config=FAST, if_not_exists="create")
    expect("the values", types(values), ANSWERED)
    expect("the thread", (await client.threads.get(thread))["status"], "idle")


async def metadata(client):
    thread = await create(client)
    run = await client.runs.create(thread, "agent", input=ask("sf"), config=FAST, metadata={"from": "a test"})
    await client.runs.join(thread, run["run_id"])
    expect("the run's metadata", (await client.runs.get(thread, run["run_id"]))["metadata"]["from"], "a test")
    await client.runs.delete(thread, run["run_id"])
    await refused(NotFoundError, client.runs.get(thread, run["run_id"]))
    expect("the state stays", types((await client.threads.get_state(thread))["values"]), ANSWERED)


async def without_a_thread(client):
    expect("the values", types(await client.runs.wait(None, "agent", input=ask("sf"), config=FAST)), ANSWERED)
    parts = [part async for part in client.runs.stream(None, "agent", input=ask("sf"), config=FAST)]
    expect("the last values", types(parts[-1].data), ANSWERED)
    for then in ("delete", "keep"):  # what is to be deleted can be joined for a while
        run = await client.runs.create(None, "agent", input=ask("sf"), config=FAST, on_completion=then)
        expect("whether it is temporary", run["kwargs"]["temporary"], then == "delete")
        expect("the values", types(await client.runs.join(run["thread_id"], run["run_id"])), ANSWERED)


async def batch(client):
    runs = await client.runs.create_batch([{"assistant_id": "agent", "input": ask(city), "config": THINKING} for city in ("sf", "rome", "oslo")])
    expect("their threads", len({run["thread_id"] for run in runs}), 3)
    first, *_ = runs
    await client.runs.cancel_many(thread_id=first["thread_id"], run_ids=[first["run_id"]], action="rollback")
    await refused(NotFoundError, client.runs.get(first["thread_id"], first["run_id"]))
    await client.runs.cancel_many(status="all")
    expect("busy threads", await client.threads.count(status="busy"), 0)


async def on_disconnect(client):
    thread = await create(client)
    begun = []
    async for part in client.runs.stream(thread, "agent", input=ask("sf"), config=SLOW, on_disconnect="cancel", on_run_created=begun.append):
        if part.event == "values" and types(part.data) == ["human", "ai", "tool"]:
            break
    await client.runs.join(thread, begun[0]["run_id"])
    expect("the run", (await client.runs.get(thread, begun[0]["run_id"]))["status"], "interrupted")


async def one_after_the_other(client):
    """Because the last of them ends all that run."""
    for story in (webhook, after_seconds, if_not_exists, metadata, without_a_thread, on_disconnect, batch):
        await story(client)
        print(f"{story.__name__}: told")


tell(one_after_the_other)
