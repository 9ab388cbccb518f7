"""Uses the agent as a RemoteGraph, as graphs do that have it as a node, in the old protocol and in
the thread-centric one.

Arguments: the agent's URL, the key, the transport, and "scripted" for the stories that need an
agent that follows scripts, or "killed" for the story in which the server may be killed when it says
"shown"."""

import asyncio
import sys
import uuid

from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client, get_sync_client
from story import ANSWERED, BRISK, FAST, SLOW, ask, expect, refused, tell, types, until
from threads_v3 import DEEP, GOES_ON, PAUSES, SUBGRAPH

LONG = {"configurable": {"token_delay_ms": 30, "node_delay_ms": 20, "answer_words": 400}}
ANSWERS = {"q1": True, "q2": False}


def remote():
    url, api_key = sys.argv[1:3]
    return RemoteGraph("agent", client=get_client(url=url, api_key=api_key), sync_client=get_sync_client(url=url, api_key=api_key))


def on(thread_id, config):
    return {"configurable": {**config["configurable"], "thread_id": thread_id}}


async def invoked(client):
    """Both clients, on one thread."""
    thread_id = str(uuid.uuid4())
    first = await asyncio.to_thread(remote().invoke, ask("sf"), on(thread_id, FAST))
    expect("the first answer", types(first), ANSWERED)
    second = await remote().ainvoke(ask("nyc"), on(thread_id, FAST))
    expect("the second answer", types(second), [*ANSWERED, *ANSWERED])
    expect("the state", (await remote().aget_state(on(thread_id, FAST))).values, second)


async def streamed(client):
    """Tokens and states, with both clients."""

    def read():
        return list(remote().stream(ask("sf"), BRISK, stream_mode=["messages", "values"]))

    def check(parts):
        answer = [data for mode, data in parts if mode == "values"][-1]["messages"][-1]
        tokens = [data[0]["content"] for mode, data in parts if mode == "messages" and data[0]["id"] == answer["id"] and data[0]["type"] == "AIMessageChunk"]
        expect("the answer", "".join(tokens), answer["content"])
        assert len(tokens) > 3, tokens

    check([(part.event.split("|")[0], part.data) for part in await asyncio.to_thread(read)])
    check([(part.event.split("|")[0], part.data) async for part in remote().astream(ask("nyc"), BRISK, stream_mode=["messages", "values"])])


async def threads_streamed(client):
    """The thread-centric protocol with the client that is not synchronous: messages and the
    output."""
    async with await remote().astream_events(ask("sf"), BRISK, version="v3") as run:

        async def read(message):
            return message.message_id, "".join([delta async for delta in message.text])

        async def all_of():
            return await asyncio.gather(*[asyncio.create_task(read(message)) async for message in run.messages])

        shown, output = await asyncio.gather(all_of(), run.output())
        expect("the output", types(output), ANSWERED)
        expect("the messages", [id for id, _ in shown], [output["messages"][i]["id"] for i in (1, 3)])
        expect("the answer", shown[1][1], output["messages"][3]["content"])


async def threads_streamed_synchronously(client):
    def read():
        with remote().stream_events(ask("sf"), BRISK, version="v3") as run:
            events = list(run_of(run))
            expect("the output", types(run.output), ANSWERED)
            return events, run.output

    def run_of(run):
        for event in run:
            yield event
            if event["method"] == "lifecycle" and not event["params"]["namespace"] and event["params"]["data"]["event"] != "running":
                return

    events, output = await asyncio.to_thread(read)
    expect("the numbers", [event["seq"] for event in events], sorted({event["seq"] for event in events}))
    expect("the last values", [e["params"]["data"] for e in events if e["method"] == "values"][-1], output)


async def failed(client):
    """The node that fails, in each protocol."""
    fails = {"configurable": {"node_delay_ms": 0, "fail": "tools"}}
    told = str(await refused(RemoteException, remote().ainvoke(ask("sf"), fails)))
    async with await remote().astream_events(ask("sf"), fails, version="v3") as run:
        told += str(await refused(RuntimeError, run.output()))
    expect("how often the failure is told of", told.count("node tools fails"), 2)


