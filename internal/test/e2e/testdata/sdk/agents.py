"""Drives an example agent through the Python SDK. Arguments: the agent's URL, the key, the agent's
language, the stories, with commas between them, and what they take. AGENT names the graph where it
has another name than in the examples' own configuration."""

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path

from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError, NotFoundError

URL, KEY, LANGUAGE, STORIES, *REST = sys.argv[1:]
AGENT = os.environ.get("AGENT", "agent")
FACTS = json.loads(Path(__file__).with_name("agents.json").read_text())[LANGUAGE]
ANSWERED = ["human", "ai", "tool", "ai"]
LAMP = {"request": "the broken lamp"}


def expect(what, got, want):
    assert got == want, f"{what}: {got!r}, want {want!r}"


def types(values):
    return [message["type"] for message in values["messages"]]


def names(parts):
    return [part.event for part in parts]


def data(parts, event):
    return [part.data for part in parts if part.event == event]


def part_of(values, wanted):
    return {key: values.get(key) for key in wanted}


async def collect(stream):
    parts = [part async for part in stream]
    expect("no error", [part for part in parts if part.event.startswith("error")], [])
    return parts


async def create(client):
    return (await client.threads.create())["thread_id"]


def ask(city):
    return {"messages": [{"role": "user", "content": f"what is the weather in {city}?"}]}


def delay(ms):
    return {"configurable": {"token_delay_ms": ms}}


async def react(client):
    """Values, tokens and updates of an agent with tools; a second question goes on from the
    first."""
    facts = FACTS["react"]
    thread = await create(client)
    parts = await collect(client.runs.stream(thread, AGENT, input=ask(facts["cities"][0]), stream_mode=["values", "messages-tuple", "updates"]))
    expect("the first event", parts[0].event, "metadata")
    expect("the kinds of events", set(names(parts)), {"metadata", "values", "messages", "updates"})
    expect("the updates", [list(update) for update in data(parts, "updates")], [[facts["model"]], ["tools"], [facts["model"]]])
    values = data(parts, "values")
    if len(values) == 5:  # the first thread of a graph sees its input twice: as the server has it, and as the graph does
        values = values[1:]
    expect("the values", [types(v) for v in values], [ANSWERED[:n] for n in (1, 2, 3, 4)])
    chunks = data(parts, "messages")
    tokens = [chunk["content"] for chunk, about in chunks if about["langgraph_node"] == facts["model"] and chunk["content"]]
    expect("the tokens", "".join(tokens), facts["answers"][0])
    assert len(tokens) > 3, tokens
    final = values[-1]["messages"]
    expect("the answer's id", {chunk["id"] for chunk, _ in chunks if chunk["content"] == tokens[-1]}, {final[3]["id"]})
    expect("the tool", (final[2]["name"], final[1]["tool_calls"][0]["name"]), (facts["tool"], facts["tool"]))
    expect("each message's id stays", [v["messages"][0]["id"] for v in values], [final[0]["id"]] * 4)
    state = await client.threads.get_state(thread)
    expect("the state", state["values"]["messages"], final)
    expect("what is next", (state["next"], state["tasks"]), ([], []))
    values = await client.runs.wait(thread, AGENT, input=ask(facts["cities"][1]))
    expect("both answers", [m["content"] for m in values["messages"] if m["type"] == "ai" and m["content"]], facts["answers"])
    history = await client.threads.get_history(thread, limit=100)
    expect("the steps", [h["metadata"]["step"] for h in history], [8, 7, 6, 5, 4, 3, 2, 1, 0, -1])
    sources = ["loop"] * 4 + ["input"] + ["loop"] * 4 + ["input"]
    expect("the sources", [h["metadata"]["source"] for h in history], sources)
    model = facts["model"]
    question = ["__start__", model, "tools", model]
    expect("the next nodes", [h["next"] for h in history[::-1]], [[n] for n in question] + [[]] + [[n] for n in question] + [[]])
    expect("the tasks", [[task["name"] for task in h["tasks"]] for h in history], [h["next"] for h in history])
    parents = [h["parent_checkpoint"] and h["parent_checkpoint"]["checkpoint_id"] for h in history]
    expect("the parents", parents, [h["checkpoint"]["checkpoint_id"] for h in history[1:]] + [None])


