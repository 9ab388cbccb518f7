"""Lets the framework's client without a URL reach the deployment's own agent server, as graphs that
run in the public server do.

The public server answers such a client in the same process. Here the requests go to the agent
server over HTTP, with the agent's invoke token and the user of the run that makes them, so that
whatever they start belongs to the same user.
"""

import base64
import contextlib
import importlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx

from .encode import encode

# CALLER names the user of a run to the agent server, which takes it from agents alone.
CALLER = "x-slipway-caller"
# RUN names the run that a request to the agent server comes from, as THREAD/RUN: what the server
# encrypts for the request has the run's context.
RUN = "x-slipway-run"
# Where releases of the client look up the transport for a client without a URL.
_CLIENTS = ("langgraph_sdk._async.client", "langgraph_sdk.client")


@dataclass(frozen=True)
class _Place:
    url: str
    user: dict[str, Any] | None
    run: str


_place: ContextVar[_Place | None] = ContextVar("slipway_server", default=None)
# The server that the last invocation named, for what runs beside invocations. It acts for nobody.
_server_url = ""


@contextlib.contextmanager
def reaching(server_url: str, user: dict[str, Any] | None, run: str = "") -> Iterator[None]:
    """Has clients without a URL, that the block and what it starts use, reach a server as a user,
    and from a run."""
    global _server_url
    _server_url = server_url or _server_url
    token = _place.set(_Place(server_url, user, run))
    try:
        yield
    finally:
        _place.reset(token)


def mark(request: httpx.Request) -> None:
    """Says which run a request comes from."""
    if (place := _place.get()) is not None and place.run:
        request.headers[RUN] = place.run


async def mark_async(request: httpx.Request) -> None:
    mark(request)


class Loopback(httpx.AsyncBaseTransport):
    """Stands where the client expects a transport to an application in the same process."""

    def __init__(self, app: Any = None, root_path: str = "", **_: Any) -> None:
        self.app = app  # the client may set it later; nobody calls it
        self._transport = httpx.AsyncHTTPTransport(retries=2)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        place = _place.get()
        base = httpx.URL((place.url if place else "") or _server_url)
        if not base.host:
            raise httpx.ConnectError("the agent server is not known before it has invoked this agent", request=request)
        request.url = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port, raw_path=base.raw_path.rstrip(b"/") + request.url.raw_path)
        request.headers["host"] = base.netloc.decode("ascii")
        for name in ("authorization", CALLER, RUN):
            request.headers.pop(name, None)
        mark(request)
        request.headers["x-api-key"] = os.environ.get("SLIPWAY_INVOKE_TOKEN", "")
        request.headers["x-tenant-id"] = os.environ.get("PLATFORM_TENANT_ID", "")
        if place is not None and place.user is not None:
            request.headers[CALLER] = base64.urlsafe_b64encode(encode(place.user)).decode("ascii")
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


def install() -> None:
    """Comes before the graphs are loaded, which may make their clients when they are imported."""
    os.environ["__LANGGRAPH_DEFER_LOOPBACK_TRANSPORT"] = "true"  # else the client looks for the public server's package first
    for name in _CLIENTS:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            if hasattr(module, "get_asgi_transport"):
                module.get_asgi_transport = lambda: Loopback
