import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Agent, Thread

from slipway_runtime.__main__ import listen

GRAPH = """
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph


class State(TypedDict):
    text: str


class Context(TypedDict):
    model: str


builder = StateGraph(State, context_schema=Context).add_node("node", lambda s: {"text": s["text"] + "!"}).add_edge(START, "node")
"""


def check(directory: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-m", "slipway_runtime", *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False)


def write(directory: Path, path: str, text: str, target: str | None = None) -> None:
    (directory / path).parent.mkdir(parents=True, exist_ok=True)
    (directory / path).write_text(text)
    if target:
        (directory / "framework.json").write_text(json.dumps({"dependencies": ["."], "graphs": {"agent": target}}))


# Each is a graph of one repository: its file's text, where it is said to be (the file of its own,
# if nowhere else), and what is wrong with it.
WRONG = {
    "syntax": ("x = 1\ndef f(:\n", "", "syntax.py, line 2: SyntaxError: invalid syntax"),
    "indentation": ("def f():\nreturn\n", "", "indentation.py, line 2: IndentationError: expected an indented block after function definition on line 1"),
    "imports": ("\nimport no_such_module\n", "", "imports.py, line 2: ModuleNotFoundError: No module named 'no_such_module'"),
    "exits": ("raise SystemExit(3)\n", "", "exits.py, line 1: SystemExit: 3"),
    "asserts": ("import os\nassert os.environ.get('NO_TOKEN')\n", "", "asserts.py, line 2: AssertionError: assert os.environ.get('NO_TOKEN')"),
    "elsewhere": (GRAPH, "./other.py:graph", "there is no file './other.py'"),
    "unnamed": (GRAPH, "", "./unnamed.py has no variable 'graph'; it has 'builder'"),
    "number": ("graph = 3\n", "", "a graph, or a function that returns one, was expected, not int"),
    "edge": (GRAPH + "graph = builder.add_edge('node', 'nowhere')\n", "", "the graph cannot be compiled: Found edge ending at unknown node `nowhere`"),
    "script": (GRAPH, "./agent.ts:graph", "./agent.ts is a JavaScript file; the Python runtime hosts Python graphs only"),
    "module": (GRAPH, "no.module:graph", "no.module: ModuleNotFoundError: No module named 'no'"),
}


@pytest.mark.parametrize("mode", [["--check"], []])
def test_what_is_wrong_is_said_in_one_line_for_each_graph(tmp_path: Path, mode: list[str]) -> None:
    for name, (text, _, _) in WRONG.items():
        (tmp_path / f"{name}.py").write_text(text)
    graphs = {name: target or f"./{name}.py:graph" for name, (_, target, _) in WRONG.items()}
    (tmp_path / "framework.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    result = check(tmp_path, *mode)
    assert result.stderr.splitlines() == [f"graph {name!r}: {wanted}" for name, (_, _, wanted) in WRONG.items()]
    assert (result.returncode, result.stdout) == (1, "")


@pytest.mark.parametrize("mode", [["--check"], []])
@pytest.mark.parametrize(("text", "target", "wanted"), [
    ("def graph():\n    return 3\n", "./agent.py:graph", "graph 'agent': a graph, or a function that returns one, was expected, not int"),
    (GRAPH, "agent", 'framework.json: graphs.agent must be "path/to/file.py:variable"'),
])
def test_what_is_wrong_with_a_factory_or_a_path(tmp_path: Path, mode: list[str], text: str, target: str, wanted: str) -> None:
    write(tmp_path, "agent.py", text, target)
    result = check(tmp_path, *mode)
    assert (result.returncode, result.stderr.strip(), result.stdout) == (1, wanted, "")


def test_an_installed_module_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    write(tmp_path, "lib/site-packages/adapters/__init__.py", "from .sessions import open\n")
    write(tmp_path, "lib/site-packages/adapters/sessions.py", "from json import connect\n")
    write(tmp_path, "agent.py", "\nimport adapters\n", "./agent.py:graph")
    result = check(tmp_path, "--check", PYTHONPATH=str(tmp_path / "lib/site-packages"))
    assert result.stderr.startswith("graph 'agent': agent.py, line 2, in the import of adapters.sessions: ImportError: cannot import name 'connect' from 'json'")


def test_a_framework_that_cannot_be_imported_is_said_in_one_line(tmp_path: Path) -> None:
    write(tmp_path, "site-packages/langgraph/__init__.py", "raise TypeError('no order\\nof bases')\n")
    write(tmp_path, "agent.py", GRAPH, "./agent.py:builder")
    result = check(tmp_path, "--check", PYTHONPATH=str(tmp_path / "site-packages"))
    assert result.stderr.splitlines()[-1] == "the framework cannot be loaded, in the import of langgraph: TypeError: no order of bases"


def test_a_configuration_that_is_missing_or_broken(tmp_path: Path) -> None:
    assert "'framework.json' cannot be read: No such file or directory" in check(tmp_path, "--check").stderr
    (tmp_path / "framework.json").write_text("{")
    assert "framework.json is not valid JSON" in check(tmp_path, "--check").stderr
    (tmp_path / "framework.json").write_text("{}")
    assert "graphs must name at least one graph" in check(tmp_path, "--check").stderr


# Each is a graph of one repository: its file, how it is named, and the file's text.
WAYS = {
    "builder": ("builder.py", "./builder.py:builder", GRAPH),
    "module": ("agent.py", "agent:graph", GRAPH + "graph = builder.compile()"),
    "package": ("src/my_agent/graph.py", "./src/my_agent/graph.py:graph", GRAPH + "from .tools import ready\ngraph = builder.compile()"),
    "no identifier": ("json/graph-1.py", "./json/graph-1.py:graph", GRAPH + "graph = builder.compile()"),
    "a library's name": ("json/graph.py", "./json/graph.py:graph", GRAPH + "graph = builder.compile()"),
    "factory": ("factory.py", "./factory.py:make", GRAPH + "def make():\n    return builder.compile()"),
    "asynchronous": ("asynchronous.py", "./asynchronous.py:make", GRAPH + "async def make(config):\n    assert config['configurable'] is not None\n    return builder"),
    "annotated": ("annotated.py", "./annotated.py:make",
                  GRAPH + "from langchain_core.runnables import RunnableConfig\ndef make(c: RunnableConfig, n=3):\n    c['configurable']\n    return builder"),
    "two arguments": ("two.py", "./two.py:make", GRAPH + "def make(config, runtime):\n    runtime.store\n    return builder"),
    "runtime": ("runtime.py", "./runtime.py:make", GRAPH + "from langgraph_sdk.runtime import ServerRuntime\nseen = []\ndef make(r: ServerRuntime[Context]):\n"
                "    seen.append(r.access_context)\n    assert r.execution_runtime is None or seen == ['assistants.read', 'threads.create_run']\n    return builder"),
    # What has the framework's own runtime of a run in mind gets a config, as from its own server.
    "another runtime": ("another.py", "./another.py:make", GRAPH + "from langgraph.runtime import Runtime\ndef make(runtime: Runtime):\n"
                        "    runtime.get('configurable')\n    return builder"),
    "a runtime in quotes": ("quoted.py", "./quoted.py:make", "from __future__ import annotations\n" + GRAPH + "from typing import TYPE_CHECKING\n"
                            "if TYPE_CHECKING:\n    from langgraph_sdk.runtime import ServerRuntime\ndef make(r: ServerRuntime):\n    r.access_context\n    return builder"),
    "partial": ("partial.py", "./partial.py:make", GRAPH + "import functools\nmake = functools.partial(lambda b: b.compile(), builder)"),
    "asynchronous context": ("entered.py", "./entered.py:make", GRAPH + "import contextlib\n@contextlib.asynccontextmanager\nasync def make():\n    yield builder.compile()"),
    "context": ("context.py", "./context.py:make", GRAPH + "import contextlib\n@contextlib.contextmanager\ndef make():\n    yield builder.compile()"),
    "a package that imports it": ("again/graph.py", "./again/graph.py:graph", GRAPH + "from . import READY\ngraph = builder.compile()"),
    "a package that cannot be imported": ("broken/graph.py", "./broken/graph.py:graph", GRAPH + "graph = builder.compile()"),
    "any arguments": ("anything.py", "./anything.py:make", GRAPH + "def make(*args, **kwargs):\n    return builder"),
    "an object": ("called.py", "./called.py:make", GRAPH + "class Make:\n    async def __call__(self, config, *, runtime=None):\n        return builder\nmake = Make()"),
    "the root is a package": ("__init__.py", "./__init__.py:graph", GRAPH + "from .beneath import READY\ngraph = builder.compile()"),
    "a dependency that is a package": ("shared.py", "./shared.py:graph", GRAPH + "from common.words import READY\ngraph = builder.compile()"),
    # As with an installed package, whose finder comes after that of sys.path.
    "beside a dependency that is a package": ("beside.py", "./beside.py:graph", GRAPH + "import importlib.util\n"
                                              "assert importlib.util.find_spec('unrelated') is None\ngraph = builder.compile()"),
    "functional": ("flow.py", "./flow.py:flow",
                   "from langgraph.func import entrypoint\n@entrypoint()\ndef flow(inputs: dict) -> dict:\n    return {'text': inputs['text'] + '!'}"),
}


def test_every_way_to_name_a_graph(tmp_path: Path) -> None:
    for path, _, text in WAYS.values():
        write(tmp_path, path, text)
    write(tmp_path, "src/my_agent/tools.py", "ready = True")
    write(tmp_path, "beneath.py", "READY = True")
    write(tmp_path, "again/__init__.py", "READY = True\nfrom .graph import graph")
    write(tmp_path, "broken/__init__.py", "import no_such_module")
    write(tmp_path, "libs/common/__init__.py", "")
    write(tmp_path, "libs/common/words.py", "READY = True")
    write(tmp_path, "libs/unrelated/src/unrelated/__init__.py", "")
    (tmp_path / "framework.json").write_text(json.dumps({"dependencies": [".", "./libs/common"], "graphs": {name: target for name, (_, target, _) in WAYS.items()}}))
    with Agent(tmp_path) as agent:
        values = {}
        for name in WAYS:
            thread = Thread()
            thread.run(agent, graph=name, input={"text": "hello"})
            values[name] = thread.values["text"]
        assert values == dict.fromkeys(WAYS, "hello!"), agent.log()


def test_the_public_frameworks_own_file_name(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH)
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"agent": {"path": "./agent.py:builder"}}, "http": {}}))
    result = check(tmp_path, "--check")
    assert result.returncode == 0, result.stderr


