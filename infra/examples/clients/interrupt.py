"""Streams an answer and interrupts it with a second question. Arguments: the agent's URL, an API
key.

Needs the framework's own client package: pip install langgraph-sdk
"""

import asyncio
import sys

from langgraph_sdk import get_client


def question(text):
    return {"messages": [{"role": "user", "content": text}]}


async def main(url, key):
    client = get_client(url=url, api_key=key)
    thread_id = (await client.threads.create())["thread_id"]

    second = None
    async for part in client.runs.stream(
        thread_id, "agent", input=question("what is the weather in sf?"), stream_mode="messages-tuple"
    ):
        if part.event != "messages":
            continue
        message = part.data[0]
        print(message["content"], end="", flush=True)
        # The first words are shown: now the user asks something else.
        if message["content"] and second is None:
            second = await client.runs.create(
                thread_id, "agent", input=question("and in nyc?"), multitask_strategy="interrupt"
            )
    print()

    # The thread keeps the words that were shown, and the second answer follows.
    values = await client.runs.join(thread_id, second["run_id"])
    for message in values["messages"]:
        print(f"{message['type']:>6}: {message['content']}")


asyncio.run(main(*sys.argv[1:]))
