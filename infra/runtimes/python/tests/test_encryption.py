"""The repository's own encryption: what its handlers are given, what becomes of their answers, and
what happens if they fail."""

import base64
import contextlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Agent

pytestmark = pytest.mark.skipif(importlib.util.find_spec("langgraph_sdk.encryption") is None, reason="the release has no Encryption")

GRAPH = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    text: str

graph = StateGraph(State).add_node("a", lambda state: state).add_edge(START, "a")
"""

BLOBS = """
import asyncio, sys
from langgraph_sdk import Encryption
encryption = Encryption()
ended = []

def key(ctx):
    if "tenant" not in ctx.metadata:
        raise ValueError("hunter2")
    return ctx.metadata["tenant"].encode()

@encryption.encrypt.blob
async def encrypt_blob(ctx, blob):
    match blob:
        case b"hang":
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(blob)
        case b"ended":
            blob = b"x" * len(ended)
        case b"exit":
            sys.exit(3)
        case b"cancel":
            raise asyncio.CancelledError
        case b"text":
            return "text"
        case b"none":
            return None
    return key(ctx) + b":" + blob[::-1]

@encryption.decrypt.blob
async def decrypt_blob(ctx, blob):
    assert blob.startswith(key(ctx) + b":")
    return blob[len(key(ctx)) + 1:][::-1]
"""

JSON = BLOBS + """
@encryption.encrypt.json
async def encrypt_json(ctx, data):
    if "remove" in data:
        return {}
    if "list" in data:
        return [data]
    made = {}
    for name, value in data.items():
        made[name] = f"sealed {key(ctx).decode()} {ctx.model}.{ctx.field} {value}" if name.startswith("secret") else value
    return made

@encryption.decrypt.json
async def decrypt_json(ctx, data):
    return {n: v.split(" ", 3)[3] if isinstance(v, str) and v.startswith(f"sealed {key(ctx).decode()} ") else v for n, v in data.items()}
"""

CONTEXT = JSON + """
@encryption.context
async def context(user, ctx):
    if user.identity == "bad":
        return "bad"
    return {**ctx.metadata, "tenant": user["identity"]}
