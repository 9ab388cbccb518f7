"""Drives threads.stream, the thread-centric streaming protocol, through the synchronous client of
the Python SDK.

Arguments: the agent's URL, the key, the transport of events, and the stories to tell: "asked" and
"subgraphs", for which the agent follows scripts, or "killed", which says "shown" when the server
may be killed; the others without a name."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from time import sleep

from langgraph_sdk import get_sync_client
from story import ANSWERED, BRISK, FAST, SLOW, ask, expect, types
from threads_v3 import CHANNELS, DEEP, GOES_ON, LONG, PAUSES, SUBGRAPH, ends, root, said, stream, text


def up_to(events, is_last=lambda event, _: ends(event)):
    """Reads up to an event, the end of a run."""
    seen = []
    for event in events:
        seen.append(event)
        if is_last(event, seen):
            return seen
    raise AssertionError("the stream has ended")


def each_is_finished(seen):
    frames = [said(event) for event in seen if event["method"] == "messages"]
    expect("each message is finished", frames.count("message-start"), frames.count("message-finish"))


def started(client):
    """Tokens in their order, tools, and the output."""
    with stream(client) as thread:
        run = thread.run.start(input=ask("sf"), config=BRISK)
        shown, called = [], []
        for channel, item in thread.interleave_projections(["messages", "tool_calls"]):
            (shown if channel == "messages" else called).append(item)
        output = thread.output
        expect("the output", types(output), ANSWERED)
        expect("the messages", [message.message_id for message in shown], [output["messages"][i]["id"] for i in (1, 3)])
        expect("the answer", "".join(shown[1].text), output["messages"][3]["content"])
        call = output["messages"][1]["tool_calls"][0]
        expect("the tools", [(c.name, c.input, c.output["type"]) for c in called], [(call["name"], call["args"], "tool")])
        expect("the run", client.runs.get(thread.thread_id, run["run_id"])["status"], "success")


def interrupted(client):
    """The first run ends before the second begins, and what was shown of it is kept."""
    thread_id = client.threads.create()["thread_id"]
    with stream(client, thread_id) as thread:
        thread.run.start(input=ask("sf"), config=LONG)
        second = []

        def overtaken(event, seen):
            if not second and len(text(seen)) > 40:
                second.append(client.runs.create(thread_id, "agent", input=ask("nyc"), config=FAST, multitask_strategy="interrupt"))
            return root(event) and said(event) == "completed"

        seen = up_to(thread.subscribe(CHANNELS), overtaken)
    expect("the lifecycles", [said(event) for event in seen if root(event)], ["running", "interrupted", "running", "completed"])
    each_is_finished(seen)
    messages = client.threads.get_state(thread_id)["values"]["messages"]
    expect("the thread", [m["type"] for m in messages], [*ANSWERED, *ANSWERED])
    end = next(i for i, event in enumerate(seen) if root(event) and said(event) == "interrupted")
    expect("what was shown", messages[3]["content"], text(seen[:end]))
    expect("the numbers", [event["seq"] for event in seen], sorted({event["seq"] for event in seen}))


def two_tabs(client):
    """A tab that comes in the middle of the answer waits for its end. The SDK lets only who has
    started a run subscribe."""
    with stream(client) as first, ThreadPoolExecutor() as others:
        thread_id, second = first.thread_id, []

        def read():
            with stream(client, thread_id) as tab:
                return tab.output

        def opens(event, seen):
            if not second and len(text(seen)) > 10:
                second.append(others.submit(read))
            return ends(event)

        first.run.start(input=ask("sf"), config=BRISK)
        up_to(first.subscribe(CHANNELS), opens)
        expect("the tab that comes in the middle", second[0].result(), first.output)
        expect("the tab that comes late", read(), first.output)


def failing(client):
    with stream(client) as thread:
        thread.run.start(input=ask("sf"), config={"configurable": {"node_delay_ms": 0, "fail": "tools"}})
        try:
            output = thread.output
        except RuntimeError as failure:
            assert "node tools fails" in str(failure), failure
        else:
            raise AssertionError(f"the run has not failed: {output}")


def cancelled(client):
    thread_id = client.threads.create()["thread_id"]
    with stream(client, thread_id) as thread:
        run = thread.run.start(input=ask("sf"), config=SLOW)
        asked = []

        def stop(event, seen):
            if not asked and text(seen):
                asked.append(client.runs.cancel(thread_id, run["run_id"]))
            return ends(event)

        seen = up_to(thread.subscribe(CHANNELS), stop)
    expect("the end", said(seen[-1]), "interrupted")
    each_is_finished(seen)


def forked(client):
    """A run that goes on from the checkpoint before the answer."""
    with stream(client) as thread:
        thread.run.start(input=ask("sf"), config=FAST)
        seen = up_to(thread.subscribe(["checkpoints", "lifecycle"]))
        before = next(event for event in seen if event["method"] == "checkpoints")["params"]["data"]["id"]
        expect("the output", types(thread.output), ANSWERED)
        run = thread.run.start(input=ask("nyc"), config={"configurable": {**FAST["configurable"], "checkpoint_id": before}})
        values = client.runs.join(thread.thread_id, run["run_id"])
    expect("the thread", [m["content"] for m in values["messages"] if m["type"] == "human"][-1:], [ask("nyc")["messages"][0]["content"]])
    assert types(values)[-4:] == ANSWERED and len(types(values)) < 2 * len(ANSWERED), types(values)


def asked(client):
    """Two questions at once: a wrong answer changes nothing, and a tab that comes later sees what
    follows the answers."""
    with stream(client) as one:
        run = one.run.start(input={"messages": []}, config={"configurable": {"script": PAUSES}})
        while len(one.interrupts) < 2:
            sleep(0.02)
        client.runs.join(one.thread_id, run["run_id"])
        expect("the questions", {q["interrupt_id"]: q["value"] for q in one.interrupts}, {"q1": "May I?", "q2": "And now?"})
        expect("the thread", client.threads.get(one.thread_id)["status"], "interrupted")
        for wrong in ({"interrupt_id": "q3"}, {}):
            try:
                one.run.respond(True, **wrong)
            except RuntimeError:
                continue
            raise AssertionError(f"an answer to {wrong} was taken")
        with stream(client, one.thread_id) as two:
            client.runs.create(one.thread_id, "agent", command={"resume": {"q1": True, "q2": False}}, config={"configurable": {"script": GOES_ON}})
            expect("the answer", two.output["messages"][-1]["content"], "Done")


def subgraphs(client):
    """What a subgraph says, by its own handle."""
    with stream(client) as thread:
        thread.run.start(input={"messages": []}, config={"configurable": {"script": SUBGRAPH}})
        handles = list(thread.subgraphs)
        expect("the subgraphs", [(handle.path, handle.graph_name, handle.status) for handle in handles], [(("inner:1",), "inner", "completed")])
        messages = list(handles[0].messages)  # the SDK hands on what comes for a message only to who waits for the next one
        expect("what it says", ["".join(message.text) for message in messages], [DEEP])


def killed(client):
    """The server is killed in the middle of the answer: each event comes once, in its order."""
    with stream(client) as thread:
        thread.run.start(input=ask("sf"), config={"configurable": {"token_delay_ms": 30, "node_delay_ms": 20, "answer_words": 400}})
        said_so = []

        def shown(event, seen):
            if not said_so and len(text(seen)) > 40:
                said_so.append(print("shown", flush=True))
            return root(event) and said(event) == "completed"

        seen = up_to(thread.subscribe(CHANNELS), shown)
    expect("the numbers", [event["seq"] for event in seen], sorted({event["seq"] for event in seen}))
    messages = client.threads.get_state(thread.thread_id)["values"]["messages"]
    expect("the thread", [m["type"] for m in messages], ANSWERED)
    assert text(seen).endswith(messages[3]["content"]), text(seen)


def tell(*stories):
    """Tells stories beside each other, each with a client of its own."""

    def of(story):
        with get_sync_client(url=sys.argv[1], api_key=sys.argv[2]) as client:
            story(client)

    with ThreadPoolExecutor(len(stories)) as together:
        told = {story.__name__: together.submit(of, story) for story in stories}
    failures = {name: story.exception() for name, story in told.items()}
    for name, failure in failures.items():
        print(f"{name}: {failure!r}" if failure else f"{name}: ok")
    sys.stdout.flush()
    os._exit(any(failures.values()))  # the SDK may leave a WebSocket open, which the interpreter would wait for


alone = {"asked": asked, "subgraphs": subgraphs, "killed": killed}
tell(*([alone[name] for name in sys.argv[4:]] or [started, interrupted, two_tabs, failing, cancelled, forked]))
