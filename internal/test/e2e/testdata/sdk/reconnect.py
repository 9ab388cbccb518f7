"""Streams and waits while the server is killed and started again. Prints a line when that may
happen. Arguments: the agent's URL, the key."""

import asyncio
import sys

from langgraph_sdk import get_client

URL, KEY = sys.argv[1:]
CONFIG = {"configurable": {"token_delay_ms": 40, "node_delay_ms": 20}}
ASK = {"messages": [{"role": "user", "content": "what's the weather in sf?"}]}


async def stream(client):
    thread = (await client.threads.create())["thread_id"]
    created, seen, tokens = [], [], 0
    async for part in client.runs.stream(
        thread, "agent", input=ASK, config=CONFIG, stream_mode=["messages-tuple", "values"], stream_resumable=True, on_run_created=created.append,
    ):
        seen.append(part)
        if part.event == "messages" and part.data[0]["content"]:
            tokens += 1
            if tokens == 5:
                print("shown", flush=True)
    replayed = [part async for part in client.runs.join_stream(thread, created[0]["run_id"], stream_mode=["messages-tuple", "values"], last_event_id="-1")]
    assert seen == replayed, f"seen {seen}, replayed {replayed}"
    assert [part.event for part in seen].count("metadata") == 2, "the server was not killed in the middle of the run"


async def wait(client, begun):
    thread = (await client.threads.create())["thread_id"]
    config = {"configurable": {"node_delay_ms": 20, "token_delay_ms": 8000, "answer_words": 1}}
    values = await client.runs.wait(thread, "agent", input=ASK, config=config, on_run_created=begun.set_result)
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "tool", "ai"], values


async def thread_stream(client):
    """The thread-centric protocol: who was there sees each event once, in the order in which one
    sees them who comes later."""
    async with client.threads.stream(assistant_id="agent") as thread:
        await thread.run.start(input=ASK, config=CONFIG)
        seen = await whole(thread)
    numbers = [event["seq"] for event in seen]
    assert numbers == sorted(set(numbers)), numbers
    async with client.threads.stream(thread.thread_id, assistant_id="agent") as thread:
        replayed = await whole(thread)
    assert seen == replayed, f"seen {seen}, replayed {replayed}"


async def whole(thread):
    events = []
    async for event in thread.subscribe(["lifecycle", "messages", "updates", "values"]):
        events.append(event)
        if event["method"] == "lifecycle" and event["params"]["data"]["event"] == "completed":
            return events
    raise AssertionError(f"the stream has ended after {events}")


async def main():
    client = get_client(url=URL, api_key=KEY)
    begun = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(wait(client, begun))
    await begun  # the client asks again only after the answer to the wait has begun
    await asyncio.gather(stream(client), thread_stream(client), waiting)


asyncio.run(main())
