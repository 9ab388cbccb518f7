"""A started runtime, and a server that keeps what the contract says of it."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOKEN = "a token"


@contextlib.contextmanager
def repository(source: str, **graphs: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "agent.py").write_text(source)
        config = {"dependencies": ["."], "graphs": graphs or {"agent": "./agent.py:graph"}}
        (directory / "framework.json").write_text(json.dumps(config))
        yield directory


class Agent:
    """A runtime's process, started as the platform starts it."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.token = TOKEN
        self.directory = directory
        self._environment = environment

    def __enter__(self) -> "Agent":
        environment = {**os.environ, "HOST": "127.0.0.1", "PORT": "0", "SLIPWAY_INVOKE_TOKEN": TOKEN, "LANGSMITH_TRACING": "false",
                       **self._environment}
        self.output = tempfile.NamedTemporaryFile("a")
        self.process = subprocess.Popen([sys.executable, "-m", "slipway_runtime"], cwd=self.directory, env=environment,
                                        stdout=self.output, stderr=subprocess.STDOUT)
        wait_for(self._answers)
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log()
        address = re.search(r"^serving .* at (?:http://127\.0\.0\.1:(\d+)|(/.+))$", self.log(), re.MULTILINE)
        if address is None:
            return False
        self.port, self.path = int(address[1] or 0), address[2]
        try:
            return self.ping()["status"] == "Healthy"
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.output.close()

    def log(self) -> str:
        return Path(self.output.name).read_text()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if self.path:
            connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.sock.settimeout(timeout)
            connection.sock.connect(self.path)
        return connection

    def ping(self) -> dict[str, Any]:
        connection = self._connect(5)
        try:
            connection.request("GET", "/ping")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def post(self, body: Any, **headers: str) -> http.client.HTTPResponse:
        connection = self._connect(60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", "/invocations", data, {"Authorization": f"Bearer {self.token}", **headers})
        response = connection.getresponse()
        response.connection = connection  # closing it tells the agent to stop
        return response


def events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in response:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


class Thread:
    """What the platform keeps of a thread, by the contract alone: it knows nothing of the
    framework."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        # The graph's own checkpoints, oldest first, each with the checkpoints of subgraphs and the
        # writes since.
        self.history: list[dict[str, Any]] = []
        self.persistent: dict[str, dict[str, Any]] = {}
        self.pending: list[dict[str, Any]] = []

    def take(self, name: str, data: Any) -> None:
        if name == "checkpoint":
            if data["ns"] == "":
                known = next((entry for entry in self.history if entry["root"]["id"] == data["id"]), None)
                if known:
                    known["root"] = data
                else:
                    self.history.append({"root": data, "subgraphs": {}, "writes": {}})
                    self.pending = []
            elif data["persistent"]:
                self.persistent[data["ns"]] = data
            else:
                self.history[-1]["subgraphs"][data["ns"]] = data
        elif name == "writes":
            entry = next(e for e in reversed(self.history) if data["ns"] or e["root"]["id"] == data["checkpoint_id"])
            entry["writes"][data["ns"], data["checkpoint_id"], data["task_id"]] = data

    def state(self, at: int = -1) -> dict[str, Any]:
        if not self.history:
            return {"values": {}, "checkpoint": None, "pending": self.pending}
        entry = self.history[at]
        kept = [entry["root"], *entry["subgraphs"].values(), *self.persistent.values()]
        sent = [{key: c[key] for key in ("id", "parent_id", "ns", "persistent", "data")} for c in kept]
        checkpoint = {"id": entry["root"]["id"], "checkpoints": sent, "writes": list(entry["writes"].values()),
                      "superseded": entry is not self.history[-1]}
        return {"values": entry["root"]["values"], "checkpoint": checkpoint, "pending": self.pending}

    @property
    def newest(self) -> dict[str, Any]:
        return self.history[-1]["root"]

    @property
    def values(self) -> Any:
        return self.newest["values"]

    def invocation(self, at: int = -1, **fields: Any) -> dict[str, Any]:
        return {"graph": "agent", "thread_id": self.id, "run_id": str(uuid.uuid4()), "attempt": 1, "input": None, "command": None,
                "stream_mode": ["updates"], "config": None, "context": None, "state": self.state(at), **fields}

    def run(self, agent: Agent, at: int = -1, **fields: Any) -> list[tuple[str, Any]]:
        """Runs the graph to its end and returns the events that clients would see."""
        response = agent.post(self.invocation(at, **fields))
        assert response.status == 200, response.read()
        return list(self.follow(response))

    def follow(self, response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
        for name, data in events(response):
            if name in ("checkpoint", "writes"):
                self.take(name, data)
            elif name != "unfinished":  # which only the server looks at
                yield name, data


def wait_for(condition: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.02)
