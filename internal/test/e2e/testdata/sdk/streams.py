"""Drives threads.stream, the thread-centric streaming protocol, through the Python SDK. Arguments:
the agent's URL, the key, the transport of events."""

import asyncio
import uuid

from story import ANSWERED, BRISK, FAST, SLOW, ask, create, expect, tell, types
from threads_v3 import CHANNELS, LONG, ends, root, said, stream, text


async def whole(stream):
    """Reads until a run has ended."""
    events = []
    async for event in stream:
        events.append(event)
        if ends(event):
            return events
    raise AssertionError("the stream has ended")


async def started(client):
    """A thread that the SDK names, its tokens in their order, its tools and its output.

    One subscription serves messages and tools: the SDK waits for ever for a stream that a second
    one replaces before it is open."""
    async with stream(client) as thread:
        run = await thread.run.start(input=ask("sf"), config=BRISK)

        async def read(message):
            return message.message_id, "".join([delta async for delta in message.text])

        async def all_of():  # the SDK hands on what comes for a message only to who waits for the next one
            messages, tools = [], []
            async for channel, item in thread.interleave_projections(["messages", "tool_calls"]):
                if channel == "messages":
                    messages.append(asyncio.create_task(read(item)))
                else:
                    tools.append(item)
            return await asyncio.gather(*messages), tools

        (shown, called), output = await asyncio.gather(all_of(), thread.output)
        expect("the output", types(output), ANSWERED)
        expect("the messages", [id for id, _ in shown], [output["messages"][i]["id"] for i in (1, 3)])
        expect("the answer", shown[1][1], output["messages"][3]["content"])
        call = output["messages"][1]["tool_calls"][0]
        expect("the tools", [(c.name, c.input, (await c.output)["type"]) for c in called], [(call["name"], call["args"], "tool")])
        expect("the run", (await client.runs.get(thread.thread_id, run["run_id"]))["status"], "success")


async def interrupted(client):
    """The first run ends before the second begins, and what was shown of it is kept."""
    thread_id = await create(client)
    async with stream(client, thread_id) as thread:
        await thread.run.start(input=ask("sf"), config=LONG)
        seen, second = [], None
        async for event in thread.subscribe(CHANNELS):
            seen.append(event)
            if len(text(seen)) > 40 and second is None:
                second = await client.runs.create(thread_id, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
            if root(event) and said(event) == "completed":
                break
        lifecycle = [(said(e), second["run_id"] in e["event_id"]) for e in seen if root(e)]
        expect("the lifecycles", lifecycle, [("running", False), ("interrupted", False), ("running", True), ("completed", True)])
        end = next(i for i, e in enumerate(seen) if root(e) and said(e) == "interrupted")
        frames = [said(e) for e in seen if e["method"] == "messages"]
        expect("each message is finished", frames.count("message-start"), frames.count("message-finish"))
        messages = (await client.threads.get_state(thread_id))["values"]["messages"]
        expect("the thread", [m["type"] for m in messages], [*ANSWERED, *ANSWERED])
        expect("what was shown", messages[3]["content"], text(seen[:end]))
        numbers = [e["seq"] for e in seen]
        expect("the numbers", numbers, sorted(set(numbers)))


async def two_readers(client):
    """One who came in the middle of the answer sees what one sees who was there, and so does one
    who came after the end.

    Each reads by one subscription: the SDK hands a second one only what comes after it, which may
    be nothing."""
    thread_id = str(uuid.uuid4())
    async with stream(client, thread_id) as one, stream(client, thread_id) as two:
        await one.run.start(input=ask("sf"), config=BRISK)
        seen, middle = [], None
        async for event in one.subscribe(CHANNELS):
            seen.append(event)
            if middle is None and len(text(seen)) > 10:
                middle = asyncio.create_task(whole(two.subscribe(CHANNELS)))
            if ends(event):
                break
        expect("all for who comes in the middle", await middle, seen)
    async with stream(client, thread_id) as late:
        expect("all for who comes late", await whole(late.subscribe(CHANNELS)), seen)


async def failing(client):
    async with stream(client) as thread:
        await thread.run.start(input=ask("sf"), config={"configurable": {"node_delay_ms": 0, "fail": "tools"}})
        try:
            await thread.output
            raise AssertionError("the run has not failed")
        except RuntimeError as failure:
            assert "node tools fails" in str(failure), failure


async def cancelled(client):
    thread_id = await create(client)
    async with stream(client, thread_id) as thread:
        run = await thread.run.start(input=ask("sf"), config=SLOW)
        seen = []
        async for event in thread.subscribe(CHANNELS):
            seen.append(event)
            if text(seen) and run:
                await client.runs.cancel(thread_id, run["run_id"])
                run = None
            if ends(event):
                break
        expect("the end", said(seen[-1]), "interrupted")
        frames = [said(e) for e in seen if e["method"] == "messages"]
        expect("each message is finished", frames.count("message-start"), frames.count("message-finish"))


tell(started, interrupted, two_readers, failing, cancelled)