def test_what_is_not_served_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH)
    refused = ["Encryption", "auth", "checkpointer", "http", "priority", "store", "ui", "ui_config", "webhooks"]
    graphs = {"agent": {"path": "./agent.py:builder", "description": "An agent.", "color": "red"}}
    (tmp_path / "framework.json").write_text(json.dumps({"graphs": graphs, "http ": "", "api_version": "0.3", "unknown": 1} | {name: {"path": "./other.py:it"} for name in refused}))
    result = check(tmp_path)
    assert result.returncode == 1
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == refused


def test_attack_a_repository_with_auth_is_not_served(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH, "./agent.py:builder")
    plain = (tmp_path / "framework.json").read_text()
    guarded = plain[:-1] + ', "\\u0061uth": {"path": "./auth.py:auth"}}'
    for own, public, variables, said in (
        (guarded, None, {}, "framework.json: auth: is not served"),
        (None, guarded, {}, "langgraph.json: auth: is not served"),
        (plain, guarded, {}, "there are both framework.json and langgraph.json, and they differ"),
        (plain, None, {"LANGGRAPH_AUTH": "{}"}, "the environment variable LANGGRAPH_AUTH: is not read here"),
    ):
        for name, text in (("framework.json", own), ("langgraph.json", public)):
            (tmp_path / name).unlink(missing_ok=True)
            if text is not None:
                (tmp_path / name).write_text(text)
        result = check(tmp_path, **variables)
        assert result.returncode == 1 and said in result.stderr, result.stderr
    (tmp_path / "langgraph.json").write_text(plain)
    assert check(tmp_path, "--check", LANGGRAPH_AUTH="").returncode == 0


