# Another agent asks this agent with the client of the Agent2Agent protocol. Arguments: the agent's
# URL, the key.
import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory, create_client
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest, TaskNotCancelableError, TaskState, UnsupportedOperationError, VersionNotSupportedError

url, key = sys.argv[1:3]


def message(text, context=None):
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], context_id=context))


def text_of(parts):
    return "".join(part.text for part in parts)


async def refused(error, awaitable):
    try:
        await awaitable
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


async def main():
    async with httpx.AsyncClient(headers={"X-Api-Key": key}, timeout=60) as http:
        client = await create_client(f"{url}/a2a/agent/", client_config=ClientConfig(httpx_client=http))
        events = [event async for event in client.send_message(message("what's the weather in sf?"))]
        shown = [text_of(e.status_update.status.message.parts) for e in events if e.HasField("status_update") and e.status_update.status.message.parts][-1]
        task = events[0].task
        answer = text_of(next(e.artifact_update.artifact.parts for e in events if e.HasField("artifact_update")))
        assert answer and answer in shown, (events, shown)
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events[-1]

        card = await A2ACardResolver(http, f"{url}/a2a/agent/").get_agent_card()
        assert card.capabilities.streaming and card.security_schemes["key"].api_key_security_scheme.name, card
        assert [i.protocol_version for i in card.supported_interfaces] == ["1.0", "0.3"], card
        assert "key" in card.security_requirements[0].schemes, card
        waiting = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        again = [event async for event in waiting.send_message(message("what's the weather in sf?", task.context_id))][0].task
        assert again.context_id == task.context_id and again.id != task.id and again.status.state == TaskState.TASK_STATE_COMPLETED, again
        assert len(again.history) > 2 and again.history[0].role == Role.ROLE_USER, again.history
        read = await waiting.get_task(GetTaskRequest(id=task.id))
        assert read.id == task.id and text_of(read.artifacts[-1].parts) == answer, read

        listed = await waiting.list_tasks(ListTasksRequest(context_id=task.context_id, page_size=1))
        assert [t.id for t in listed.tasks] == [again.id] and not listed.tasks[0].artifacts and listed.next_page_token, listed
        rest = await waiting.list_tasks(ListTasksRequest(context_id=task.context_id, page_token=listed.next_page_token, include_artifacts=True, history_length=1))
        assert [t.id for t in rest.tasks] == [task.id] and not rest.next_page_token and rest.total_size == 2, rest
        assert text_of(rest.tasks[0].artifacts[-1].parts) == answer and len(rest.tasks[0].history) == 1, rest
        since = ListTasksRequest(context_id=task.context_id, status=TaskState.TASK_STATE_COMPLETED, status_timestamp_after=again.status.timestamp)
        assert [t.id for t in (await waiting.list_tasks(since)).tasks] == [again.id]
        await refused(UnsupportedOperationError, waiting.list_tasks(ListTasksRequest()))

        newer = ClientCallContext(service_parameters={"A2A-Version": "9.9"})
        await refused(VersionNotSupportedError, waiting.get_task(GetTaskRequest(id=task.id), context=newer))
        await refused(VersionNotSupportedError, anext(client.send_message(message("hello"), context=newer)))

        slow = {"graph_id": "agent", "config": {"configurable": {"token_delay_ms": 1000, "node_delay_ms": 20, "answer_words": 10_000}}}
        assistant = (await http.post(f"{url}/assistants", json=slow)).raise_for_status().json()["assistant_id"]
        card = await A2ACardResolver(http, url).get_agent_card(http_kwargs={"params": {"assistant_id": assistant}})
        polling = ClientFactory(ClientConfig(httpx_client=http, streaming=False, polling=True)).create(card)
        begun = [event async for event in polling.send_message(message("what's the weather in sf?"))][0].task
        assert begun.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), begun
        following = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        followed = following.subscribe(SubscribeToTaskRequest(id=begun.id))
        assert (await anext(followed)).task.id == begun.id
        cancelled = await polling.cancel_task(CancelTaskRequest(id=begun.id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
        seen = [event async for event in followed]
        assert seen[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, seen
        await refused(UnsupportedOperationError, anext(following.subscribe(SubscribeToTaskRequest(id=begun.id))))
        await refused(TaskNotCancelableError, polling.cancel_task(CancelTaskRequest(id=begun.id)))
    print("ok")


asyncio.run(main())