"""


@pytest.fixture(scope="module")
def sealing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with started(tmp_path_factory.mktemp("sealing"), CONTEXT) as agent:
        yield agent


@contextlib.contextmanager
def started(directory: Path, encryption: str, **environment: str) -> Iterator[Agent]:
    (directory / "agent.py").write_text(GRAPH)
    (directory / "encryption.py").write_text(encryption)
    config = {"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}, "encryption": {"path": "./encryption.py:encryption"}}
    (directory / "framework.json").write_text(json.dumps(config))
    with Agent(directory, **{"SLIPWAY_ENCRYPTION": "./encryption.py:encryption", **environment}) as agent:
        yield agent


def value(data: Any, tenant: str | None = None, **more: Any) -> dict[str, Any]:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    context = {} if tenant is None else {"context": {"tenant": tenant}}
    return {"data": base64.b64encode(text).decode(), "json": not isinstance(data, bytes), **context, **more}


def ask(agent: Agent, operation: str, *values: Any, **more: Any) -> tuple[int, Any]:
    answer = agent.post({"operation": operation, "encryption": {"values": list(values), **more}})
    return answer.status, json.loads(answer.read())


def data(answer: tuple[int, Any]) -> list[bytes]:
    assert answer[0] == 200, answer
    return [base64.b64decode(made) for made in answer[1]["values"]]


def test_values_come_back_in_their_order_with_their_own_contexts(sealing: Agent) -> None:
    asked = [value(b"one", "a"), value({"secret": "s", "plain": [{"secret": 1}, 2, {"deep": {"secret": "x"}}]}, "b", model="run", field="kwargs"), value([1], "a")]
    answer = ask(sealing, "encrypt", *asked)
    made = data(answer)
    assert made[0] == b"a:eno" and answer[1]["context"] is None
    kept = json.loads(made[1])
    assert kept["v"] == {"secret": "sealed b run.kwargs s", "plain": [{"secret": "sealed b run.kwargs 1"}, 2, {"deep": {"secret": "sealed b run.kwargs x"}}]}
    again = [value(made[0], "a"), {**value(made[1], "b"), "json": True}, {**value(made[2], "a"), "json": True}]
    found = data(ask(sealing, "decrypt", *again))
    assert found[0] == b"one" and json.loads(found[2]) == [1]
    assert json.loads(found[1]) == {"secret": "s", "plain": [{"secret": "1"}, 2, {"deep": {"secret": "x"}}]}


def test_the_request_says_the_context(sealing: Agent) -> None:
    answer = ask(sealing, "encrypt", value(b"x", "stored"), context={"tenant": "header", "more": 1})
    assert data(answer) == [b"header:x"] and answer[1]["context"] == {"tenant": "header", "more": 1}
    answer = ask(sealing, "encrypt", value(b"x", "stored"), context={"tenant": "header", "more": 1}, user={"identity": "ada"})
    assert data(answer) == [b"ada:x"] and answer[1]["context"] == {"tenant": "ada", "more": 1}
    assert ask(sealing, "encrypt", value(b"x"), user={"identity": "bad"})[0] == 500


def test_attack_a_handler_fails(sealing: Agent) -> None:
    for wrong in (value(b"x"), value(b"exit", "a"), value(b"cancel", "a"), value(b"text", "a"), value(b"none", "a"), value({"remove": 1}, "a"), value({"list": 1}, "a")):
        status, said = ask(sealing, "encrypt", value(b"right", "a"), wrong)
        assert status == 500 and "hunter2" not in str(said), said
    sealed = data(ask(sealing, "encrypt", value(b"x", "a")))[0]
    assert ask(sealing, "decrypt", value(sealed, "b"))[0] == 500
    assert ask(sealing, "encrypt", {"data": "???"})[0] == 400
    assert data(ask(sealing, "encrypt", value(b"x", "a"))) == [b"a:x"]


def test_attack_a_handler_hangs(sealing: Agent) -> None:
    assert ask(sealing, "encrypt", value(b"hang", "a"))[0] == 500


def test_attack_a_handler_hangs_while_another_fails(sealing: Agent) -> None:
    before = data(ask(sealing, "encrypt", value(b"ended", "a")))[0]
    assert ask(sealing, "encrypt", value(b"hang", "a"), value(b"text", "a"))[0] == 500
    assert data(ask(sealing, "encrypt", value(b"ended", "a")))[0] == before + b"x"


def test_without_handlers_for_json_it_is_opaque(tmp_path: Path) -> None:
    with started(tmp_path, BLOBS) as agent:
        made = data(ask(agent, "encrypt", value({"plain": "text"}, "a")))[0]
        assert b"plain" not in made and b"text" not in made
        assert json.loads(data(ask(agent, "decrypt", {**value(made, "a"), "json": True}))[0]) == {"plain": "text"}


def test_attack_an_agent_is_served_only_with_the_encryption_that_is_asked(tmp_path: Path) -> None:
    for source, environment, said in (
        (JSON, {"SLIPWAY_ENCRYPTION": ""}, "encryption: is not served"),
        (JSON, {"SLIPWAY_ENCRYPTION": "./other.py:e"}, "the platform asks './other.py:e' to encrypt, not './encryption.py:encryption'"),
        ("encryption = 1", {}, "is not an Encryption object"),
        ("from langgraph_sdk import Encryption\nencryption = Encryption()", {}, "there is no handler for @encrypt.blob"),
        (JSON.replace("@encryption.decrypt.json", ""), {}, "handlers for both @encrypt.json and @decrypt.json"),
    ):
        with pytest.raises(AssertionError) as refused, started(tmp_path, source, **environment):
            pass
        assert said in str(refused.value), refused.value
    (tmp_path / "framework.json").write_text('{"graphs": {"agent": "./agent.py:graph"}}')
    with pytest.raises(AssertionError) as refused, Agent(tmp_path, SLIPWAY_ENCRYPTION="./encryption.py:encryption"):
        pass
    assert "the file names none" in str(refused.value)
    with Agent(tmp_path) as agent:
        assert ask(agent, "encrypt", value(b"x"))[0] == 404
