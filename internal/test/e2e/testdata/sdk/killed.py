"""Reads an answer in whose middle the server is killed. Says "shown" when it may be. Arguments: the
agent's URL, the key, the transport of events."""

import asyncio

import httpx
from story import ANSWERED, ask, create, expect, tell, types
from threads_v3 import root, said, stream

CHANNELS = ["lifecycle", "messages", "updates", "values", "tools"]
LONG = {"configurable": {"token_delay_ms": 30, "node_delay_ms": 20, "answer_words": 400}}


def completes(event):
    return root(event) and said(event) == "completed"


async def read(thread, seen, shown=lambda: None):
    """Reads up to the end of the run; tells whether it came. A stream that is opened again begins
    with the run."""
    async for event in thread.subscribe(CHANNELS):
        if event["event_id"] not in seen:
            seen[event["event_id"]] = event["seq"]
        if event["method"] == "messages" and event["params"]["data"]["event"] == "content-block-delta":
            shown()
        if completes(event):
            return True
    return False


async def killed(client):
    thread_id, seen, tokens, done = await create(client), {}, [], False

    def shown():
        tokens.append(1)
        if len(tokens) == 10:
            print("shown", flush=True)

    async with stream(client, thread_id) as thread:
        await thread.run.start(input=ask("sf"), config=LONG)
        done = await read(thread, seen, shown)
    while not done:  # the SDK gives up after some seconds
        try:
            async with stream(client, thread_id) as again:
                done = await read(again, seen)
        except (httpx.HTTPError, OSError):
            await asyncio.sleep(0.1)
    expect("the numbers", list(seen.values()), sorted(set(seen.values())))
    whole = {}
    async with stream(client, thread_id) as late:
        expect("the end", await read(late, whole), True)
    expect("all that there is", list(seen), list(whole))
    expect("the messages", types((await client.threads.get_state(thread_id))["values"]), ANSWERED)


tell(killed)
