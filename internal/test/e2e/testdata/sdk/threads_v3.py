"""What the stories of the thread-centric protocol share. Arguments of each script: the agent's URL,
the key, the transport of events."""

import sys

TRANSPORT = sys.argv[3]
LONG = {"configurable": {"token_delay_ms": 20, "answer_words": 10_000, "node_delay_ms": 0}}
CHANNELS = ["lifecycle", "messages", "updates", "values", "tools", "checkpoints", "tasks", "input", "custom"]

# The script of an agent: it asks two questions, and goes on.
PAUSES = [
    {"event": "updates|inner:1", "data": {"n": None}},
    {"event": "interrupt", "data": [{"id": "q1", "value": "May I?"}, {"id": "q2", "value": "And now?"}]},
]
GOES_ON = [{"event": "updates", "data": {"model": {"messages": [{"type": "ai", "id": "m1", "content": "Done"}]}}}]

# Its script in a subgraph: it writes a message.
DEEP = "It is blue."
SUBGRAPH = [
    *({"event": "messages|inner:1", "data": [{"type": "AIMessageChunk", "id": "m5", "content": part}, {}]} for part in ("It is ", "blue.")),
    {"event": "updates|inner:1", "data": {"model": {"messages": [{"type": "ai", "id": "m5", "content": DEEP}]}}},
    {"event": "updates", "data": {"inner": {"messages": [{"type": "ai", "id": "m5", "content": DEEP}]}}},
]


def saying(message, **configurable):
    """The configuration with which it says something."""
    script = [{"event": "updates", "data": {"model": {"messages": [{"type": "ai", "id": message, "content": message}]}}}]
    return {"configurable": {"script": script, **configurable}}


def stream(client, thread_id=None):
    """The events of a thread, or of a new one, with the client that is not synchronous or the one
    that is."""
    return client.threads.stream(thread_id, assistant_id="agent", transport=TRANSPORT, headers={"x-api-key": sys.argv[2]})


def said(event):
    return event["params"]["data"].get("event")


def root(event):
    return event["method"] == "lifecycle" and not event["params"]["namespace"]


def ends(event):
    """Tells whether a run ends with the event."""
    return root(event) and said(event) != "running"


def text(events):
    deltas = [e["params"]["data"]["delta"] for e in events if e["method"] == "messages" and said(e) == "content-block-delta"]
    return "".join(d["text"] for d in deltas if d["type"] == "text-delta")