async def returned(client, thread):
    """What the tasks of each step have returned, from the first step on: as history has it, and the
    state at each checkpoint."""
    history = await client.threads.get_history(thread, limit=100)
    results = [[task["result"] for task in h["tasks"]] for h in history]
    for h, found in zip(history, results):
        at = await client.threads.get_state(thread, checkpoint_id=h["checkpoint"]["checkpoint_id"])
        expect("the results at a checkpoint", [task["result"] for task in at["tasks"]], found)
    return results[::-1]


async def react_returned(client):
    facts = FACTS["react"]
    thread = await create(client)
    values = await client.runs.wait(thread, AGENT, input=ask(facts["cities"][0]))
    contents = [message["content"] for message in values["messages"]]
    results = await returned(client, thread)
    expect("the contents", [[[m["content"] for m in result["messages"]] for result in found] for found in results], [[[c]] for c in contents] + [[]])
    calls = results[1][0]["messages"][0]["tool_calls"]
    expect("the call of the tool", [call["name"] for call in calls], [facts["tool"]])


async def approval_returned(client):
    facts = FACTS["approval"]
    thread = await create(client)
    await client.runs.wait(thread, AGENT, input=LAMP)
    first = [[LAMP], [{"draft": facts["draft"]}]]
    expect("the results while it waits", await returned(client, thread), [*first, [None]])
    await client.runs.wait(thread, AGENT, command={"resume": facts["yes"]})
    expect("the results", await returned(client, thread), [*first, *[[result] for result in facts["returned"]], []])


async def map_reduce_returned(client):
    facts = FACTS["map-reduce"]
    thread = await create(client)
    values = await client.runs.wait(thread, AGENT, input=facts["input"])
    [branches] = [found for found in await returned(client, thread) if len(found) > 1]
    expect("the results of the branches", branches, [{"jokes": [joke]} for joke in values["jokes"]])


async def until_tool(client, thread):
    while types((await client.threads.get_state(thread))["values"] or {"messages": []}) != ANSWERED[:3]:
        await asyncio.sleep(0.02)


async def begun(client, ms=1500):
    """A thread with a run that has its tool's result and is to answer."""
    thread = await create(client)
    run = await client.runs.create(thread, AGENT, input=ask(FACTS["react"]["cities"][0]), config=delay(ms))
    await until_tool(client, thread)
    return thread, run["run_id"]


async def interrupted(client):
    facts = FACTS["react"]
    thread, first = await begun(client)
    second = await client.runs.create(thread, AGENT, input=ask(facts["cities"][1]), multitask_strategy="interrupt")
    await client.runs.join(thread, second["run_id"])
    state = await client.threads.get_state(thread)
    messages = state["values"]["messages"]
    expect("the seven messages", types(state["values"]), [*ANSWERED[:3], *ANSWERED])
    expect("the answer", messages[-1]["content"], facts["answers"][1])
    expect("the questions", [facts["cities"][n] in messages[i]["content"] for n, i in ((0, 0), (1, 3))], [True, True])
    expect("what is next", state["next"], [])
    expect("the step", state["metadata"]["step"], 7)
    expect("the runs", [(await client.runs.get(thread, run))["status"] for run in (first, second["run_id"])], ["interrupted", "success"])
    expect("the thread", (await client.threads.get(thread))["status"], "idle")


async def shown(client):
    """What was shown of an interrupted answer stays, before the next question."""
    facts = FACTS["react"]
    thread = await create(client)
    seen, second = "", None
    async for part in client.runs.stream(thread, AGENT, input=ask(facts["cities"][0]), config=delay(600), stream_mode="messages-tuple", stream_resumable=True):
        if part.event == "messages" and part.data[1]["langgraph_node"] == facts["model"]:
            seen += part.data[0]["content"]
        if len(seen) > 6 and not second:
            second = await client.runs.create(thread, AGENT, input=ask(facts["cities"][1]), multitask_strategy="interrupt")
    await client.runs.join(thread, second["run_id"])
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    expect("the messages", [m["type"] for m in messages], [*ANSWERED, *ANSWERED])
    expect("what was shown", messages[3]["content"], seen)
    assert seen != facts["answers"][0], seen
    expect("the answer", messages[-1]["content"], facts["answers"][1])