async def aborted(client):
    thread_id = str(uuid.uuid4())
    async with await remote().astream_events(ask("sf"), on(thread_id, SLOW), version="v3") as run:
        async for _ in run.messages:
            await run.abort()
            break
    [stopped] = await client.runs.list(thread_id)
    await client.runs.join(thread_id, stopped["run_id"])
    expect("the run", (await client.runs.get(thread_id, stopped["run_id"]))["status"], "interrupted")


async def asked(client):
    """Both questions are answered by a command, in each protocol."""
    thread_id = str(uuid.uuid4())

    async def commands():
        return [run["kwargs"].get("command") for run in await client.runs.list(thread_id)]

    def scripted(script):
        return on(thread_id, {"configurable": {"script": script}})

    async def paused():
        return (await client.threads.get(thread_id))["status"] == "interrupted"

    async with await remote().astream_events({"messages": []}, scripted(PAUSES), version="v3") as run:
        while len(await run.interrupts()) < 2:
            await asyncio.sleep(0.02)
        expect("the run is interrupted", await run.interrupted(), True)
        await until(paused)
        expect("the questions", {q["interrupt_id"]: q["value"] for q in await run.interrupts()}, {"q1": "May I?", "q2": "And now?"})
    async with await remote().astream_events(Command(resume=ANSWERS), scripted(GOES_ON), version="v3") as run:
        expect("the answer", (await run.output())["messages"][-1]["content"], "Done")
    expect("the command", (await commands())[0], {"resume": ANSWERS})
    await remote().ainvoke({"messages": []}, scripted(PAUSES))
    await until(paused)
    answered = await remote().ainvoke(Command(resume=ANSWERS), scripted(GOES_ON))
    expect("the answer", answered["messages"][-1]["content"], "Done")
    expect("the command", (await commands())[0]["resume"], ANSWERS)


async def subgraphs(client):
    """What a subgraph says, with both clients."""

    def check(handles, messages):
        expect("the subgraphs", [(handle.path, handle.status) for handle in handles], [(("inner:1",), "completed")])
        expect("what it says", messages, [DEEP])

    def read():
        with remote().stream_events({"messages": []}, script, version="v3") as run:
            handles = list(run.subgraphs)
            check(handles, ["".join(message.text) for message in list(handles[0].messages)])

    script = {"configurable": {"script": SUBGRAPH}}
    await asyncio.to_thread(read)
    async with await remote().astream_events({"messages": []}, script, version="v3") as run:
        handles = [handle async for handle in run.subgraphs]
        messages = [message async for message in handles[0].messages]
        check(handles, ["".join([text async for text in message.text]) for message in messages])


async def forked(client):
    """Goes back to the checkpoint before the answer. The client names a checkpoint with no run, but
    with a change of the state.

    In the thread-centric protocol, the client takes the end of the first run for the end of the
    second."""
    thread_id = str(uuid.uuid4())
    await remote().ainvoke(ask("sf"), on(thread_id, FAST))
    first = [state async for state in remote().aget_state_history(on(thread_id, FAST))][-2]  # after the empty state
    await remote().aupdate_state(first.config, {"messages": []})
    expect("the answer", types(await remote().ainvoke(ask("nyc"), on(thread_id, FAST))), ["human", *ANSWERED])


async def killed(client):
    """The stream goes on after the server has been killed and started again, up to the output."""
    thread_id, pieces = str(uuid.uuid4()), 0
    async with await remote().astream_events(ask("sf"), on(thread_id, LONG), version="v3") as run:
        async for event in run:
            if event["method"] == "messages" and event["params"]["data"]["event"] == "content-block-delta":
                pieces += 1
                if pieces == 10:
                    print("shown", flush=True)
                    break
        output = await run.output()
    expect("the output", types(output), ANSWERED)
    expect("the state", (await remote().aget_state(on(thread_id, LONG))).values, output)
    expect("how many runs there are", len(await client.runs.list(thread_id)), 1)


if sys.argv[4:] == ["scripted"]:
    tell(asked, subgraphs)
elif sys.argv[4:] == ["killed"]:
    tell(killed)
else:
    tell(invoked, streamed, threads_streamed, threads_streamed_synchronously, failed, aborted, forked)
