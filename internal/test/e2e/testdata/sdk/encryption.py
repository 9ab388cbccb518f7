"""Has a conversation with an agent whose repository encrypts: everything that a client reads is plaintext. Prints the thread's id."""

import asyncio
import base64
import json
import sys

from langgraph_sdk import get_client

URL, KEY, MARKER = sys.argv[1:4]
CONTEXT = {"X-Encryption-Context": base64.b64encode(json.dumps({"tenant": "tenant-a"}).encode()).decode()}


async def main() -> None:
    writer, reader = get_client(url=URL, api_key=KEY, headers=CONTEXT), get_client(url=URL, api_key=KEY)
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
    print(id)


asyncio.run(main())
