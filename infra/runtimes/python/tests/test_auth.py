"""The repository's own authentication: what its handlers are given, and what becomes of their
answers."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Agent

GRAPH = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    text: str

graph = StateGraph(State).add_node("a", lambda state, config: {"text": f'{config["configurable"]["langgraph_auth_user"]["role"]} {config["configurable"].get("user_id")}'}).add_edge(START, "a")
"""

AUTH = """
import asyncio, sys, time
from langgraph_sdk import Auth
from starlette.authentication import AuthenticationError
from starlette.exceptions import HTTPException as WebException

auth = Auth()

@auth.authenticate
async def who(authorization, path, method, path_params, query_params, headers):
    name = (authorization or "").removeprefix("Bearer ")
    match name:
        case "plain":
            return "plain"
        case "ada":
            return {"identity": "ada", "permissions": ["read"], "role": "author", "client": object()}
        case "seen":
            seen = [path, method, path_params, query_params, headers[b"x-custom"].decode()]
            return {"identity": "seen", "seen": seen}
        case "expired":
            raise Auth.exceptions.HTTPException(status_code=403, detail="The token is old.")
        case "paid":
            raise Auth.exceptions.HTTPException(status_code=402, detail="Pay.", headers={"X-Price": "7", "WWW-Authenticate": "Bearer realm=x"})
        case "web":
            raise WebException(status_code=429, detail="Too fast.", headers={"Retry-After": "7"})
        case "plain web":
            raise WebException(status_code=401)
        case "backend":
            raise AuthenticationError("no such token")
        case "moved":
            raise WebException(status_code=302, headers={"Location": "https://elsewhere.test"})
        case "assert":
            assert False, "no such user"
        case "throw":
            raise RuntimeError("database password is hunter2")
        case "exit":
            sys.exit(3)
        case "cancel":
            raise asyncio.CancelledError
        case "visitor":
            return {"identity": ""}
        case "nobody":
            return {"permissions": []}
        case "number":
            return 7
        case "none":
            return None
        case "true":
            return True
        case "unauthenticated":
            return {"identity": "x", "is_authenticated": False}
    raise Auth.exceptions.HTTPException(detail="Who are you?")

@auth.on
async def others(ctx, value):
    return False

@auth.on.threads
async def own(ctx, value):
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}

@auth.on.threads.create
async def create(ctx, value):
    if (value.get("metadata") or {}).get("full"):
        raise WebException(507, "Full.", {"X-Free": "0"})
    return await own(ctx, value)

@auth.on.threads.delete
async def delete(ctx, value):
    return "delete" in ctx.permissions

@auth.on.threads.read
async def read(ctx, value):
    raise RuntimeError("a mistake")

@auth.on.threads.search
async def search(ctx, value):
    return "owner"

@auth.on.store
async def scope(ctx, value):
    value["namespace"] = (ctx.user.identity, *value["namespace"])
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with started(tmp_path_factory.mktemp("guarded"), AUTH) as agent:
        yield agent


@contextlib.contextmanager
def started(directory: Path, auth: str, **environment: str) -> Iterator[Agent]:
    (directory / "agent.py").write_text(GRAPH)
    (directory / "auth.py").write_text(auth)
    config = {"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}, "auth": {"path": "./auth.py:auth"}}
    (directory / "framework.json").write_text(json.dumps(config))
    with Agent(directory, **{"SLIPWAY_AUTH": "./auth.py:auth", **environment}) as agent:
        yield agent


def ask(agent: Agent, **question: Any) -> tuple[int, Any]:
    answer = agent.post(question)
    return answer.status, json.loads(answer.read())


def authenticate(agent: Agent, name: str, **request: Any) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {name}", **request.pop("headers", {})}
    return ask(agent, operation="authenticate", request={"method": "GET", "path": "/info", "path_params": {}, "query": "", "headers": headers, **request})


def authorize(agent: Agent, resource: str, action: str, value: Any, **user: Any) -> tuple[int, Any]:
    return ask(agent, operation="authorize", access={"resource": resource, "action": action, "value": value, "user": {"identity": "ada", **user}})


def test_users(guarded: Agent) -> None:
    assert authenticate(guarded, "plain") == (200, {"allowed": True, "user": {
        "identity": "plain", "display_name": "plain", "is_authenticated": True, "permissions": [],
    }})
    assert authenticate(guarded, "ada")[1]["user"] == {
        "identity": "ada", "display_name": "ada", "is_authenticated": True, "permissions": ["read"], "role": "author",
    }
    assert authenticate(guarded, "visitor")[1]["user"] == {"identity": "", "display_name": "", "is_authenticated": True, "permissions": []}


def test_what_a_handler_sees(guarded: Agent) -> None:
    _, ruling = authenticate(
        guarded, "seen", method="POST", path="/threads/t/history", query="a=1&b=", path_params={"thread_id": "t"}, headers={"x-custom": "yes"},
    )
    assert ruling["user"]["seen"] == ["/threads/t/history", "POST", {"thread_id": "t"}, {"a": "1", "b": ""}, "yes"]


def test_attack_who_is_not_let_in(guarded: Agent) -> None:
    for name, status, detail in (
        ("", 401, "Who are you?"), ("other", 401, "Who are you?"), ("expired", 403, "The token is old."), ("assert", 401, "no such user"),
        ("unauthenticated", 401, "Unauthorized"),
    ):
        assert authenticate(guarded, name) == (200, {"allowed": False, "status": status, "detail": detail}), name


def test_a_refusal_has_the_handlers_own_words(guarded: Agent) -> None:
    for name, status, detail, headers in (
        ("paid", 402, "Pay.", {"X-Price": "7", "WWW-Authenticate": "Bearer realm=x"}), ("web", 429, "Too fast.", {"Retry-After": "7"}),
        ("plain web", 401, "Unauthorized", None), ("backend", 403, "no such token", None), ("moved", 401, "Found", {"Location": "https://elsewhere.test"}),
    ):
        want = {"allowed": False, "status": status, "detail": detail, **({"headers": headers} if headers else {})}
        assert authenticate(guarded, name) == (200, want), name
    full = {"allowed": False, "status": 507, "detail": "Full.", "headers": {"X-Free": "0"}}
    assert authorize(guarded, "threads", "create", {"metadata": {"full": True}}) == (200, full)


def test_attack_handlers_that_fail_let_nobody_in(guarded: Agent) -> None:
    for name in ("throw", "cancel", "nobody", "number", "none", "true"):
        answer = guarded.post({"operation": "authenticate", "request": {"headers": {"authorization": name}}})
        text = answer.read().decode()
        assert answer.status == 500 and "hunter2" not in text and '"allowed"' not in text, (name, text)
    for resource, action in (("threads", "read"), ("threads", "search")):
        status, answer = authorize(guarded, resource, action, {})
        assert status == 500 and "allowed" not in answer
    assert authenticate(guarded, "ada")[0] == 200


def test_attack_questions_that_are_none(guarded: Agent) -> None:
    for question in (
        {"operation": "authenticate"}, {"operation": "authenticate", "request": {"headers": []}}, {"operation": "authorize", "access": 7},
        {"operation": "authorize"}, {"operation": "authorize", "access": {"resource": "threads", "action": "create", "value": []}},
    ):
        status, answer = ask(guarded, **question)
        assert (status, answer.get("allowed")) in ((400, None), (500, None), (200, False)), question
    guarded.token, token = "another", guarded.token
    assert authenticate(guarded, "ada")[0] == 401
    guarded.token = token


def test_the_most_specific_handler_decides(guarded: Agent) -> None:
    filtered = {"allowed": True, "value": {"thread_id": "t", "metadata": {"owner": "ada"}}, "filter": {"owner": "ada"}}
    assert authorize(guarded, "threads", "update", {"thread_id": "t"}) == (200, filtered)
    assert authorize(guarded, "threads", "delete", {})[1] == {"allowed": False, "status": 403, "detail": "Forbidden"}
    assert authorize(guarded, "threads", "delete", {}, permissions=["delete"])[1] == {"allowed": True, "value": {}}
    assert authorize(guarded, "assistants", "read", {})[1]["allowed"] is False
    scoped = authorize(guarded, "store", "put", {"namespace": ["notes"], "key": "k", "value": {"a": 1}})
    assert scoped[1] == {"allowed": True, "value": {"namespace": ["ada", "notes"], "key": "k", "value": {"a": 1}}}


def test_a_handler_for_many_resources_and_none(tmp_path: Path) -> None:
    with started(tmp_path, """
