"""Drives the interrupt scenario through the Python SDK, as its documentation has it. Arguments: the
agent's URL, the key."""

import asyncio

from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from story import ANSWERED, BRISK, FAST, SLOW, THINKING, ask, create, expect, refused, tell, types, until, until_tool


async def background(client):
    thread = await create(client)
    first = await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW)
    await until_tool(client, thread)
    second = await client.runs.create(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
    joined = await client.runs.join(thread, second["run_id"])
    expect("the joined values", types(joined), ["human", "ai", "tool", *ANSWERED])
    state = await client.threads.get_state(thread)
    expect("the state", types(state["values"]), ["human", "ai", "tool", *ANSWERED])
    expect("next", state["next"], [])
    expect("the first run", (await client.runs.get(thread, first["run_id"]))["status"], "interrupted")
    expect("the second run", (await client.runs.get(thread, second["run_id"]))["status"], "success")
    expect("the interrupted run's values", types(await client.runs.join(thread, first["run_id"])), ["human", "ai", "tool"])
    listed = await client.runs.list(thread)
    expect("the runs", [run["run_id"] for run in listed], [second["run_id"], first["run_id"]])
    expect("the interrupted runs", [r["run_id"] for r in await client.runs.list(thread, status="interrupted")], [first["run_id"]])
    expect("the thread", (await client.threads.get(thread))["status"], "idle")


async def streamed(client):
    thread = await create(client, metadata={"from": "a test"})
    created, shown, second = [], "", None
    async for part in client.runs.stream(
        thread, "agent", input=ask("sf"), config={"configurable": {"token_delay_ms": 20, "answer_words": 10_000, "node_delay_ms": 0}},
        stream_mode=["messages-tuple", "updates"], stream_resumable=True, on_run_created=created.append,
    ):
        expect("no error", part.event.startswith("error"), False)
        if part.event == "messages":
            shown += part.data[0]["content"]
        if len(shown) > 40 and second is None:
            second = await client.runs.create(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
    expect("the run that was announced", created[0]["thread_id"], thread)
    await client.runs.join(thread, second["run_id"])
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    expect("the thread", [m["type"] for m in messages], [*ANSWERED, *ANSWERED])
    expect("what was shown", messages[3]["content"], shown)
    expect("the first run", (await client.runs.get(thread, created[0]["run_id"]))["status"], "interrupted")


async def joined_stream(client):
    thread = await create(client)
    run = await client.runs.create(thread, "agent", input=ask("sf"), config=BRISK, stream_mode=["values", "messages-tuple"], stream_resumable=True)
    whole = [part async for part in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
    expect("the first event", whole[0].event, "metadata")
    expect("the last event", whole[-1].event, "values")
    replayed = [part async for part in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
    expect("the replay", replayed, whole)
    rest = [part async for part in client.runs.join_stream(thread, run["run_id"], last_event_id=whole[4].id)]
    expect("the rest", rest, whole[5:])
    chosen = [part async for part in client.runs.join_stream(thread, run["run_id"], stream_mode="values", last_event_id="-1")]
    expect("the chosen mode", {part.event for part in chosen}, {"metadata", "values"})


async def siblings(client):
    thread = await create(client)
    await client.runs.create(thread, "agent", input=ask("sf"), config=BRISK)
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="enqueue")
    expect("with enqueue", types(values), [*ANSWERED, *ANSWERED])

    thread = await create(client)
    await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW)
    refusal = await refused(ConflictError, client.runs.create(thread, "agent", input=ask("nyc"), multitask_strategy="reject"))
    expect("with reject", refusal.status_code, 409)
    expect("the runs", len(await client.runs.list(thread)), 1)


async def rolled_back(client):
    thread = await create(client)
    await client.runs.wait(thread, "agent", input=ask("rome"), config=FAST)
    first = await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW)

    async def called():
        return len(types((await client.threads.get_state(thread))["values"])) == 7

    await until(called)
    queued = await client.runs.create(thread, "agent", input=ask("oslo"), config=FAST)
    second = await client.runs.create(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="rollback")
    values = await client.runs.join(thread, second["run_id"])
    expect("the messages", types(values), [*ANSWERED, *ANSWERED])
    expect("the questions", ["rome" in values["messages"][0]["content"], "nyc" in values["messages"][4]["content"]], [True, True])
    for gone in (first, queued):
        await refused(NotFoundError, client.runs.get(thread, gone["run_id"]))
        refusal = await refused(Exception, client.runs.join(thread, gone["run_id"]))
        assert "404" in str(refusal), refusal
    expect("the runs", [run["status"] for run in await client.runs.list(thread)], ["success", "success"])
    runs = {state["metadata"].get("run_id") for state in await client.threads.get_history(thread, limit=100)}
    assert not runs & {first["run_id"], queued["run_id"]}, runs
    expect("the thread", (await client.threads.get(thread))["status"], "idle")


async def cancelled(client):
    thread = await create(client)
    first = await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW)
    await until_tool(client, thread)
    await client.runs.cancel(thread, first["run_id"], wait=True)
    expect("the run", (await client.runs.get(thread, first["run_id"]))["status"], "interrupted")
    refusal = await refused(NotFoundError, client.runs.cancel(thread, first["run_id"]))
    assert "No matching runs to cancel" in str(refusal), refusal
    second = await client.runs.create(thread, "agent", input=ask("rome"), config=SLOW)
    await client.runs.cancel(thread, second["run_id"], action="rollback", wait=True)
    await refused(NotFoundError, client.runs.get(thread, second["run_id"]))
    third = await client.runs.create(thread, "agent", input=ask("oslo"), config=THINKING)
    # The input of a run that has not started is taken back with it.
    while (await client.runs.get(thread, third["run_id"]))["status"] == "pending":
        await asyncio.sleep(0.01)
    await client.runs.cancel_many(thread_id=thread, run_ids=[third["run_id"]])
    expect("the third run", (await client.runs.get(thread, third["run_id"]))["status"], "interrupted")
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST)
    expect("the messages", types(values), ["human", "ai", "tool", "human", *ANSWERED])


