"""Drives the edges of the interrupt scenario through the Python SDK. Arguments: the agent's URL,
the key."""

import asyncio
import uuid

from langgraph_sdk.errors import NotFoundError
from story import ANSWERED, FAST, SLOW, THINKING, ask, create, expect, refused, tell, types, until, until_tool


async def expect_runs(client, thread, *statuses):
    runs = await client.runs.list(thread)
    expect("the runs, oldest first", [run["status"] for run in reversed(runs)], list(statuses))


def questions(values):
    return [message["content"] for message in values["messages"] if message["type"] == "human"]


async def before_the_first_checkpoint(client):
    thread = await create(client)
    await client.runs.create(thread, "agent", input=ask("sf"), config=THINKING)
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
    expect("the messages", types(values), ["human", *ANSWERED])
    await expect_runs(client, thread, "interrupted", "success")


async def with_runs_queued(client):
    thread = await create(client)
    await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW)
    await until_tool(client, thread)
    for city in ("rome", "oslo"):
        await client.runs.create(thread, "agent", input=ask(city), config=FAST)
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
    expect("the messages", types(values), ["human", "ai", "tool", "human", "human", *ANSWERED])
    expect("the questions", questions(values), [ask(city)["messages"][0]["content"] for city in ("sf", "rome", "oslo", "nyc")])
    await expect_runs(client, thread, "interrupted", "interrupted", "interrupted", "success")


async def two_at_once(client):
    thread = await create(client)
    await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW)
    await until_tool(client, thread)
    pair = [client.runs.create(thread, "agent", input=ask(city), config=THINKING, multitask_strategy="interrupt") for city in ("rome", "oslo")]
    await asyncio.gather(*pair)
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
    expect("the messages", types(values), ["human", "ai", "tool", "human", "human", *ANSWERED])
    await expect_runs(client, thread, "interrupted", "interrupted", "interrupted", "success")


async def after_success(client):
    thread = await create(client)
    await client.runs.wait(thread, "agent", input=ask("sf"), config=FAST)
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt")
    expect("the messages", types(values), [*ANSWERED, *ANSWERED])
    await expect_runs(client, thread, "success", "success")


async def two_cancels_at_once(client):
    thread = await create(client)
    run = (await client.runs.create(thread, "agent", input=ask("sf"), config=SLOW))["run_id"]
    await until_tool(client, thread)
    answers = await asyncio.gather(*(client.runs.cancel(thread, run, wait=True) for _ in range(2)), return_exceptions=True)
    expect("the answers", sorted(answer.response.status_code if answer else 0 for answer in answers), [0, 404])
    await refused(NotFoundError, client.runs.cancel(thread, run, action="rollback"))
    await expect_runs(client, thread, "interrupted")


async def called(client):
    """A thread whose run was cancelled between the call of a tool, which it took over from a run
    that failed there, and its result."""
    thread = await create(client)
    failing = {"configurable": {"node_delay_ms": 0, "fail": "tools"}}
    await client.runs.wait(thread, "agent", input=ask("sf"), config=failing, raise_error=False)
    call = (await client.threads.get_state(thread))["values"]["messages"][1]
    run = (await client.runs.create(thread, "agent", config=THINKING))["run_id"]

    async def running():
        return (await client.runs.get(thread, run))["status"] == "running"

    await until(running)
    await client.runs.cancel(thread, run, wait=True)
    return thread, call["tool_calls"][0]["id"]


async def a_call_without_a_result(client):
    """The client answers it, or has the agent go on there."""
    thread, call = await called(client)
    result = {"type": "tool", "tool_call_id": call, "content": "Never mind."}
    await client.threads.update_state(thread, {"messages": [result]}, as_node="tools")
    values = await client.runs.wait(thread, "agent", input=ask("nyc"), config=FAST)
    expect("answered by the client", types(values), ["human", "ai", "tool", *ANSWERED])
    thread, _ = await called(client)
    expect("gone on with", types(await client.runs.wait(thread, "agent", config=FAST)), ANSWERED)


async def a_creation_repeated(client):
    """A client that did not get the answer asks again, and names the creation so that it happens
    once."""
    thread, name = await create(client), {"Idempotency-Key": str(uuid.uuid4())}
    first, again = [await client.runs.create(thread, "agent", input=ask("sf"), config=FAST, headers=name) for _ in range(2)]
    expect("the run", again, first)
    expect("the messages", types(await client.runs.join(thread, first["run_id"])), ANSWERED)
    await expect_runs(client, thread, "success")


tell(before_the_first_checkpoint, with_runs_queued, two_at_once, after_success, two_cancels_at_once, a_call_without_a_result, a_creation_repeated)