async def enqueued(client):
    facts = FACTS["react"]
    thread, first = await begun(client, 100)
    second = await client.runs.create(thread, AGENT, input=ask(facts["cities"][1]), multitask_strategy="enqueue")
    values = await client.runs.join(thread, second["run_id"])
    expect("all messages", types(values), [*ANSWERED, *ANSWERED])
    expect("both answers", [values["messages"][i]["content"] for i in (3, 7)], facts["answers"])
    expect("the runs", [(await client.runs.get(thread, run))["status"] for run in (first, second["run_id"])], ["success", "success"])


async def rejected(client):
    thread, first = await begun(client, 300)
    try:
        await client.runs.create(thread, AGENT, input=ask("rome"), multitask_strategy="reject")
        raise AssertionError("the second run was not rejected")
    except ConflictError:
        pass
    expect("the messages", types(await client.runs.join(thread, first)), ANSWERED)
    expect("the runs", [run["status"] for run in await client.runs.list(thread)], ["success"])


async def rolled_back(client):
    facts = FACTS["react"]
    thread, first = await begun(client)
    second = await client.runs.create(thread, AGENT, input=ask(facts["cities"][1]), multitask_strategy="rollback")
    values = await client.runs.join(thread, second["run_id"])
    expect("the messages", types(values), ANSWERED)
    expect("the answer", values["messages"][-1]["content"], facts["answers"][1])
    try:
        await client.runs.get(thread, first)
        raise AssertionError("the run is still there")
    except NotFoundError:
        pass
    runs = {h["metadata"].get("run_id") for h in await client.threads.get_history(thread)}
    expect("the runs of the history", runs, {second["run_id"]})


async def breakpoints(client):
    """A run stops before a node and after one, goes on without an input, and is sent to a node by a
    command."""
    model, thread = FACTS["react"]["model"], await create(client)
    values = await client.runs.wait(thread, AGENT, input=ask(FACTS["react"]["cities"][0]), interrupt_before=["tools"])
    expect("before the tools", (types(values), (await client.threads.get_state(thread))["next"]), (["human", "ai"], ["tools"]))
    expect("the thread", (await client.threads.get(thread))["status"], "interrupted")
    values = await client.runs.wait(thread, AGENT, input=None, interrupt_after=["tools"])
    expect("after the tools", (types(values), (await client.threads.get_state(thread))["next"]), (["human", "ai", "tool"], [model]))
    expect("at the end", types(await client.runs.wait(thread, AGENT, input=None)), ANSWERED)
    parts = await collect(client.runs.stream(thread, AGENT, command={"goto": model}, stream_mode="updates"))
    expect("where it was sent", list(data(parts, "updates")[0]), [model])


async def configured(client):
    """A thread shows the configuration of its runs, which a run without one leaves as it is."""
    thread = await create(client)
    expect("the configuration at first", (await client.threads.get(thread))["config"], {})
    given = {"tags": ["mine"], "recursion_limit": 30, "configurable": {"style": "short", "user": {"name": "Ann"}}}
    for config in (given, {"configurable": {"place": "Rome"}}, None):
        await client.runs.wait(thread, AGENT, input=ask(FACTS["react"]["cities"][0]), config=config)
    config = (await client.threads.get(thread))["config"]
    expect("the configuration", part_of(config, ["tags", "recursion_limit"]), {"tags": ["mine"], "recursion_limit": 30})
    [found] = await client.threads.search(ids=[thread])
    expect("the configuration in a search", found["config"], config)
    expect("the values for the graph", part_of(config["configurable"], ["style", "user", "place"]), {**given["configurable"], "place": "Rome"})
    copied = await client.threads.copy(thread) or (await client.threads.search(limit=1, sort_by="created_at", sort_order="desc"))[0]
    expect("the configuration of a copy", copied["config"], {})