async def readers(client):
    """Several readers of one run, of which one does not read, and those that come back in the
    middle and after the end."""
    thread = await create(client)
    config = {"configurable": {"token_delay_ms": 2, "node_delay_ms": 20, "answer_words": 400}}
    modes = ["messages-tuple", "values"]
    run = await client.runs.create(thread, "agent", input=ask("sf"), config=config, stream_mode=modes, stream_resumable=True)

    async def follow(last="-1", leave=None):
        parts = []
        async for part in client.runs.join_stream(thread, run["run_id"], stream_mode=modes, last_event_id=last):
            parts.append(part)
            if len(parts) == leave:
                return parts
        return parts

    idle = client.runs.join_stream(thread, run["run_id"], stream_mode=modes, last_event_id="-1")
    first = await anext(idle)
    whole, other, begun = await asyncio.gather(follow(), follow(), follow(leave=30))
    expect("another reader", other, whole)
    expect("one that left", begun, whole[:30])
    expect("the rest for it, after the end", await follow(begun[-1].id), whole[30:])
    expect("what comes after the end", await follow(whole[-1].id), [])
    expect("the one that read late", [first, *[part async for part in idle]], whole)
    ids = [int(part.id) for part in whole if part.id]
    expect("each id once", ids, sorted(set(ids)))


async def steps(client):
    """What the agent does not show itself: its checkpoints, each as it can be read later and gone
    on from, and the nodes between them."""
    thread = await create(client)
    parts = [part async for part in client.runs.stream(thread, "agent", input=ask("sf"), config=FAST, stream_mode=["checkpoints", "debug"])]
    shown = [part.data for part in parts if part.event == "checkpoints"]
    expect("the checkpoints", [types(checkpoint["values"]) for checkpoint in shown], [ANSWERED[:n] for n in (1, 2, 3, 4)])
    for checkpoint in shown:
        state = await client.threads.get_state(thread, checkpoint=checkpoint["checkpoint"])
        expect("a checkpoint", {name: checkpoint[name] for name in state}, state)
    debug = [part.data for part in parts if part.event == "debug"]
    expect("the steps", [event["type"] for event in debug], ["checkpoint", *["task", "task_result", "checkpoint"] * 3])
    expect("the nodes", [event["payload"]["name"] for event in debug if event["type"] == "task"], ["model", "tools", "model"])
    config = {"configurable": {**shown[0]["config"]["configurable"], **FAST["configurable"]}}
    expect("once more from the input", types(await client.runs.wait(thread, "agent", config=config)), ANSWERED)


async def errors(client):
    thread = await create(client)
    again = await client.threads.create(thread_id=thread, if_exists="do_nothing")
    expect("the same thread", again["thread_id"], thread)
    await refused(ConflictError, client.threads.create(thread_id=thread))
    await refused(NotFoundError, client.threads.get("0191f6a0-0000-7000-8000-000000000000"))
    await refused(NotFoundError, client.runs.create(thread, "nobody", input=ask("sf")))
    await refused(UnprocessableEntityError, client.runs.create(thread, "agent", input=ask("sf"), multitask_strategy="panic"))
    failing = {"configurable": {"node_delay_ms": 0, "fail": "tools"}}
    values = await client.runs.wait(thread, "agent", input=ask("sf"), config=failing, raise_error=False)
    expect("the failure", values["__error__"]["error"], "NodeError")
    raised = await refused(Exception, client.runs.wait(thread, "agent", input=ask("sf"), config=failing))
    assert "NodeError" in str(raised), raised
    stream = client.runs.stream(thread, "agent", input=ask("sf"), config=failing)
    expect("the stream of a failure", [part.event async for part in stream][-1], "error")


async def long_wait(client):
    """Longer than the silence that the server allows itself."""
    thread = await create(client)
    config = {"configurable": {"node_delay_ms": 0, "token_delay_ms": 5500, "answer_words": 1}}
    values = await client.runs.wait(thread, "agent", input=ask("sf"), config=config)
    expect("after a long wait", types(values), ANSWERED)
    parts = [part async for part in client.runs.stream(thread, "agent", input=ask("nyc"), config=config)]
    expect("the events with heartbeats between them", [part.event for part in parts], ["metadata", "values", "values", "values", "values"])


tell(background, streamed, joined_stream, siblings, rolled_back, cancelled, readers, steps, errors, long_wait)
