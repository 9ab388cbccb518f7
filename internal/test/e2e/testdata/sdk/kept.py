"""Drives assistants, crons and the store through the Python SDK. Arguments: the agent's URL, the
key."""

import uuid
from datetime import UTC, datetime, timedelta, timezone

from langgraph_sdk.errors import ConflictError, NotFoundError
from story import ANSWERED, ask, create, expect, refused, tell, types

DEFAULT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca"
FAST = {"token_delay_ms": 1, "node_delay_ms": 1}


async def assistants(client):
    of = {"test": str(uuid.uuid4())}
    made = await client.assistants.create("agent", {"configurable": FAST}, metadata=of, name="fast", description="answers at once")
    a = made["assistant_id"]
    again = await client.assistants.create("agent", assistant_id=a, if_exists="do_nothing")
    expect("the same one", again, made)
    await refused(ConflictError, client.assistants.create("agent", assistant_id=a))
    expect("it answers", types(await client.runs.wait(await create(client), a, input=ask("sf"))), ANSWERED)

    second = await client.assistants.update(a, config={"configurable": {**FAST, "answer_words": 3}}, name="short")
    expect("the update", (second["version"], second["name"], second["description"], second["metadata"]), (2, "short", "answers at once", of))
    values = await client.runs.wait(await create(client), a, input=ask("sf"))
    expect("the words of its answer", len(values["messages"][-1]["content"].split()), 3)
    expect("the versions", [v["version"] for v in await client.assistants.get_versions(a)], [2, 1])
    await client.assistants.set_latest(a, 1)
    latest = await client.assistants.get(a)
    expect("the latest", (latest["version"], latest["name"], latest["config"]), (1, "fast", {"configurable": FAST}))

    expect("by metadata", [one["assistant_id"] for one in await client.assistants.search(metadata=of)], [a])
    page = await client.assistants.search(graph_id="agent", limit=1, response_format="object")
    expect("a page", (len(page["assistants"]), page["next"]), (1, "1"))
    expect("the count", await client.assistants.count(metadata=of), 1)
    await client.assistants.delete(a)
    await refused(NotFoundError, client.assistants.get(a))


async def described(client):
    """The default assistant of the graph, whose id follows from the graph's name."""
    expect("the graph", (await client.assistants.get(DEFAULT))["graph_id"], "agent")
    graph = await client.assistants.get_graph(DEFAULT)
    expect("the nodes", {node["id"] for node in graph["nodes"]} >= {"model", "tools"}, True)
    schemas = await client.assistants.get_schemas(DEFAULT)
    expect("the schemas", (schemas["graph_id"], "messages" in schemas["input_schema"]["properties"]), ("agent", True))


async def crons(client):
    of = {"test": str(uuid.uuid4())}
    thread = await create(client)
    end = datetime(2100, 1, 1, tzinfo=UTC)
    stateless = await client.crons.create("agent", schedule="0 0 1 1 *", input=ask("sf"), metadata=of, timezone="Asia/Tokyo", end_time=end, on_run_completed="keep")
    on_thread = await client.crons.create_for_thread(thread, "agent", schedule="0 9 * * 1", input=ask("sf"), metadata=of, enabled=False)
    expect("the thread", (stateless["thread_id"], on_thread["thread_id"]), (None, thread))
    begins = datetime.fromisoformat(stateless["next_run_date"])
    expect("the new year in Tokyo", begins.astimezone(timezone(timedelta(hours=9))).strftime("%d.%m. %H:%M"), "01.01. 00:00")
    expect("its end", datetime.fromisoformat(stateless["end_time"]), end)
    expect("the crons", [c["cron_id"] for c in await client.crons.search(metadata=of, sort_by="created_at", sort_order="asc")], [stateless["cron_id"], on_thread["cron_id"]])
    expect("of the thread", [c["cron_id"] for c in await client.crons.search(thread_id=thread)], [on_thread["cron_id"]])
    expect("those that fire", [c["cron_id"] for c in await client.crons.search(metadata=of, enabled=True)], [stateless["cron_id"]])
    expect("the counts", [await client.crons.count(metadata=of), await client.crons.count(thread_id=thread)], [2, 1])
    changed = await client.crons.update(on_thread["cron_id"], schedule="30 8 * * *", enabled=True, timezone="UTC", end_time=None)
    expect("the change", (changed["schedule"], changed["enabled"], changed["end_time"], changed["next_run_date"][11:16]), ("30 8 * * *", True, None, "08:30"))
    for cron in (stateless, on_thread):
        await client.crons.delete(cron["cron_id"])
    expect("after all are deleted", await client.crons.count(metadata=of), 0)
    await refused(NotFoundError, client.crons.delete(stateless["cron_id"]))


async def store(client):
    root = str(uuid.uuid4())
    for user, key, value in (("ann", "tea", {"likes": "tea"}), ("ann", "cat", {"has": "a cat"}), ("bob", "tea", {"likes": "tea"})):
        await client.store.put_item([root, user], key=key, value=value)
    got = await client.store.get_item([root, "ann"], key="cat")
    expect("the item", (got["namespace"], got["key"], got["value"]), ([root, "ann"], "cat", {"has": "a cat"}))
    found = (await client.store.search_items([root], filter={"likes": "tea"}))["items"]
    expect("those who like tea", sorted(item["namespace"][1] for item in found), ["ann", "bob"])
    expect("a page", len((await client.store.search_items([root], limit=2, offset=2))["items"]), 1)
    namespaces = sorted((await client.store.list_namespaces(prefix=[root]))["namespaces"])
    expect("the namespaces", namespaces, [[root, "ann"], [root, "bob"]])
    expect("less deep", (await client.store.list_namespaces(prefix=[root], max_depth=1))["namespaces"], [[root]])
    await client.store.delete_item([root, "bob"], key="tea")
    expect("what is left", (await client.store.list_namespaces(prefix=[root]))["namespaces"], [[root, "ann"]])
    expect("what is gone", await client.store.get_item([root, "bob"], key="tea"), None)


tell(assistants, described, crons, store)