async def of_two(client):
    """A thread that two assistants have used: its metadata and the metadata of each run name the
    assistant of the run."""
    given = {"graph_id": AGENT, "note": "mine"}
    thread = (await client.threads.create(metadata=given))["thread_id"]
    assistants = []
    for style in ("short", "long"):
        assistant = (await client.assistants.create(AGENT, config={"configurable": {"style": style}}))["assistant_id"]
        assistants.append(assistant)
        before = {run["run_id"] for run in await client.runs.list(thread)}
        await client.runs.wait(thread, assistant, input=ask(FACTS["react"]["cities"][0]))
        found = await client.threads.get(thread)
        expect("the metadata", found["metadata"], {**given, "assistant_id": assistant})
        [run] = [run for run in await client.runs.list(thread) if run["run_id"] not in before]
        expect("the run's metadata", part_of(run["metadata"], ["graph_id", "assistant_id", "note"]), found["metadata"])
    for assistant in assistants:
        await client.assistants.delete(assistant)
    return found


async def of_the_second(client):
    """The values of the configuration that a thread and its last run have of two assistants."""
    found = await of_two(client)
    state = await client.threads.get_state(found["thread_id"])
    expect("the styles", (found["config"]["configurable"]["style"], state["metadata"]["style"]), ("long", "long"))


async def described(client):
    """Assistants: the default one of the graph, its graph and its schemas."""
    found = await client.assistants.search(graph_id=AGENT)
    expect("the assistants", [a["graph_id"] for a in found], [AGENT])
    graph = await client.assistants.get_graph(found[0]["assistant_id"])
    nodes = {node["id"] for node in graph["nodes"]}
    assert {"__start__", "__end__", "tools", FACTS["react"]["model"]} <= nodes, nodes
    assert all(edge["source"] in nodes and edge["target"] in nodes for edge in graph["edges"]), graph
    schemas = await client.assistants.get_schemas(found[0]["assistant_id"])
    expect("the graph's id", schemas["graph_id"], AGENT)
    if LANGUAGE == "python":  # a graph of TypeScript types has no schema
        assert "messages" in schemas["input_schema"]["properties"], schemas


async def asked(client, input=LAMP):
    """A thread that waits for a person's answer."""
    facts = FACTS["approval"]
    thread = await create(client)
    parts = await collect(client.runs.stream(thread, AGENT, input=input, stream_mode=["values", "updates"]))
    asks = [update["__interrupt__"] for update in data(parts, "updates") if "__interrupt__" in update]
    expect("the question in the stream", [[i["value"] for i in ask] for ask in asks], [[facts["question"]]])
    expect("the updates", [list(update) for update in data(parts, "updates")], [["write"], ["__interrupt__"]])
    expect("the question in the last values", [i["value"] for i in data(parts, "values")[-1]["__interrupt__"]], [facts["question"]])
    return thread


async def wants_question(client, thread, question=None):
    """The state of a thread that waits: returns it."""
    question = question or FACTS["approval"]["question"]
    state = await client.threads.get_state(thread)
    expect("what is next", state["next"], ["approve"])
    expect("the tasks", [(t["name"], [i["value"] for i in t["interrupts"]]) for t in state["tasks"]], [("approve", [question])])
    expect("the state's interrupts", [i["value"] for i in state["interrupts"]], [question])
    found = await client.threads.get(thread)
    expect("the thread's status", found["status"], "interrupted")
    expect("the thread's interrupts", {task: [i["value"] for i in all] for task, all in found["interrupts"].items()}, {state["tasks"][0]["id"]: [question]})
    assert state["tasks"][0]["interrupts"][0]["id"], state
    expect("the runs", {run["status"] for run in await client.runs.list(thread)}, {"success"})
    return state


