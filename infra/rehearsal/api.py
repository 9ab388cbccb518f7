"""Calls the API of a stack with a key, and proves with one agent that the stack does its work."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
AGENT, QUESTION = "weather", "What is the weather in Oslo?"
WORKSPACE = "rehearsal"


class Failed(Exception):
    """A stack did not become what it was to become."""


def slipway(arguments, environment):
    """Returns what bin/slipway prints."""
    done = subprocess.run([ROOT / "bin" / "slipway", *arguments], env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise Failed(f"slipway {arguments[0]}: {done.stderr}")
    return done.stdout.strip()


def make_key(outputs, environment):
    """Returns a new key of the workspace `rehearsal` in the records of the stack with these
    outputs. Makes the workspace if there is none."""
    records = ["--table", outputs["TableName"], "--kms-key", outputs["KeyArn"]]
    listed = json.loads(slipway(["workspaces", "list", "--json", *records], environment))
    workspace = next((w["id"] for w in listed if w["name"] == WORKSPACE), None) or slipway(["workspaces", "create", WORKSPACE, *records], environment)
    return slipway(["keys", "create", "--workspace", workspace, *records], environment)


class Api:
    def __init__(self, url, key):
        self.url, self.key = url, key

    def open(self, method, path, body=None, headers=None):
        """Returns an answer whose content is still to be read. A path may be a whole address."""
        headers = {"Content-Type": "application/json"} | ({"X-Api-Key": self.key} if headers is None else headers)
        url = path if "://" in path else self.url + path
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=120)
        except urllib.error.HTTPError as error:
            return error

    def call(self, want, method, path, body=None, headers=None):
        """Returns the answer to a request, and raises Failed if it has not the wanted status."""
        with self.open(method, path, body, headers) as answer:
            status, content = answer.status, answer.read()
        if status != want:
            raise Failed(f"{method} {path} was answered {status} {content!r}, want {want}")
        return json.loads(content) if content else None


def check_callers(api):
    """Looks whether strangers are refused, with and without a key."""
    api.call(200, "GET", "/ok")
    api.call(401, "GET", "/v2/deployments", headers={})
    api.call(401, "GET", "/v2/deployments", headers={"X-Api-Key": "slw_unknown"})


def prove(api, tell):
    """Deploys the example agent, asks it as a page of another origin does, and looks whether its
    answer comes byte by byte."""
    check_callers(api)
    began = time.monotonic()
    environment = {**os.environ, "SLIPWAY_URL": api.url, "SLIPWAY_API_KEY": api.key}
    agent = slipway(["deploy", ROOT / "infra" / "examples" / AGENT, "--wait-timeout", "30m"], environment)
    tell(f"the agent was built and is served after {time.monotonic() - began:.0f} s")
    with api.open("OPTIONS", f"{agent}/threads", headers={
            "Origin": "https://page.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key,content-type"}) as answer:
        if answer.status not in (200, 204) or answer.headers["Access-Control-Allow-Origin"] not in ("*", "https://page.example"):
            raise Failed(f"a page that asks first was answered {answer.status} with {dict(answer.headers)}")
    for attempt in ("first", "second"):
        first, last = stream(api, agent)
        tell(f"the {attempt} stream began after {first:.2f} s and ended after {last:.2f} s")
        if last - first < 0.1:
            raise Failed("the answer came in one piece: the stream is held back on its way")


def stream(api, agent):
    """Asks the agent on a new thread. Returns when the first and the last text of the answer came,
    in seconds."""
    thread = api.call(200, "POST", f"{agent}/threads", {})["thread_id"]
    began, times, error = time.monotonic(), [], None
    with api.open("POST", f"{agent}/threads/{thread}/runs/stream", {
            "assistant_id": "agent", "stream_mode": ["messages-tuple"], "input": {"messages": [{"role": "user", "content": QUESTION}]}}) as answer:
        if answer.status != 200:
            raise Failed(f"the stream was answered {answer.status} {answer.read()!r}")
        event = ""
        for line in answer:
            if line.startswith(b"event: "):
                event = line.removeprefix(b"event: ").strip().decode()
            elif line.startswith(b"data: ") and event == "messages":
                times.append(time.monotonic() - began)
            elif line.startswith(b"data: ") and event == "error":
                error = line
    if error or len(times) < 2:
        raise Failed(f"the answer has {len(times)} parts and the error {error}")
    return times[0], times[-1]


def clear(api, patience):
    """Deletes all deployments, and waits until what AWS has of them is gone."""
    for deployment in api.call(200, "GET", "/v2/deployments?limit=100")["resources"]:
        api.call(204, "DELETE", f"/v2/deployments/{deployment['id']}")
    await_answer(lambda: api.call(200, "GET", "/v2/deployments")["resources"], lambda deployments: not deployments, patience)


def await_answer(ask, is_wanted, patience):
    """Asks each second, and returns the first wanted answer."""
    deadline = time.monotonic() + patience
    while not is_wanted(answer := ask()):
        if time.monotonic() > deadline:
            raise Failed(f"the last answer was {answer}")
        time.sleep(1)
    return answer
