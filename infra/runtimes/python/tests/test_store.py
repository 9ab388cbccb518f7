import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from harness import TOKEN
from langgraph.store.base import BaseStore, GetOp, PutOp
from langgraph_sdk.errors import APIStatusError

from slipway_runtime.loopback import RUN, reaching
from slipway_runtime.store import ServerStore

AT = "2026-11-20T12:00:00.000000+00:00"


class StoreServer:
    """The store of an agent server, in its public form."""

    def __init__(self) -> None:
        self.items: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.runs: set[str | None] = set()
        self.refreshes: list[Any] = []

    def __enter__(self) -> "StoreServer":
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = 401, {"detail": "Unauthorized."}
                if self.headers.get("Authorization") == f"Bearer {TOKEN}" and "x-api-key" not in self.headers:
                    url = urlsplit(self.path)
                    store.requests.append((self.command, url.path))
                    store.runs.add(self.headers.get(RUN))
                    status, answer = store.answer(self.command, url.path, parse_qs(url.query), json.loads(body) if body else {})
                data = b"" if status == 204 else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                if status != 204:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = serve

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        match method, path:
            case "PUT", "/store/items":
                place = (tuple(body["namespace"]), body["key"])
                self.items[place] = {"namespace": body["namespace"], "key": body["key"], "value": body["value"], "created_at": AT, "updated_at": AT}
                return 204, None
            case "GET", "/store/items":
                self.refreshes.append(query.get("refresh_ttl"))
                item = self.items.get((tuple(query["namespace"][0].split(".")), query["key"][0]))
                return 200, item
            case "DELETE", "/store/items":
                self.items.pop((tuple(body["namespace"]), body["key"]), None)
                return 204, None
            case "POST", "/store/items/search":
                self.refreshes.append(body.get("refresh_ttl"))
                prefix = tuple(body["namespace_prefix"])
                found = [i for (ns, _), i in sorted(self.items.items()) if ns[:len(prefix)] == prefix
                         and (body.get("filter") or {}).items() <= i["value"].items()]
                return 200, {"items": found[body.get("offset", 0):][:body.get("limit", 10)]}
            case "POST", "/store/namespaces":
                prefix, suffix = tuple(body.get("prefix") or ()), tuple(body.get("suffix") or ())
                found = sorted({ns[:body.get("max_depth")] for ns, _ in self.items
                                if ns[:len(prefix)] == prefix and ns[len(ns) - len(suffix):] == suffix})
                return 200, {"namespaces": found}
        return 404, {"detail": "Not found."}


async def asynchronous(store: BaseStore) -> list[Any]:
    await store.aput(("a", "b"), "1", {"n": 1})
    await store.aput(("a", "c"), "2", {"n": 2})
    await store.aput(("a", "c"), "2", {"n": 3})
    found = [
        (await store.aget(("a", "b"), "1")).value, await store.aget(("a", "b"), "none"),
        [(i.namespace, i.key, i.value) for i in await store.asearch(("a",))],
        [i.key for i in await store.asearch(("a",), filter={"n": 3})],
        await store.alist_namespaces(prefix=("a",)), await store.alist_namespaces(suffix=("c",)), await store.alist_namespaces(max_depth=1),
    ]
    await store.adelete(("a", "b"), "1")
    return [*found, await store.aget(("a", "b"), "1")]


def synchronous(store: BaseStore) -> list[Any]:
    store.put(("a", "b"), "1", {"n": 1})
    store.put(("a", "c"), "2", {"n": 2})
    store.put(("a", "c"), "2", {"n": 3})
    found = [
        store.get(("a", "b"), "1").value, store.get(("a", "b"), "none"),
        [(i.namespace, i.key, i.value) for i in store.search(("a",))],
        [i.key for i in store.search(("a",), filter={"n": 3})],
        store.list_namespaces(prefix=("a",)), store.list_namespaces(suffix=("c",)), store.list_namespaces(max_depth=1),
    ]
    store.delete(("a", "b"), "1")
    return [*found, store.get(("a", "b"), "1")]


WANTED = [{"n": 1}, None, [(("a", "b"), "1", {"n": 1}), (("a", "c"), "2", {"n": 3})], ["2"], [("a", "b"), ("a", "c")], [("a", "c")], [("a",)], None]


def test_the_frameworks_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_API_KEY", "a secret that the server must not see")
    with StoreServer() as server:
        assert synchronous(ServerStore(server.url, TOKEN)) == WANTED
    with StoreServer() as server:
        assert asyncio.run(asynchronous(ServerStore(server.url, TOKEN))) == WANTED


def test_a_batch_reads_first_and_keeps_the_last_of_several_puts() -> None:
    ops = [PutOp(("a",), "1", {"n": 1}), GetOp(("a",), "1"), PutOp(("a",), "1", {"n": 2})]
    with StoreServer() as server:
        assert ServerStore(server.url, TOKEN).batch(ops) == [None, None, None]
        assert server.items[("a",), "1"]["value"] == {"n": 2}
        assert asyncio.run(ServerStore(server.url, TOKEN).abatch(ops))[1].value == {"n": 2}
        assert server.requests.count(("PUT", "/store/items")) == 2


def test_the_configuration_file_says_whether_a_read_begins_the_time_to_live_anew() -> None:
    with StoreServer() as server:
        store = ServerStore(server.url, TOKEN)
        for refresh in [None, False, True]:
            store.get(("a",), "1", refresh_ttl=refresh)
            store.search(("a",), refresh_ttl=refresh)
        assert server.refreshes == [None, None, ["false"], False, ["true"], True]


def test_nodes_with_event_loops_of_their_own_share_a_store() -> None:
    with StoreServer() as server:
        store = ServerStore(server.url, TOKEN)

        async def node() -> Any:
            await store.aput(("a",), "1", {"n": 1})
            await asyncio.to_thread(asyncio.run, store.aput(("a",), "1", {"n": 2}))
            return (await store.aget(("a",), "1")).value

        assert [asyncio.run(node()), asyncio.run(node())] == [{"n": 2}, {"n": 2}]
        assert not store._clients  # asyncio.run has closed them
        for _ in range(2):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(store.aget(("a",), "1"))
            loop.close()
        assert list(store._clients) == [loop]


def test_a_refusal_is_an_error() -> None:
    with StoreServer() as server, pytest.raises(APIStatusError):
        ServerStore(server.url, "another token").get(("a",), "1")


def test_requests_name_their_run_and_keep_the_hooks_of_what_traces_them(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []

    class Client(httpx.Client):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options, event_hooks={"request": [lambda request: traced.append(request.method)]})

    class AsyncClient(httpx.AsyncClient):
        def __init__(self, **options: Any) -> None:
            async def trace(request: httpx.Request) -> None:
                traced.append(request.method)

            super().__init__(**options, event_hooks={"request": [trace]})

    monkeypatch.setattr(httpx, "Client", Client)
    monkeypatch.setattr(httpx, "AsyncClient", AsyncClient)
    with StoreServer() as server, reaching(server.url, None, "thread/run"):
        store = ServerStore(server.url, TOKEN)
        assert store.get(("a",), "1") is None
        assert asyncio.run(store.aget(("a",), "1")) is None
        assert server.runs == {"thread/run"}
    assert traced == ["GET", "GET"]


def test_requests_wait_for_a_connection_as_long_as_for_an_answer() -> None:
    async def timeout(store: ServerStore) -> httpx.Timeout:
        return (await store._client()).http.client.timeout

    store = ServerStore("http://127.0.0.1:1", TOKEN)
    for found in (asyncio.run(timeout(store)), store._sync_client.http.client.timeout):
        assert found.pool == found.read == 300