async def wants_sent(client, thread, values, draft):
    facts = FACTS["approval"]
    wanted = {**LAMP, "draft": draft, **(facts["sent"] or {"sent": draft})}
    expect("the values", values, wanted)
    state = await client.threads.get_state(thread)
    expect("the state", (state["values"], state["next"], state["tasks"], state["interrupts"]), (wanted, [], [], []))
    found = await client.threads.get(thread)
    expect("the thread", (found["status"], found["interrupts"]), ("idle", {}))


async def approval(client):
    """A person approves, sends another text, or refuses."""
    facts = FACTS["approval"]
    thread = await asked(client)
    await wants_question(client, thread)
    parts = await collect(client.runs.stream(thread, AGENT, command={"resume": facts["yes"]}, stream_mode="updates"))
    expect("the updates", [list(update) for update in data(parts, "updates")], [["approve"], ["send"]])
    await wants_sent(client, thread, (await client.threads.get_state(thread))["values"], facts["draft"])
    history = await client.threads.get_history(thread)
    expect("the steps", [h["metadata"]["step"] for h in history], [3, 2, 1, 0, -1])
    expect("the next nodes", [h["next"] for h in history], [[], ["send"], ["approve"], ["write"], ["__start__"]])
    expect("the question in history", [i["value"] for i in history[2]["tasks"][0]["interrupts"]], [facts["question"]])

    thread = await asked(client)
    values = await client.runs.wait(thread, AGENT, command={"resume": facts["other"]})
    await wants_sent(client, thread, values, "Dear customer, it is mended.")

    thread = await asked(client)
    parts = await collect(client.runs.stream(thread, AGENT, command={"resume": facts["no"]}, stream_mode="updates"))
    expect("the updates", ["write", *(next(iter(update)) for update in data(parts, "updates"))], facts["refused"])
    state = await client.threads.get_state(thread)
    expect("the values", (state["values"], state["next"]), ({**LAMP, "draft": facts["draft"], **facts["ends"]}, []))

    thread = await create(client)
    values = await client.runs.wait(thread, AGENT, input=LAMP)
    expect("what a wait says of a question", [i["value"] for i in values["__interrupt__"]], [facts["question"]])


async def edited(client):
    """The state is edited before the answer, and time travelled afterwards."""
    facts = FACTS["approval"]
    thread = await asked(client)
    before = await wants_question(client, thread)
    await client.threads.update_state(thread, {"draft": "Dear customer, no."}, as_node="write")
    question = {**facts["question"], "draft": "Dear customer, no."}
    state = await client.threads.get_state(thread)
    expect("after the edit", (state["values"], state["next"]), ({**LAMP, "draft": "Dear customer, no."}, ["approve"]))
    expect("the edit's metadata", (state["metadata"]["source"], state["metadata"]["step"]), ("update", before["metadata"]["step"] + 1))
    values = await client.runs.wait(thread, AGENT, input=None)
    expect("the new question", [i["value"] for i in values["__interrupt__"]], [question])
    await wants_question(client, thread, question)
    values = await client.runs.wait(thread, AGENT, command={"resume": facts["yes"]})
    await wants_sent(client, thread, values, "Dear customer, no.")

    # The checkpoint before the edit is asked about again, and answered otherwise.
    history = await client.threads.get_history(thread)
    expect("the number of checkpoints", len(history), 6)
    old = next(h for h in history if h["checkpoint"]["checkpoint_id"] == before["checkpoint"]["checkpoint_id"])
    expect("the old values", old["values"], {**LAMP, "draft": facts["draft"]})
    at_old = await client.threads.get_state(thread, checkpoint_id=old["checkpoint"]["checkpoint_id"])
    expect("the state at the old checkpoint", (at_old["values"], at_old["next"]), (old["values"], ["approve"]))
    values = await client.runs.wait(thread, AGENT, command={"resume": facts["other"]}, checkpoint_id=old["checkpoint"]["checkpoint_id"])
    await wants_sent(client, thread, values, "Dear customer, it is mended.")
    forked = await client.threads.get_history(thread)
    expect("what the fork added", len(forked) >= 8, True)
    ids = {h["checkpoint"]["checkpoint_id"] for h in forked}
    expect("the other branch is still there", {h["checkpoint"]["checkpoint_id"] for h in history} <= ids, True)

    # A fork by an update of an old checkpoint, which then runs from there.
    written = next(h for h in history if h["next"] == ["write"])
    fork = await client.threads.update_state(thread, {"request": "the lost lamp"}, checkpoint=written["checkpoint"], as_node="__start__")
    values = await client.runs.wait(thread, AGENT, input=None, checkpoint=fork["checkpoint"])
    assert "the lost lamp" in values["__interrupt__"][0]["value"]["draft"], values


