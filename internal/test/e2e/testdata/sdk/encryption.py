"""Has a conversation with an agent whose repository encrypts: everything that a client reads is
plaintext. Prints the thread's id."""

import asyncio
import base64
import json
import sys
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

URL, KEY, MARKER = sys.argv[1:4]


def client(tenant: str) -> LangGraphClient:
    """A client whose requests have the context of a tenant."""
    context = base64.b64encode(json.dumps({"tenant": tenant}).encode()).decode()
    return get_client(url=URL, api_key=KEY, headers={"X-Encryption-Context": context})


async def values_of(reader: LangGraphClient, thread: str) -> dict[str, Any]:
    """The values of each checkpoint of a thread, as the history and as the state at each checkpoint
    has them."""
    history = await reader.threads.get_history(thread, limit=100)
    found = {h["checkpoint"]["checkpoint_id"]: h["values"] for h in history}
    for checkpoint_id, values in found.items():
        assert (await reader.threads.get_state(thread, checkpoint_id=checkpoint_id))["values"] == values
    return found


async def fork(reader: LangGraphClient, id: str) -> None:
    """Runs from earlier checkpoints, under the context of another tenant, and in a copy of the
    thread."""
    history = await reader.threads.get_history(id, limit=100)
    [begins] = [h["checkpoint"]["checkpoint_id"] for h in history if h["next"] == ["remember"] and h["values"]["text"] == MARKER][-1:]
    asks = next(h["checkpoint"]["checkpoint_id"] for h in history if h["next"] == ["ask"])
    before = await values_of(reader, id)
    other = client("tenant-b")
    forked = await other.runs.wait(id, "agent", checkpoint_id=begins)
    assert forked["seen"] == [MARKER] and [i["value"] for i in forked["__interrupt__"]] == [{"question": MARKER}], forked
    forked = await reader.runs.wait(id, "agent", command={"resume": MARKER + " no"})
    assert forked["answer"] == MARKER + " no", forked
    # Neither branch has changed the others, and the items of two tenants are read together.
    after = await values_of(reader, id)
    assert before.items() <= after.items() and len(after) >= len(before) + 3, (before, after)

    copy = (await reader.threads.copy(id))["thread_id"]
    copied = await values_of(reader, copy)
    assert list(copied.values()) == list(after.values()), (copied, after)
    again = await reader.runs.wait(copy, "agent", checkpoint_id=asks)
    assert [i["value"] for i in again["__interrupt__"]] == [{"question": MARKER}], again
    again = await reader.runs.wait(copy, "agent", command={"resume": MARKER + " again"})
    assert again["answer"] == MARKER + " again", again
    again = await reader.runs.wait(copy, "agent", input={"text": MARKER + " anew"})
    assert again["seen"] == [MARKER + " anew"] and again["__interrupt__"], again
    assert await values_of(reader, id) == after
    await reader.threads.delete(id)
    assert list((await values_of(reader, copy)).values())[-len(after):] == list(after.values())


async def remember(writer: LangGraphClient, reader: LangGraphClient) -> None:
    """Searches by meaning and by words, over items of two tenants."""
    other = client("tenant-b")
    await writer.store.put_item(["facts"], "a", {"text": MARKER + " changed", "owner": "ada"})
    await other.store.put_item(["facts"], "b", {"text": MARKER, "owner": "bob"})
    for change, first in ((None, "a"), (MARKER + " changed", "b")):
        if change:  # the vectors are changed with their item
            await other.store.put_item(["facts"], "b", {"text": change, "owner": "bob"})
            await reader.store.put_item(["facts"], "a", {"text": MARKER, "owner": "ada"})
        found = (await reader.store.search_items(["facts"], query="what has changed"))["items"]
        assert [(item["key"], item["score"] > 0.9) for item in found] == [(first, True), ({"a": "b", "b": "a"}[first], False)], found
        assert all(item["value"]["text"].startswith(MARKER) for item in found), found
    found = (await reader.store.search_items(["facts"], query="what has changed", filter={"owner": "ada"}))["items"]
    assert [item["key"] for item in found] == ["a"], found


async def main() -> None:
    writer, reader = client("tenant-a"), get_client(url=URL, api_key=KEY)
    thread = await writer.threads.create(metadata={"owner": "ada", "note": MARKER})
    id = thread["thread_id"]
    events = [e async for e in writer.runs.stream(
        id, "agent", input={"text": MARKER}, metadata={"why": MARKER}, config={"configurable": {"setting": MARKER}}, stream_mode=["values", "updates", "custom"],
    )]
    assert any(e.event == "custom" and e.data == {"shown": MARKER} for e in events), events
    assert any("__interrupt__" in json.dumps(e.data) for e in events), events

    assert (await reader.threads.get(id))["metadata"]["note"] == MARKER
    state = await reader.threads.get_state(id)
    assert state["values"]["text"] == MARKER and state["values"]["seen"] == [MARKER], state
    assert state["tasks"][0]["interrupts"][0]["value"] == {"question": MARKER}, state
    history = await reader.threads.get_history(id)
    assert len(history) >= 2 and history[0]["values"]["text"] == MARKER
    run = (await reader.runs.list(id))[0]
    assert run["metadata"]["why"] == MARKER and run["kwargs"]["input"]["text"] == MARKER, run
    joined = [e async for e in reader.runs.join_stream(id, run["run_id"], stream_mode=["values", "custom"])]
    assert joined is not None
    for wanted in ({"owner": "ada"}, {"note": MARKER}):
        assert [t["thread_id"] for t in await reader.threads.search(metadata=wanted)] == [id]
    answer = await writer.runs.wait(id, "agent", command={"resume": MARKER + " yes"})
    assert answer["answer"] == MARKER + " yes", answer
    # A reader's own change is encrypted under the context of the thread.
    await reader.threads.update(id, metadata={"more": MARKER})
    await reader.threads.update_state(id, {"text": MARKER + " changed"}, as_node="ask")
    assert (await reader.threads.get_state(id))["values"]["text"] == MARKER + " changed"
    copy = await reader.threads.copy(id)
    assert (await reader.threads.get_state(copy["thread_id"]))["values"]["text"] == MARKER + " changed"

    assert (await reader.store.get_item(["notes"], "last"))["value"] == {"text": MARKER}
    await writer.store.put_item(["notes"], "mine", {"text": MARKER, "owner": "ada"})
    found = (await reader.store.search_items(["notes"], filter={"text": MARKER}))["items"]
    assert sorted(item["key"] for item in found) == ["last", "mine"], found

    assistant = await writer.assistants.create("agent", metadata={"note": MARKER}, config={"configurable": {"setting": MARKER}}, name="mine")
    assert (await reader.assistants.get(assistant["assistant_id"]))["metadata"]["note"] == MARKER
    assert [a["name"] for a in await reader.assistants.search(metadata={"note": MARKER})] == ["mine"]
    cron = await writer.crons.create("agent", schedule="0 0 1 1 *", input={"text": MARKER}, metadata={"note": MARKER})
    assert MARKER in json.dumps(await reader.crons.search()), cron

    failed = await writer.runs.create(id, "agent", input={"text": MARKER, "fail": True})
    await writer.runs.join(id, failed["run_id"])
    assert (await reader.runs.get(id, failed["run_id"]))["status"] == "error"
    stateless = await writer.runs.wait(None, "agent", input={"text": MARKER})
    assert stateless["text"] == MARKER, stateless
    await fork(reader, (await writer.threads.copy(id))["thread_id"])
    await remember(writer, reader)
    print(id)


asyncio.run(main())
