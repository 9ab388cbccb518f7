"""What the stories share: what is asked of the weather agent, and how they are told. Arguments of
each script: the agent's URL, the key."""

import asyncio
import sys

from langgraph_sdk import get_client

SLOW = {"configurable": {"token_delay_ms": 1000, "node_delay_ms": 20, "answer_words": 10_000}}
FAST = {"configurable": {"token_delay_ms": 1, "node_delay_ms": 1}}
BRISK = {"configurable": {"token_delay_ms": 20, "node_delay_ms": 20}}
THINKING = {"configurable": {"node_delay_ms": 60_000}}
ANSWERED = ["human", "ai", "tool", "ai"]


def ask(city):
    return {"messages": [{"role": "user", "content": f"what's the weather in {city}?"}]}


def types(values):
    return [message["type"] for message in values["messages"]]


def expect(what, got, want):
    assert got == want, f"{what}: {got!r}, want {want!r}"


async def refused(error, call):
    try:
        await call
    except error as refusal:
        return refusal
    raise AssertionError(f"there was no {error.__name__}")


async def create(client, **options):
    return (await client.threads.create(**options))["thread_id"]


async def until(look):
    """Waits for a condition, and returns what it has seen."""
    while not (seen := await look()):
        await asyncio.sleep(0.02)
    return seen


async def until_tool(client, thread):
    async def look():
        return types((await client.threads.get_state(thread))["values"] or {"messages": []}) == ["human", "ai", "tool"]

    await until(look)


def tell(*stories):
    """Tells stories beside each other, each with the client."""

    async def main():
        client = get_client(url=sys.argv[1], api_key=sys.argv[2])
        failed = False
        for story, result in zip(stories, await asyncio.gather(*(story(client) for story in stories), return_exceptions=True)):
            print(f"{story.__name__}: {result!r}" if result else f"{story.__name__}: ok")
            failed = failed or result is not None
        sys.exit(failed)

    asyncio.run(main())
