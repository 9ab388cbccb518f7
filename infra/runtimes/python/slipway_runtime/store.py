"""The framework's store over the agent server's own, so that what agents remember is in one place,
whichever of them wrote it."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

import httpx
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp
from langgraph_sdk import get_client, get_sync_client

from .loopback import mark, mark_async

# The timeouts of the framework's client, except that a request waits as long for a connection as
# for an answer: a graph may make many at once.
_TIMEOUT = httpx.Timeout(connect=5, read=300, write=300, pool=300)


class ServerStore(BaseStore):
    """Speaks to the agent server with the agent's invoke token, from every event loop: a node may
    run one of its own."""

    supports_ttl = True
    # Whether a read refreshes is left to the server; the base class would ask for it in each read.
    ttl_config: Any = {"refresh_on_read": None}

    def __init__(self, server_url: str, token: str) -> None:
        # A token that is no key needs the workspace beside it.
        headers = {"Authorization": f"Bearer {token}", "X-Tenant-Id": os.environ.get("PLATFORM_TENANT_ID", "")}
        self._options: dict[str, Any] = {"url": server_url, "api_key": None, "headers": {name: value for name, value in headers.items() if value}}
        self._sync_client = _prepared(get_sync_client(**self._options), mark).store
        # Connections belong to the event loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[Any, None]]] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        results: list[Result] = [None] * len(ops)
        for index, op in enumerate(ops):
            if not isinstance(op, PutOp):
                name, args, options = _request(op)
                results[index] = _result(op, getattr(self._sync_client, name)(*args, **options))
        for op in _last_puts(ops):
            name, args, options = _request(op)
            getattr(self._sync_client, name)(*args, **options)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        results = list(await asyncio.gather(*(self._read(op) for op in ops)))
        await asyncio.gather(*(self._write(op) for op in _last_puts(ops)))
        return results

    async def _read(self, op: Op) -> Result:
        if isinstance(op, PutOp):
            return None
        name, args, options = _request(op)
        return _result(op, await getattr(await self._client(), name)(*args, **options))

    async def _write(self, op: PutOp) -> None:
        name, args, options = _request(op)
        await getattr(await self._client(), name)(*args, **options)

    async def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for other in [other for other in list(self._clients) if other.is_closed()]:
                self._clients.pop(other, None)
            opened = self._open()
            self._clients[loop] = await anext(opened), opened
        return self._clients[loop][0]

    async def _open(self) -> AsyncGenerator[Any, None]:
        """Yields a client, and closes it with the running loop, whose asynchronous generators
        asyncio.run ends."""
        client = _prepared(get_client(**self._options), mark_async)
        try:
            yield client.store
        finally:
            self._clients.pop(asyncio.get_running_loop(), None)
            await client.http.client.aclose()


def _prepared(client: Any, hook: Any) -> Any:
    # A tracer of an agent's requests may have put its own hooks there.
    client.http.client.event_hooks["request"].append(hook)
    client.http.client.timeout = _TIMEOUT  # of which early releases have no option
    return client


def _last_puts(ops: Iterable[Op]) -> list[PutOp]:
    """The puts of a batch, which come after its reads; of several to one item only the last
    counts."""
    return list({(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values())


def _request(op: Op) -> tuple[str, tuple, dict[str, Any]]:
    """The method of the client that an operation is, with its arguments. What is not set is left to
    the server."""
    match op:
        case GetOp():
            name, args, options = "get_item", (list(op.namespace), op.key), {"refresh_ttl": op.refresh_ttl}
        case PutOp(value=None):
            name, args, options = "delete_item", (list(op.namespace), op.key), {}
        case PutOp():
            name, args, options = "put_item", (list(op.namespace), op.key, op.value), {"index": op.index, "ttl": op.ttl}
        case SearchOp():
            name, args = "search_items", (list(op.namespace_prefix),)
            options = {"filter": op.filter, "limit": op.limit, "offset": op.offset, "query": op.query, "refresh_ttl": op.refresh_ttl}
        case ListNamespacesOp():
            paths = {c.match_type: list(c.path) for c in op.match_conditions or ()}
            name, args = "list_namespaces", ()
            options = {"prefix": paths.get("prefix"), "suffix": paths.get("suffix"), "max_depth": op.max_depth, "limit": op.limit, "offset": op.offset}
        case _:
            raise TypeError(f"the store has no operation {type(op).__name__}")
    return name, args, {key: value for key, value in options.items() if value is not None}


def _result(op: Op, answer: Any) -> Result:
    if isinstance(op, GetOp):
        return Item(**_item(answer)) if answer else None
    if isinstance(op, SearchOp):
        return [SearchItem(**_item(item), score=item.get("score")) for item in answer["items"]]
    return [tuple(namespace) for namespace in answer["namespaces"]]


def _item(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(fields["namespace"]),
        "key": fields["key"],
        "value": fields["value"],
        "created_at": fields["created_at"],
        "updated_at": fields["updated_at"],
    }
