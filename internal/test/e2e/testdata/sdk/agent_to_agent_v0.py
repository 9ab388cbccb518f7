# Another agent asks this agent with a client of version 0.3 of the Agent2Agent protocol.
# Arguments: the agent's URL, the key.
import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, TaskIdParams, TaskQueryParams, TaskState, TextPart

url, key = sys.argv[1:3]


def message(text, context=None):
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], context_id=context)


def text_of(parts):
    return "".join(part.root.text for part in parts if part.root.kind == "text")


async def ask(client, *args):
    """Returns the updates and the last state of the task."""
    updates, task = [], None
    async for task, update in client.send_message(message(*args)):
        updates.append(update)
    return updates, task


async def main():
    async with httpx.AsyncClient(headers={"X-Api-Key": key}, timeout=60) as http:
        card = await A2ACardResolver(http, f"{url}/a2a/agent/").get_agent_card()
        assert card.capabilities.streaming and card.url.startswith(url), card
        streaming = ClientFactory(ClientConfig(httpx_client=http, streaming=True)).create(card)
        updates, task = await ask(streaming, "what's the weather in sf?")
        shown = [text_of(u.status.message.parts) for u in updates if u is not None and u.kind == "status-update" and u.status.message][-1]
        answer = text_of(task.artifacts[-1].parts)
        assert task.status.state is TaskState.completed and answer and answer in shown, (task, shown)

        waiting = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        _, again = await ask(waiting, "what's the weather in sf?", task.context_id)
        assert again.context_id == task.context_id and again.id != task.id and again.status.state is TaskState.completed, again
        assert len(again.history) > 2 and again.history[0].role is Role.user, again.history
        read = await waiting.get_task(TaskQueryParams(id=task.id))
        assert read.id == task.id and text_of(read.artifacts[-1].parts) == answer, read

        slow = {"graph_id": "agent", "config": {"configurable": {"token_delay_ms": 1000, "node_delay_ms": 20, "answer_words": 10_000}}}
        assistant = (await http.post(f"{url}/assistants", json=slow)).raise_for_status().json()["assistant_id"]
        card = await A2ACardResolver(http, url).get_agent_card(http_kwargs={"params": {"assistant_id": assistant}})
        polling = ClientFactory(ClientConfig(httpx_client=http, streaming=False, polling=True)).create(card)
        _, begun = await ask(polling, "what's the weather in sf?")
        assert begun.status.state in (TaskState.submitted, TaskState.working), begun
        cancelled = await polling.cancel_task(TaskIdParams(id=begun.id))
        assert cancelled.status.state is TaskState.canceled, cancelled
    print("ok")


asyncio.run(main())
