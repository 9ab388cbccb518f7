"""Answers what graphs ask, in the thread-centric protocol. Arguments: the URL of an agent that
follows scripts, the key, the transport of events."""

from story import expect, refused, tell, until
from threads_v3 import DEEP, GOES_ON, PAUSES, SUBGRAPH, ends, said, saying, stream


async def questions(thread, count):
    """The questions that a thread asks by the word of the SDK."""

    async def look():
        return len(thread.interrupts) == count

    await until(look)
    return {question["interrupt_id"]: question["value"] for question in thread.interrupts}


async def asked(client):
    """Two questions at once; a tab that comes later knows them, a wrong answer changes nothing, and
    all tabs see the answers."""
    async with stream(client) as one:
        run = await one.run.start(input={"messages": []}, config={"configurable": {"script": PAUSES}})
        expect("the questions", await questions(one, 2), {"q1": "May I?", "q2": "And now?"})
        await client.runs.join(one.thread_id, run["run_id"])
        expect("the thread", (await client.threads.get(one.thread_id))["status"], "interrupted")
        async with stream(client, one.thread_id) as two:
            expect("the questions", await questions(two, 2), {"q1": "May I?", "q2": "And now?"})
            await refused(RuntimeError, two.run.respond(True, interrupt_id="q3"))
            expect("the thread", (await client.threads.get(one.thread_id))["status"], "interrupted")
            await client.runs.create(one.thread_id, "agent", command={"resume": {"q1": True, "q2": False}}, config={"configurable": {"script": GOES_ON}})
            output = await two.output
            expect("the answer", output["messages"][-1]["content"], "Done")
        await questions(one, 0)
        expect("the run", (await client.runs.get(one.thread_id, run["run_id"]))["status"], "success")


async def subgraphs(client):
    """What a subgraph says, by its own handle."""
    async with stream(client) as thread:
        await thread.run.start(input={"messages": []}, config={"configurable": {"script": SUBGRAPH}})
        handles = [handle async for handle in thread.subgraphs]
        expect("the subgraphs", [(handle.path, handle.graph_name, handle.status) for handle in handles], [(("inner:1",), "inner", "completed")])
        messages = [message async for message in handles[0].messages]  # the SDK hands on what comes for a message only to who waits for the next one
        expect("what it says", ["".join([text async for text in message.text]) for message in messages], [DEEP])


async def resumed(client):
    """A subgraph that goes on after its question: what it said before is not told again."""
    said_before = {"type": "ai", "id": "m6", "content": "At the Grand Hotel."}
    added = {"type": "ai", "id": "m7", "content": "For 3 nights."}
    pauses = [
        {"event": "updates|inner:1", "data": {"find": {"messages": [said_before]}}},
        {"event": "interrupt", "data": [{"id": "q1", "value": "How many nights?"}]},
    ]
    goes_on = [
        {"event": "values|inner:1", "data": {"messages": [said_before]}},
        {"event": "updates|inner:1", "data": {"ask": {"messages": [added]}}},
        {"event": "updates", "data": {"inner": {"messages": [said_before, added]}}},
    ]
    async with stream(client) as thread:
        await thread.run.start(input={"messages": []}, config={"configurable": {"script": pauses}})
        await questions(thread, 1)
        begun = []
        async for event in thread.subscribe(["lifecycle", "messages"]):
            if event["method"] == "messages" and said(event) == "message-start":
                begun.append((tuple(event["params"]["namespace"]), event["params"]["data"]["id"]))
            if ends(event) and said(event) == "interrupted":
                shows = {"stream_mode": ["values", "updates", "messages-tuple"], "stream_subgraphs": True}
                await client.runs.create(thread.thread_id, "agent", command={"resume": 3}, config={"configurable": {"script": goes_on}}, **shows)
            elif ends(event):
                break
        expect("the messages", begun, [(("inner:1",), "m6"), (("inner:1",), "m7")])


async def forked(client):
    """A run that goes on from the checkpoint before the answer."""
    async with stream(client) as thread:
        await thread.run.start(input={"messages": []}, config=saying("first"))
        before = None
        async for event in thread.subscribe(["checkpoints", "lifecycle"]):
            before = before or (event["method"] == "checkpoints" and event["params"]["data"]["id"])
            if ends(event):
                break
        run = await thread.run.start(input={"messages": []}, config=saying("second", checkpoint_id=before))
        values = await client.runs.join(thread.thread_id, run["run_id"])
        expect("the thread", [message["content"] for message in values["messages"]], ["second"])


tell(asked, subgraphs, resumed, forked)
