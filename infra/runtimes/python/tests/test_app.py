"""The repository's own HTTP application: what it is handed, what becomes of its answers, and its
start and stop."""

import base64
import contextlib
import http.client
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import TOKEN, Agent, wait_for

pytest.importorskip("fastapi")

GRAPH = """
import asyncio
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    loop: str

async def node(state):
    return {"loop": str(id(asyncio.get_running_loop()))}

graph = StateGraph(State).add_node("a", node).add_edge(START, "a")
"""

APP = """
import asyncio
import contextlib
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles

@contextlib.asynccontextmanager
async def lifespan(app):
    Path("started").write_text("yes")
    yield {"greeting": "hello"}
    Path("stopped").write_text("yes")

app = FastAPI(lifespan=lifespan)

@app.api_route("/seen/{name}", methods=["GET", "POST"])
async def seen(name: str, request: Request):
    body = (await request.body()).decode()
    user = request.user if "user" in request.scope else None
    return {
        "name": name, "path": request.url.path, "query": request.url.query, "headers": dict(request.headers), "body": body, "greeting": request.state.greeting,
        "user": user and {"identity": user.identity, "role": user.get("role"), "scopes": list(request.auth.scopes)},
    }

@app.get("/loop")
async def loop():
    return {"loop": str(id(asyncio.get_running_loop()))}

async def echo(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b"[" + message.get("body", b"") + b"]", "more_body": more})

app.mount("/echo", echo)

@app.get("/throws")
async def throws():
    raise RuntimeError("a mistake")

@app.get("/threads/{thread_id}")
async def threads(thread_id: str):
    return {"mine": thread_id}

Path("public").mkdir(exist_ok=True)
Path("public/a.txt").write_text("a file")
app.mount("/static", StaticFiles(directory="public"))
"""