def test_the_description(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", "print('noise')\n" + GRAPH + "parent = StateGraph(State).add_node('child', builder.compile()).add_edge(START, 'child')", "./agent.py:parent")
    result = check(tmp_path, "--check")
    graph = json.loads(result.stdout)["graphs"]["agent"]
    assert [n["id"] for n in graph["graph"]["nodes"]] == ["__start__", "child", "__end__"]
    assert {"source": "__start__", "target": "child"} in graph["graph"]["edges"]
    for name in ("input_schema", "output_schema", "state_schema"):
        assert graph[name]["properties"]["text"]["type"] == "string"
    child = graph["subgraphs"]["child"]
    for name in ("context_schema", "config_schema"):
        assert child[name]["properties"]["model"]["type"] == "string"
    assert "graph" not in child and graph["checkpoints"]
    with Agent(tmp_path) as agent:
        assert json.loads(agent.post({"operation": "describe"}).read()) == json.loads(result.stdout)


def test_a_factory_is_described_as_an_assistant_configures_it(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH + """
def make(config):
    values = config["configurable"]
    assert "thread_id" not in values and values.get("name") != "none"
    name = " ".join(str(values.get(key)) for key in ("name", "style", "langgraph_auth_user_id"))
    return StateGraph(State).add_node(name, lambda state: state).add_edge(START, name)
""", "./agent.py:make")
    with Agent(tmp_path) as agent:
        def nodes(**asked: object) -> list[str] | None:
            graph = json.loads(agent.post({"operation": "describe", **asked}).read())["graphs"]["agent"]
            assert graph["configured"] and graph["checkpoints"]
            return [n["id"] for n in graph["graph"]["nodes"]][1:-1] if "graph" in graph else None

        assert nodes() == ["None None None"]
        configured = {"config": {"configurable": {"name": "a"}}, "context": {"style": "short"}, "user": {"identity": "ada"}}
        assert nodes(graph="agent", **configured) == ["a short ada"]
        assert nodes(graph="agent", config={"configurable": {"name": "none"}}) is None
        assert agent.post({"operation": "describe", "graph": "other"}).status == 404


def test_a_graph_of_another_server_is_drawn_without_that_server(tmp_path: Path) -> None:
    """It may be the server that the description is for, which has no answer yet."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        client = f"get_sync_client(url='http://127.0.0.1:{server.getsockname()[1]}', timeout=1)"
        write(tmp_path, "agent.py", GRAPH + "from langgraph.pregel.remote import RemoteGraph\nfrom langgraph_sdk import get_sync_client\n"
              f"inner = StateGraph(State).add_node('far', RemoteGraph('agent', sync_client={client})).add_node('near', builder.compile())"
              ".add_edge(START, 'far').add_edge('far', 'near').compile()\n"
              "graph = StateGraph(State).add_node('inner', inner).add_edge(START, 'inner').compile()", "./agent.py:graph")
        drawings = json.loads(check(tmp_path, "--check").stdout)["graphs"]["agent"]["xray"]
        assert [[n["id"] for n in drawing["nodes"]] for drawing in drawings] == [
            ["__start__", "__end__", "inner:far", "inner:near"],
            ["__start__", "__end__", "inner:far", "inner:near:node"],
        ]
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_graph_that_is_another_servers_is_drawn_as_that_server_draws_it(tmp_path: Path) -> None:
    """The framework's own server refuses to draw to the depth 0."""
    write(tmp_path, "agent.py", "from types import SimpleNamespace\nfrom langgraph.pregel.remote import RemoteGraph\n"
          "def get_graph(assistant_id, xray, **options):\n    if xray is not False and xray <= 0:\n        raise ValueError('Invalid xray value')\n"
          "    return {'nodes': [{'id': 'far' if xray is False else 'far:within', 'data': {'id': ['module'], 'name': 'far'}}], 'edges': []}\n"
          "graph = RemoteGraph('agent', sync_client=SimpleNamespace(assistants=SimpleNamespace(get_graph=get_graph)))", "./agent.py:graph")
    graph = json.loads(check(tmp_path, "--check").stdout)["graphs"]["agent"]
    assert [[n["id"] for n in drawing["nodes"]] for drawing in (graph["graph"], *graph["xray"])] == [["far"], ["far:within"]]


# OLD makes pydantic work as before Python 3.12, OTHER as a release of pydantic that is made
# otherwise.
OLD = "from pydantic._internal import _generate_schema\n_generate_schema._SUPPORTS_TYPEDDICT = False\n"
OTHER = "import sys\nimport pydantic._internal\nsys.modules['pydantic._internal._generate_schema'] = None\ndel pydantic._internal._generate_schema\n"


@pytest.mark.parametrize(("module", "pydantic"), [("typing", OLD), ("typing_extensions", ""), ("typing_extensions", OTHER)], ids=["old", "new", "other"])
def test_typed_dicts_have_schemas(tmp_path: Path, module: str, pydantic: str) -> None:
    """The standard library's is not good enough for pydantic before Python 3.12, though many
    repositories use it."""
    write(tmp_path, "agent.py", f"from {module} import TypedDict\nfrom langgraph.graph import START, StateGraph\nclass Inner(TypedDict):\n    text: str\n"
          "class State(TypedDict):\n    inner: Inner\ngraph = StateGraph(State).add_node('node', lambda s: s).add_edge(START, 'node').compile()\n" + pydantic, "./agent.py:graph")
    graph = json.loads(check(tmp_path, "--check").stdout)["graphs"]["agent"]
    for name in ("input_schema", "output_schema", "state_schema"):
        assert graph[name]["$defs"]["Inner"]["properties"]["text"]["type"] == "string"


def test_a_channel_without_a_schema_hides_no_other(tmp_path: Path) -> None:
    """The middleware of agents declares fields that pydantic takes in a TypedDict only."""
    write(tmp_path, "agent.py", "from typing import Annotated, NotRequired, TypedDict\nfrom langgraph.graph import START, StateGraph\n"
          "class Mark: pass\nclass State(TypedDict):\n    text: str\n    todos: Annotated[NotRequired[list[str]], Mark()]\n    odd: Annotated[NotRequired[Mark], Mark()]\n"
          "graph = StateGraph(State).add_node('node', lambda s: s).add_edge(START, 'node').compile()\n", "./agent.py:graph")
    properties = json.loads(check(tmp_path, "--check").stdout)["graphs"]["agent"]["state_schema"]["properties"]
    assert list(properties) == ["text", "todos", "odd"]
    assert properties["text"]["type"] == "string"
    assert "type" not in properties["odd"]


def test_a_factory_that_needs_more_than_an_empty_configuration_still_runs(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH + "def make(config):\n    config['configurable']['user']\n    return builder", "./agent.py:make")
    with Agent(tmp_path) as agent:
        assert json.loads(agent.post({"operation": "describe"}).read()) == {"graphs": {"agent": {"configured": True, "checkpoints": True}}}
        thread = Thread()
        thread.run(agent, input={"text": "a"}, config={"configurable": {"user": "u"}})
        assert thread.values == {"text": "a!"}


def test_it_listens_at_the_socket_that_it_is_offered(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH, "./agent.py:builder")
    path = tmp_path / "socket"
    with Agent(tmp_path, SLIPWAY_SOCKET=str(path)) as agent:
        assert agent.path == str(path)
        thread = Thread()
        thread.run(agent, input={"text": "a"})
        assert thread.values == {"text": "a!"}
        result = check(tmp_path, SLIPWAY_SOCKET=str(path))
        assert (result.returncode, result.stderr) == (1, f"cannot listen at {path}: Address already in use\n")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "agent.py", GRAPH, "./agent.py:builder")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = check(tmp_path, PORT=str(port), HOST="127.0.0.1")
    assert (result.returncode, result.stderr) == (1, f"cannot listen at 127.0.0.1:{port}: Address already in use\n")


def test_no_event_waits_for_the_one_before_to_be_acknowledged() -> None:
    with listen("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.proto == socket.IPPROTO_TCP  # what asyncio looks at
