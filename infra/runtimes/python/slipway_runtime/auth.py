"""The repository's own authentication: its handlers say who sent a request to the agent server, and
what that user may do.

The agent server asks for every request and enforces the answers. Nothing is kept between two of
them. Whatever a handler does but to let a user in in so many words, lets nobody in.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from .config import Config, UserError
from .framework import Auth
from .invocation import InvalidInvocation, User
from .loader import load_variable

# The values that a handler may ask for by the names of its parameters.
_PARAMETERS = ("request", "path", "method", "path_params", "query_params", "headers", "authorization")
# LIMIT is how many seconds a handler may take. The agent server waits a little longer.
LIMIT = 8.0


class Denied(Exception):
    """A handler has said no."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Authentication:
    """The handlers of one Auth object."""

    def __init__(self, auth: Auth) -> None:
        handler = auth._authenticate_handler
        if handler is None:
            raise UserError("auth: there is no handler for @auth.authenticate, so nobody could be let in")
        self._auth = auth
        self._authenticate = handler
        self._wanted = _parameters(handler)

    async def rule(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a question of the agent server. An error that no handler means is one of the
        repository, and no answer."""
        work, denies = (self._user, 401) if fields.get("operation") == "authenticate" else (self._access, 403)
        try:
            async with asyncio.timeout(LIMIT):
                return {"allowed": True, **await work(fields)}
        except Exception as e:
            return {"allowed": False, **_refusal(e, denies)}

    async def _user(self, fields: dict[str, Any]) -> dict[str, Any]:
        request = _object(fields, "request")
        arguments = _arguments(request, self._wanted)
        found = await _call(self._authenticate, arguments)
        return {"user": _user_fields(found)}

    async def _access(self, fields: dict[str, Any]) -> dict[str, Any]:
        access = _object(fields, "access")
        resource, action, value = str(access.get("resource")), str(access.get("action")), _object(access, "value")
        handler = self._handler(resource, action)
        if handler is None:
            return {"value": value}
        if resource == "store" and isinstance(value.get("namespace"), list):
            value["namespace"] = tuple(value["namespace"])
        user = User(_object(access, "user"))
        context = Auth.types.AuthContext(permissions=list(user.permissions or []), user=user, resource=resource, action=action)
        answer = await handler(ctx=context, value=value)
        if answer is False:
            raise Denied(403, "Forbidden")
        if answer is None or answer is True:
            return {"value": value}
        if not isinstance(answer, dict):
            raise TypeError(f"the handler of {resource}:{action} returned {type(answer).__name__}, not None, a boolean or a filter")
        return {"value": value, "filter": answer}

    def _handler(self, resource: str, action: str) -> Callable[..., Awaitable[Any]] | None:
        """The most specific handler, as the framework's own server chooses it."""
        for key in ((resource, action), (resource, "*"), ("*", action), ("*", "*")):
            if handlers := self._auth._handlers.get(key):
                return handlers[-1]
        return self._auth._global_handlers[-1] if self._auth._global_handlers else None


def load_auth(config: Config) -> Authentication | None:
    """Imports the Auth object that the configuration file names; None if it names none."""
    if config.auth is None:
        return None
    if Auth is None:
        raise UserError("auth: the repository's release of langgraph-sdk has no Auth")
    value = load_variable(config.directory, "auth", config.auth)
    if not isinstance(value, Auth):
        raise UserError(f"auth: {config.auth} is not an Auth object of langgraph_sdk, but {type(value).__name__}")
    return Authentication(value)


def _parameters(handler: Callable[..., Any]) -> list[str]:
    wanted = []
    for parameter in inspect.signature(handler).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in _PARAMETERS:
            wanted.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise UserError(f"auth: the handler of @auth.authenticate has the parameter {parameter.name!r}; there are only {', '.join(_PARAMETERS)}")
    return wanted


def _arguments(request: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    headers = {str(name): str(value) for name, value in _object(request, "headers").items()}
    query, path, method = str(request.get("query") or ""), str(request.get("path") or ""), str(request.get("method") or "")
    raw = {name.encode("latin-1", "replace"): value.encode("utf-8", "surrogateescape") for name, value in headers.items()}
    path_params = {str(name): str(value) for name, value in _object(request, "path_params").items()}
    known: dict[str, Any] = {
        "path": path, "method": method, "path_params": path_params, "query_params": dict(parse_qsl(query, keep_blank_values=True)),
        "headers": raw, "authorization": headers.get("authorization"),
    }
    if "request" in wanted:
        from starlette.requests import Request

        known["request"] = Request({
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "root_path": "", "scheme": "http",
            "query_string": query.encode(), "headers": list(raw.items()), "path_params": path_params,
        })
    return {name: known[name] for name in wanted}


async def _call(handler: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(handler):
        return await handler(**arguments)
    value = await asyncio.to_thread(handler, **arguments)
    return await value if inspect.isawaitable(value) else value


def _user_fields(found: Any) -> dict[str, Any]:
    """The user as JSON has it. The forms are those that the framework's own server takes."""
    if isinstance(found, (tuple, list)) and len(found) == 2:
        permissions, found = found
        return {**_user_fields(found), "permissions": list(permissions)}
    if isinstance(found, str):
        fields: dict[str, Any] = {"identity": found}
    elif isinstance(found, dict):
        fields = dict(found)
    else:
        names = {name for name in ("identity", "display_name", "is_authenticated", "permissions") if hasattr(found, name)}
        names |= {name for name in getattr(found, "__dict__", {}) if not name.startswith("_")}
        fields = {name: getattr(found, name) for name in names}
    identity = fields.get("identity")
    if not isinstance(identity, str):
        raise TypeError("the handler of @auth.authenticate returned no user: a string, or something with an identity, was expected")
    if fields.get("is_authenticated", True) is not True:
        raise Denied(401, "Unauthorized")
    permissions = fields.get("permissions") or []
    if isinstance(permissions, str) or not all(isinstance(p, str) for p in permissions):
        raise TypeError("the permissions of the user are not a list of strings")
    # Values that JSON does not have, such as a client's object, stay with the handler.
    kept = {name: value for name, value in fields.items() if _is_json(value)}
    return {"display_name": identity, "is_authenticated": True, **kept, "identity": identity, "permissions": list(permissions)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _refusal(error: Exception, denies: int) -> dict[str, Any]:
    """The answer to a client whose request a handler has refused. Other errors are raised again."""
    from starlette.authentication import AuthenticationError
    from starlette.exceptions import HTTPException

    match error:
        case Denied():
            return {"status": error.status, "detail": error.detail}
        case Auth.exceptions.HTTPException() | HTTPException():
            said = {"status": _status(error.status_code, denies), "detail": str(error.detail)}
            return {**said, "headers": {str(name): str(value) for name, value in error.headers.items()}} if error.headers else said
        case AuthenticationError():
            return {"status": 403, "detail": str(error) or "Forbidden"}
        case AssertionError():
            return {"status": denies, "detail": str(error) or "the repository's own authentication has not agreed"}
    raise error


def _status(status: Any, otherwise: int) -> int:
    return status if isinstance(status, int) and 400 <= status <= 599 else otherwise


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInvocation(f"{name}: must be of type dict")
    return value