@contextlib.contextmanager
def started(directory: Path, app: str = APP, keys: str = "http", **settings: Any) -> Iterator[Agent]:
    (directory / "agent.py").write_text(GRAPH)
    (directory / "webapp.py").write_text(app)
    config = {"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}, "http": {"app": "./webapp.py:app", **settings}}
    (directory / "framework.json").write_text(json.dumps(config))
    with Agent(directory, SLIPWAY_KEYS=keys) as agent:
        yield agent


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with started(tmp_path_factory.mktemp("served")) as agent:
        yield agent


def visit(agent: Agent, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
    connection = agent._connect(60)
    given = {"x-slipway-authorization": f"Bearer {TOKEN}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, "/app" + path, body, {name: value for name, value in given.items() if value})
    return connection.getresponse()


def test_what_the_application_is_handed(served: Agent) -> None:
    answer = visit(served, "POST", "/seen/a%20b?x=1", b"text", authorization="Bearer of-the-client", x_slipway_revision="r", x_custom="yes")
    seen = json.loads(answer.read())
    assert answer.status == 200
    assert (seen["name"], seen["path"], seen["query"], seen["body"], seen["greeting"]) == ("a b", "/seen/a b", "x=1", "text", "hello")
    assert seen["headers"]["authorization"] == "Bearer of-the-client" and seen["headers"]["x-custom"] == "yes"
    assert not [name for name in seen["headers"] if name.startswith("x-slipway")]
    assert TOKEN not in json.dumps(seen)
    assert seen["user"] is None


def test_whom_the_platform_has_let_in(served: Agent) -> None:
    user = base64.urlsafe_b64encode(json.dumps({"identity": "ada", "role": "author", "permissions": ["read"]}).encode()).decode()
    seen = json.loads(visit(served, "GET", "/seen/a", x_slipway_caller=user).read())
    assert seen["user"] == {"identity": "ada", "role": "author", "scopes": ["authenticated", "read"]}


def test_files_and_other_paths(served: Agent) -> None:
    assert visit(served, "GET", "/static/a.txt").read() == b"a file"
    assert visit(served, "GET", "/nothing").status == 404
    assert visit(served, "GET", "/throws").status == 500
    assert served.ping()["status"] == "Healthy"


@pytest.mark.parametrize("token", ["", "Bearer wrong"])
def test_attack_nobody_but_the_platform_reaches_the_application(served: Agent, token: str) -> None:
    assert visit(served, "GET", "/seen/a", x_slipway_authorization=token).status == 401
    assert visit(served, "GET", "/seen/a", x_slipway_authorization=token, authorization=f"Bearer {TOKEN}").status == 401


def test_bodies_are_streamed_both_ways(served: Agent) -> None:
    connection = served._connect(60)
    connection.putrequest("POST", "/app/echo/")
    for name, value in (("x-slipway-authorization", f"Bearer {TOKEN}"), ("transfer-encoding", "chunked")):
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(b"3\r\none\r\n")
    answer = http.client.HTTPResponse(connection.sock)
    answer.begin()
    assert answer.read(5) in (b"[one]", b"[][on")  # before the body has ended
    connection.send(b"3\r\ntwo\r\n0\r\n\r\n")
    assert answer.read().endswith((b"[two]", b"[two][]"))
    connection.close()


def test_the_application_runs_where_graphs_do(served: Agent) -> None:
    loop = json.loads(visit(served, "GET", "/loop").read())["loop"]
    answer = served.post({"graph": "agent", "thread_id": "t", "run_id": "r", "attempt": 1, "input": {"loop": ""}, "state": {"values": None, "checkpoint": None, "pending": []},
                          "stream_mode": ["updates"]}).read().decode()
    assert loop in answer


def test_its_routes_are_described(served: Agent) -> None:
    routes = json.loads(served.post({"operation": "describe"}).read())["routes"]
    assert {"methods": ["GET"], "pattern": "^/threads/(?P<thread_id>[^/]+)$"} in routes
    assert {"methods": [], "pattern": "^/static/(?P<path>.*)$"} in routes
    assert not [route for route in routes if "openapi" in route["pattern"]]


def test_it_starts_and_stops(tmp_path: Path) -> None:
    with started(tmp_path) as agent:
        assert (tmp_path / "started").exists() and not (tmp_path / "stopped").exists()
        agent.process.send_signal(signal.SIGTERM)
        wait_for(lambda: agent.process.poll() is not None)
        assert agent.process.returncode == 0 and (tmp_path / "stopped").exists()


def test_a_prefix_of_all_paths(tmp_path: Path) -> None:
    with started(tmp_path, mount_prefix="/api") as agent:
        seen = json.loads(visit(agent, "GET", "/api/seen/a").read())
        assert seen["path"] == "/api/seen/a"
        assert {"methods": ["GET"], "pattern": "^/api/loop$"} in json.loads(agent.post({"operation": "describe"}).read())["routes"]


def test_what_cannot_be_served(tmp_path: Path) -> None:
    middleware = APP + "\n@app.middleware('http')\nasync def check(request, call_next):\n    return await call_next(request)\n"
    for app, keys, words in (
        (APP, "", "http: is not served"),
        ("app = 1", "http", "http.app: ./webapp.py:app is no application"),
        ("import nothing_like_it", "http", "No module named 'nothing_like_it'"),
        (middleware, "http", "has the middleware BaseHTTPMiddleware"),
        (APP.replace('    Path("started").write_text("yes")\n', '    raise RuntimeError("no database")\n'), "http", "the application has not started"),
    ):
        with pytest.raises(AssertionError) as raised:
            with started(tmp_path, app, keys):
                pass
        assert words in str(raised.value), str(raised.value)


def test_sessions_of_own_routes(tmp_path: Path) -> None:
    """Starlette's SessionMiddleware, which needs a further package, concerns own routes only."""
    app = APP + """
class SessionMiddleware:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        await self.app({**scope, "session": {"visits": 1}}, receive, send)

app.add_middleware(SessionMiddleware)

@app.get("/visits")
async def visits(request: Request):
    return request.session
"""
    with started(tmp_path, app) as agent:
        assert json.loads(visit(agent, "GET", "/visits").read()) == {"visits": 1}


def test_an_application_that_blocks(served: Agent, tmp_path: Path) -> None:
    """It delays graphs, but no answer to GET /ping."""
    with started(tmp_path, APP + "\nimport time\n@app.get('/blocks')\nasync def blocks():\n    time.sleep(1.5)\n") as agent:
        blocked = threading.Thread(target=lambda: visit(agent, "GET", "/blocks").read())
        blocked.start()
        assert agent.ping()["status"] == "Healthy"
        blocked.join()