async def pause(client):
    """Asks, and says on which thread; answer goes on there."""
    thread = await asked(client)
    await wants_question(client, thread)
    print(thread, flush=True)


async def answer(client, thread):
    await wants_question(client, thread)
    values = await client.runs.wait(thread, AGENT, command={"resume": FACTS["approval"]["yes"]})
    await wants_sent(client, thread, values, FACTS["approval"]["draft"])


async def subgraph(client):
    """The events and the state of a graph within a graph, which asks in its middle."""
    facts = FACTS["subgraph"]
    outer, inner = facts["nodes"], facts["inner"]
    thread = await create(client)
    parts = await collect(client.runs.stream(thread, AGENT, input={"city": "Rome"}, stream_mode=["updates", "values"], stream_subgraphs=True))
    spaces = {part.event.partition("|")[2] for part in parts} - {""}
    expect("the namespaces", [space.partition(":")[0] for space in spaces], [outer[1]])
    space = spaces.pop()
    updates = [(part.event, list(part.data)) for part in parts if part.event.startswith("updates")]
    wanted = [("updates", [outer[0]]), (f"updates|{space}", [inner[0]]), (f"updates|{space}", ["__interrupt__"]), ("updates", ["__interrupt__"])]
    expect("the updates", updates, wanted)
    expect("values of the inner graph", {"values", f"values|{space}"} <= set(names(parts)), True)

    state = await client.threads.get_state(thread)
    expect("what is next", state["next"], [outer[1]])
    expect("the question", [[i["value"] for i in task["interrupts"]] for task in state["tasks"]], [[facts["question"]]])
    expect("the inner checkpoint", state["tasks"][0]["checkpoint"]["checkpoint_ns"], space)
    expect("the inner state is not told", state["tasks"][0]["state"], None)
    state = await client.threads.get_state(thread, subgraphs=True)
    within = state["tasks"][0]["state"]
    expect("the inner state", (part_of(within["values"], facts["found"]), within["next"]), (facts["found"], [inner[1]]))
    expect("the inner tasks", [(t["name"], [i["value"] for i in t["interrupts"]]) for t in within["tasks"]], [(inner[1], [facts["question"]])])
    at = await client.threads.get_state(thread, checkpoint=within["checkpoint"])
    expect("the inner state by its checkpoint", (at["values"], at["next"]), (within["values"], within["next"]))

    # The state of the inner graph is changed while it waits.
    await client.threads.update_state(thread, facts["changed"], checkpoint=within["checkpoint"])
    state = await client.threads.get_state(thread, subgraphs=True)
    expect("the changed inner state", part_of(state["tasks"][0]["state"]["values"], facts["changed"]), facts["changed"])

    thread = await create(client)
    await client.runs.wait(thread, AGENT, input={"city": "Rome"})
    parts = await collect(client.runs.stream(thread, AGENT, command={"resume": facts["resume"]}, stream_mode=["updates"], stream_subgraphs=True))
    updates = [(part.event.partition(":")[0], *part.data) for part in parts if part.event.startswith("updates")]
    expect("the updates after the answer", updates, [(f"updates|{outer[1]}", inner[1]), ("updates", outer[1]), ("updates", outer[2])])
    state = await client.threads.get_state(thread)
    expect("the values", (part_of(state["values"], facts["values"]), state["next"]), (facts["values"], []))
    expect("the steps", [h["metadata"]["step"] for h in await client.threads.get_history(thread)], [3, 2, 1, 0, -1])


