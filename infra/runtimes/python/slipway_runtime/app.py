"""The repository's own HTTP application: the agent server sends it the requests that are for it,
and this module hands them to it.

The application runs on the loop of the graphs, because it may share clients and locks with them. So
an application that blocks does not stop the answers to GET /ping.
"""

import asyncio
import base64
import contextlib
import inspect
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .bridge import GraphLoop
from .config import Config, UserError
from .invocation import User
from .loader import load_variable
from .loopback import reaching

Message = MutableMapping[str, Any]

# PREFIX is the prefix that the agent server puts before the paths of the application.
PREFIX = "/app"
# Headers that begin so are the platform's.
_OWN = b"x-slipway-"
# STARTUP is how many seconds the application may take to start, or to stop.
STARTUP = 60.0


class Application:
    """An ASGI application of the repository's."""

    def __init__(self, path: str, app: Callable[..., Awaitable[None]], prefix: str, graphs: GraphLoop) -> None:
        self._path = path
        self._app = app
        self._root = prefix
        self._graphs = graphs
        self._state: dict[str, Any] = {}
        self._lifespan: _Lifespan | None = None

    def routes(self) -> list[dict[str, Any]]:
        """Returns the routes that the application has in place of routes of the agent server."""
        replacing = []
        for route in getattr(self._app, "routes", None) or []:
            pattern = getattr(getattr(route, "path_regex", None), "pattern", None)
            # The documents of the agent server's interface stay where they are.
            if pattern is None or getattr(route, "path", None) == "/openapi.json" or not hasattr(route, "matches") or type(route).__name__ == "WebSocketRoute":
                continue
            below = self._root + pattern.removeprefix("^")
            replacing.append({"methods": sorted(getattr(route, "methods", None) or ()), "pattern": "^" + below})
        return replacing

    def start(self) -> None:
        self._lifespan = _Lifespan(self._app, self._state)
        try:
            self._graphs.submit(self._lifespan.start()).result(STARTUP)
        except TimeoutError as e:
            raise UserError(f"http.app: {self._path} has not started within {STARTUP:.0f} s") from e

    def stop(self) -> None:
        if self._lifespan is not None:
            with contextlib.suppress(TimeoutError):
                self._graphs.submit(self._lifespan.stop()).result(STARTUP)

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
        here = asyncio.get_running_loop()
        inner = {**scope, "headers": [(name, value) for name, value in scope["headers"] if not name.lower().startswith(_OWN)], "state": dict(self._state)}
        inner["path"] = scope["path"].removeprefix(PREFIX)
        inner["raw_path"] = (scope.get("raw_path") or b"").removeprefix(PREFIX.encode())
        inner["root_path"] = self._root
        if (user := _user(scope)) is not None:
            inner["user"], inner["auth"] = user, _Credentials(user)
        await asyncio.wrap_future(self._graphs.submit(self._answer(_header(scope, b"x-slipway-server"), user, inner, _from(here, receive), _from(here, send))))

    async def _answer(self, server_url: bytes, user: User | None, *arguments: Any) -> None:
        with reaching(server_url.decode("latin-1"), user):
            await self._app(*arguments)


def load_application(config: Config, graphs: GraphLoop) -> Application | None:
    """Imports the application that the configuration file names; None if it names none."""
    path = config.http.get("app")
    if not path:
        return None
    app = load_variable(config.directory, "http.app", path)
    if inspect.isclass(app) or not callable(app):
        raise UserError(f"http.app: {path} is no application: it must be an ASGI application, such as one of Starlette or FastAPI")
    refuse_middleware(path, app)
    return Application(path, app, str(config.http.get("mount_prefix") or "").rstrip("/"), graphs)


# Middleware that the routes of the agent server do not need: the agent server does the same work,
# or the work concerns the own routes only.
_OWN_ROUTES_ONLY = ("CORSMiddleware", "GZipMiddleware", "TrustedHostMiddleware", "HTTPSRedirectMiddleware", "SessionMiddleware")


def refuse_middleware(path: str, app: Any) -> None:
    """Refuses middleware by name that would be missing on the agent server's routes: the public
    server applies the application's middleware to these routes, too."""
    names = [getattr(getattr(m, "cls", None), "__name__", str(m)) for m in getattr(app, "user_middleware", None) or []]
    if others := [name for name in names if name not in _OWN_ROUTES_ONLY]:
        raise UserError(
            f"http.app: {path} has the middleware {', '.join(others)}, which would see requests to the application's own routes only: the agent server's routes run no "
            "middleware of a repository. Put it on the routes that it is for, as a dependency, a route class or the middleware of a mounted application"
        )


class _Lifespan:
    """Sends an application the events of its start and its end, in one task, as the ASGI
    specification asks."""

    def __init__(self, app: Callable[..., Awaitable[None]], state: dict[str, Any]) -> None:
        self._app, self._state = app, state
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        self._task = asyncio.create_task(_run(self._app, scope, self._events.get, self._answers.put))
        if (answer := await self._ask("lifespan.startup")) is not None and answer["type"] == "lifespan.startup.failed":
            raise UserError(f"http.app: the application has not started: {answer.get('message') or 'its lifespan has failed'}")

    async def stop(self) -> None:
        if self._task is not None and not self._task.done():
            await self._ask("lifespan.shutdown")

    async def _ask(self, kind: str) -> Message | None:
        """Returns the answer of the application, None if the application has no lifespan and ends
        without an answer."""
        assert self._task is not None
        await self._events.put({"type": kind})
        answer = asyncio.create_task(self._answers.get())
        await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        return None


async def _run(app: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    await app(*arguments)


def _from(loop: asyncio.AbstractEventLoop, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Returns a function that another loop can call, and that runs call on this loop."""

    async def crossing(*arguments: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_call(call, *arguments), loop))

    return crossing


async def _call(call: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    return await call(*arguments)


def _user(scope: Message) -> User | None:
    """Returns the user that the platform has let in, None if nobody was checked."""
    caller = _header(scope, b"x-slipway-caller")
    return User(json.loads(base64.urlsafe_b64decode(caller))) if caller else None


def _header(scope: Message, name: bytes) -> bytes:
    return next((value for given, value in scope["headers"] if given.lower() == name), b"")


class _Credentials:
    """The value of Starlette's request.auth."""

    def __init__(self, user: User) -> None:
        self.scopes = ["authenticated", *(user.permissions or [])]