from langgraph_sdk import Auth
auth = Auth()

@auth.authenticate
def who(authorization: str) -> str:
    return authorization

@auth.on(resources=["threads", "crons"], actions=["read"])
async def reads(ctx, value):
    return {"reader": ctx.user.identity}
""") as agent:
        assert authenticate(agent, "x")[1]["user"]["identity"] == "Bearer x"
        for resource in ("threads", "crons"):
            assert authorize(agent, resource, "read", {})[1]["filter"] == {"reader": "ada"}
        assert authorize(agent, "store", "get", {"namespace": ["a"]})[1] == {"allowed": True, "value": {"namespace": ["a"]}}


def test_attack_an_agent_is_served_only_with_the_authentication_that_is_asked(tmp_path: Path) -> None:
    for auth, environment, said in (
        (AUTH, {"SLIPWAY_AUTH": ""}, "auth: is not served"),
        (AUTH, {"SLIPWAY_AUTH": "./other.py:auth"}, "the platform asks './other.py:auth' about every request, not './auth.py:auth'"),
        ("auth = 1", {}, "is not an Auth object"),
        ("from langgraph_sdk import Auth\nauth = Auth()", {}, "there is no handler for @auth.authenticate"),
        ("raise ValueError('no settings')", {}, "auth: auth.py, line 1: ValueError: no settings"),
        (AUTH.replace("who(authorization", "who(body, authorization"), {}, "has the parameter 'body'"),
    ):
        with pytest.raises(AssertionError, match="exit|auth") as refused, started(tmp_path, auth, **environment):
            pass
        assert said in str(refused.value), refused.value
    (tmp_path / "framework.json").write_text('{"graphs": {"agent": "./agent.py:graph"}}')
    with pytest.raises(AssertionError) as refused, Agent(tmp_path, SLIPWAY_AUTH="./auth.py:auth"):
        pass
    assert "the file names none" in str(refused.value)


def test_an_agent_without_authentication_answers_no_question(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(GRAPH)
    (tmp_path / "framework.json").write_text('{"graphs": {"agent": "./agent.py:graph"}}')
    with Agent(tmp_path) as agent:
        assert authenticate(agent, "ada")[0] == 404


def test_graphs_see_the_user(guarded: Agent) -> None:
    user = authenticate(guarded, "ada")[1]["user"]
    for config, seen in [({}, "author ada"), ({"configurable": {"user_id": "bob"}}, "author bob")]:
        answer = guarded.post({"graph": "agent", "input": {"text": ""}, "stream_mode": ["values"], "user": user, "config": config})
        assert f'"text":"{seen}"' in answer.read().decode()


def test_attack_a_handler_that_hangs(tmp_path: Path) -> None:
    with started(tmp_path, """
import asyncio
from langgraph_sdk import Auth
auth = Auth()

@auth.authenticate
async def who(authorization: str) -> str:
    await asyncio.sleep(3600)
    return "somebody"
""") as agent:
        status, answer = authenticate(agent, "ada")
        assert status == 500 and "allowed" not in answer
        assert agent.ping()["status"] == "Healthy"