async def map_reduce(client):
    facts = FACTS["map-reduce"]
    thread = await create(client)
    parts = await collect(client.runs.stream(thread, AGENT, input=facts["input"], stream_mode=["updates", "tasks"]))
    expect("the updates", [next(iter(u)) for u in data(parts, "updates")], [*facts["first"], *[facts["branch"]] * facts["count"], facts["last"]])
    branches = [task for task in data(parts, "tasks") if task["name"] == facts["branch"]]
    expect("begins and ends of branches", Counter("result" in task for task in branches), {True: facts["count"], False: facts["count"]})
    state = await client.threads.get_state(thread)
    expect("the result", (len(state["values"]["jokes"]), state["values"]["best"], state["next"]), (facts["count"], facts["best"], []))
    history = await client.threads.get_history(thread)
    expect("the branches in history", [h["next"] for h in history if len(h["next"]) > 1], [[facts["branch"]] * facts["count"]])


async def killed(client):
    """The agent is killed when all branches but one are done; who started this does so at the
    word."""
    facts = FACTS["map-reduce"]
    thread = await create(client)
    done = 0
    async for part in client.runs.stream(thread, AGENT, input=facts["input"], stream_mode="updates", stream_resumable=True):
        assert not part.event.startswith("error"), part
        if part.event == "updates":
            done += facts["branch"] in part.data
            if done == facts["count"] - 1 and facts["branch"] in part.data:
                print("done", flush=True)
    state = await client.threads.get_state(thread)
    expect("the result", (len(state["values"]["jokes"]), state["values"]["best"], state["next"]), (facts["count"], facts["best"], []))
    expect("the run", [run["status"] for run in await client.runs.list(thread)], ["success"])


async def custom(client):
    facts = FACTS["custom"]
    thread = await create(client)
    parts = await collect(client.runs.stream(thread, AGENT, input={"files": ["a", "b"]}, stream_mode=["custom", "updates"]))
    expect("what the node says", data(parts, "custom"), facts["says"])
    expect("the order", names(parts), ["metadata", *["custom"] * len(facts["says"]), "updates"])
    expect("the values", (await client.threads.get_state(thread))["values"], facts["values"])
    parts = await collect(client.runs.stream(thread, AGENT, input={"files": ["a", "b"]}, stream_mode="values"))
    expect("the values of a step that changes nothing", data(parts, "values"), [facts["values"]] * 2)
    parts = await collect(client.runs.stream(None, AGENT, input={"files": ["a", "b"]}, stream_mode="custom"))
    expect("what the node says without a thread", data(parts, "custom"), facts["says"])


async def store(client):
    facts = FACTS["store"]
    config = {"configurable": {"user_id": "ann"}}

    async def say(text):
        values = await client.runs.wait(await create(client), AGENT, input={"messages": [{"role": "user", "content": text}]}, config=config)
        return values["messages"][-1]["content"]

    for item in (await client.store.search_items(["memories", "ann"], limit=100))["items"]:
        await client.store.delete_item(item["namespace"], item["key"])
    expect("the reply", await say(facts["tell"]), facts["told"])
    found = (await client.store.search_items(["memories", "ann"]))["items"]
    expect("the item", [(i["namespace"], i["value"]) for i in found], [(["memories", "ann"], {facts["member"]: "I like tea"})])
    got = await client.store.get_item(["memories", "ann"], key=found[0]["key"])
    expect("the item by its key", got["value"], found[0]["value"])
    await client.store.put_item(["memories", "ann"], key="from outside", value={facts["member"]: "I have a cat"})
    expect("what the agent knows", await say("what do you know?"), facts["answer"].format("I have a cat" + facts["join"] + "I like tea"))
    expect("the namespaces", (await client.store.list_namespaces(prefix=["memories", "ann"]))["namespaces"], [["memories", "ann"]])


async def main():
    client = get_client(url=URL, api_key=KEY)
    for story in STORIES.split(","):
        await globals()[story](client, *REST)


asyncio.run(main())
