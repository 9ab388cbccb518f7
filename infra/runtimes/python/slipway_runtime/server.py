"""The HTTP interface: GET /ping and POST /invocations, in the shape of the public AgentCore Runtime
HTTP contract."""

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .app import PREFIX, Application
from .auth import LIMIT, Authentication
from .bridge import GraphLoop, Outlet
from .config import UserError
from .describe import describe
from .encode import encode
from .encryption import Cipher
from .index import Index
from .invocation import InvalidInvocation, Invocation, parse, question_of
from .loader import Source
from .run import Run
from .store import ServerStore

log = logging.getLogger("slipway_runtime")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# SIGNATURE_AGE is how many seconds a signature's time may be from this clock.
SIGNATURE_AGE = 300


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server:
    """An ASGI application."""

    def __init__(self, sources: dict[str, Source], graphs: GraphLoop, token: str, auth: Authentication | None = None, app: Application | None = None,
                 index: Index | None = None, encryption: Cipher | None = None) -> None:
        self._sources = sources
        self._auth = auth
        self._app = app
        self._index = index
        self._encryption = encryption
        self._graphs = graphs
        self._token = token
        self._stores: dict[str, ServerStore] = {}
        self._busy = 0
        self._changed = time.time()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])  # which is how an application says that it has no lifespan
        try:
            match scope["method"], scope["path"]:
                case "GET" | "HEAD", "/ping":
                    status = "HealthyBusy" if self._busy else "Healthy"
                    await _answer(send, 200, {"status": status, "time_of_last_update": self._changed})
                case "POST", "/invocations":
                    await self._invoke(scope, receive, send)
                case _, path if self._app is not None and path.startswith(PREFIX + "/"):
                    self._authorize(scope, b"x-slipway-authorization")
                    await self._app(scope, receive, send)
                case _, "/ping" | "/invocations":
                    raise _Refused(405, "the method is not allowed here")
                case _:
                    raise _Refused(404, "there are only GET /ping and POST /invocations")
        except _Refused as e:
            await _answer(send, e.status, {"error": str(e)})

    async def _invoke(self, scope: Message, receive: Receive, send: Send) -> None:
        self._authorize(scope, b"authorization")
        body = await _read(receive)
        try:
            if (question := question_of(body)) is not None:
                ask = {"embed": self._embed, "encrypt": self._encrypt, "decrypt": self._encrypt}.get(question["operation"], self._rule)
                await _answer(send, 200, await ask(question))
                return
            invocation = parse(body, own_users=self._auth is not None)
        except InvalidInvocation as e:
            raise _Refused(400, str(e)) from e
        if invocation.operation == "describe" and not invocation.graph:
            found = {graph_id: await self._describe(source) for graph_id, source in self._sources.items()}
            description: dict[str, Any] = {"graphs": found}
            if self._app is not None:
                description["routes"] = self._app.routes()
            await _answer(send, 200, description)
            return
        source = self._sources.get(invocation.graph)
        if source is None:
            raise _Refused(404, f"there is no graph {invocation.graph!r}; there are {', '.join(sorted(self._sources))}")
        if invocation.operation == "describe":
            await _answer(send, 200, {"graphs": {invocation.graph: await self._describe(source, invocation)}})
            return
        await self._stream(Run(source, invocation, self._store(invocation), outlet := Outlet(self._graphs.loop)), outlet, receive, send)

    def _authorize(self, scope: Message, name: bytes) -> None:
        if not self._token:
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        given = headers.get(name, b"")
        if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            raise _Refused(401, "the invoke token is missing or wrong")
        signature = headers.get(b"x-slipway-signature")
        if signature is not None and not self._is_signed(signature.decode("latin-1")):
            raise _Refused(401, "the signature is wrong, or too old")

    def _is_signed(self, signature: str) -> bool:
        """Says whether the platform made the signature, and made it just now."""
        pairs = dict(pair.partition("=")[::2] for pair in signature.split(","))
        at = pairs.get("t", "")
        wanted = hmac.new(self._token.encode(), f"{at}.{pairs.get('n', '')}".encode("latin-1"), "sha256").hexdigest()
        fresh = at.isascii() and at.isdigit() and abs(time.time() - int(at)) <= SIGNATURE_AGE
        return hmac.compare_digest(pairs.get("v1", "").encode(), wanted.encode()) and fresh

    async def _describe(self, source: Source, invocation: Invocation | None = None) -> dict[str, Any]:
        try:
            return await asyncio.wrap_future(self._graphs.submit(describe(source, invocation)))
        except UserError as e:
            raise _Refused(500, str(e)) from e

    async def _rule(self, question: dict[str, Any]) -> dict[str, Any]:
        """Asks the repository's own authentication, on the loop of the graphs: a handler that
        blocks it stops no answer to GET /ping."""
        if self._auth is None:
            raise _Refused(404, "the repository has no authentication of its own")
        try:
            async with asyncio.timeout(LIMIT + 1):
                return await asyncio.wrap_future(self._graphs.submit(self._auth.rule(question)))
        except InvalidInvocation:
            raise
        except Exception as e:
            log.exception("the repository's own authentication has failed")
            raise _Refused(500, f"the repository's own authentication has failed: {type(e).__name__}") from e

    async def _embed(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._index is None:
            raise _Refused(404, "the repository has no index of the store")
        texts = question.get("embed")
        if not isinstance(texts, dict):
            raise InvalidInvocation("embed: must be of type dict")
        return await self._index.embed(texts)

    async def _encrypt(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._encryption is None:
            raise _Refused(404, "the repository has no encryption of its own")
        try:
            return await self._encryption.answer(question)
        except InvalidInvocation:
            raise
        except Exception as e:
            log.exception("the repository's own encryption has failed")
            raise _Refused(500, f"the repository's own encryption has failed: {type(e).__name__}") from e

    def _store(self, invocation: Invocation) -> ServerStore | None:
        url = invocation.server_url
        if url and url not in self._stores:
            self._stores[url] = ServerStore(url, self._token)
        return self._stores.get(url)

    async def _stream(self, run: Run, outlet: Outlet, receive: Receive, send: Send) -> None:
        """Sends the events of a run while it makes them. When the caller goes, the run is
        stopped."""
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        self._count(1)
        work = self._graphs.submit(_until_closed(run, outlet))
        gone = asyncio.create_task(_await_disconnect(receive, outlet))
        try:
            while (chunk := await outlet.read_or_beat()) is not None:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._count(-1)
            gone.cancel()
            work.cancel()

    def _count(self, change: int) -> None:
        before, self._busy = self._busy, self._busy + change
        if bool(before) != bool(self._busy):
            self._changed = time.time()


async def _until_closed(run: Run, outlet: Outlet) -> None:
    try:
        await run.execute()
    finally:
        outlet.close()


async def _await_disconnect(receive: Receive, outlet: Outlet) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    outlet.abandon()


async def _read(receive: Receive) -> bytes:
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused(400, "the body is not complete")
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _answer(send: Send, status: int, body: dict[str, Any]) -> None:
    data = encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    with contextlib.suppress(OSError):
        await send({"type": "http.response.body", "body": data})
