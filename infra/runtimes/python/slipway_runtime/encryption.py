"""The repository's own encryption: its handlers encrypt what the agent server stores, and decrypt
what it reads.

The agent server sends all values of a transaction, or of a page that it has read, in one question.
Nothing is kept between two questions.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from typing import Any

from .bridge import GraphLoop
from .config import Config, UserError
from .framework import DecryptResult, Encryption, EncryptionContext
from .invocation import InvalidInvocation, User
from .loader import load_variable

# LIMIT is how many seconds the answer to a question may take. The agent server waits a little
# longer.
LIMIT = 8.0
# How many values of a question are in the handlers' hands at a time.
_AT_A_TIME = 16

Handler = Callable[[Any, Any], Awaitable[Any]]


class Cipher:
    """The handlers of one Encryption object, on a loop of their own: a node that blocks the loop of
    the graphs may wait for the agent server, and so for them.

    A value has a model and a field, as the framework names them, and is JSON or opaque. Encrypted
    JSON is an object: `v` is the value as the handler has left it, and `p` are the paths of the
    objects that it was given. Each object that the handler has left as it was is given to it, too,
    at any depth. If there is no handler for JSON, `b` is the value as the handler for opaque values
    has made it.
    """

    def __init__(self, own: Any) -> None:
        self._encrypt_blob: Handler = own._blob_encryptor
        self._decrypt_blob: Handler = own._blob_decryptor
        self._encrypt_json: Handler | None = own._json_encryptor
        self._decrypt_json: Handler | None = own._json_decryptor
        self._context: Handler | None = own._context_handler
        for name, handler in (("encrypt", self._encrypt_blob), ("decrypt", self._decrypt_blob)):
            if handler is None:
                raise UserError(f"encryption: there is no handler for @{name}.blob, without which checkpoints cannot be stored")
        if (self._encrypt_json is None) != (self._decrypt_json is None):
            raise UserError("encryption: there must be handlers for both @encrypt.json and @decrypt.json, or for neither")
        self._loop = GraphLoop("encryption")

    async def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answers the operations encrypt and decrypt."""
        asked = _typed(question, "encryption", dict)
        work = self._encrypted if question["operation"] == "encrypt" else self._decrypted
        return await asyncio.wrap_future(self._loop.submit(_within_limit(work(asked))))

    async def _encrypted(self, asked: dict[str, Any]) -> dict[str, Any]:
        metadata = asked.get("context")
        if self._context is not None and (user := asked.get("user")) is not None:
            metadata = await self._context(User(user), EncryptionContext(metadata=dict(metadata or {})))
            if not isinstance(metadata, dict):
                raise TypeError(f"the handler of @encryption.context returned {type(metadata).__name__}, not dict")
            json.dumps(metadata, allow_nan=False)
        return {"values": await self._each(asked, self._encrypt, metadata), "context": metadata}

    async def _decrypted(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"values": await self._each(asked, self._decrypt, None)}

    async def _each(self, asked: dict[str, Any], work: Callable[[Any, bytes, bool], Awaitable[bytes]], metadata: dict[str, Any] | None) -> list[str]:
        room = asyncio.Semaphore(_AT_A_TIME)

        async def one(value: dict[str, Any]) -> str:
            own = metadata if metadata is not None else value.get("context") or {}
            async with room:
                # Each value has a context of its own, which its handler may change.
                context = EncryptionContext(model=value.get("model"), field=value.get("field"), metadata=json.loads(json.dumps(own)))
                return base64.b64encode(await work(context, _data(value), value.get("json") is True)).decode("ascii")

        try:
            async with asyncio.TaskGroup() as group:  # which ends the other handlers when one has failed
                tasks = [group.create_task(one(value)) for value in _typed(asked, "values", list)]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _encrypt(self, context: Any, data: bytes, is_json: bool) -> bytes:
        if not is_json:
            return _bytes(await self._encrypt_blob(context, data))
        if self._encrypt_json is None:
            return _dump({"b": base64.b64encode(_bytes(await self._encrypt_blob(context, data))).decode("ascii")})
        paths: list[list[Any]] = []
        return _dump({"v": await self._walk(context, json.loads(data), [], paths), "p": paths})

    async def _walk(self, context: Any, value: Any, path: list[Any], paths: list[list[Any]]) -> Any:
        if isinstance(value, list):
            return [await self._walk(context, element, [*path, index], paths) for index, element in enumerate(value)]
        if not isinstance(value, dict):
            return value
        assert self._encrypt_json is not None
        made = await self._encrypt_json(context, json.loads(json.dumps(value)))
        if not isinstance(made, dict) or made.keys() != value.keys():
            raise TypeError("the handler of @encrypt.json must return an object with the same keys")
        paths.append(path)
        return {
            key: await self._walk(context, part, [*path, key], paths) if isinstance(part, (dict, list)) and part == value[key] else part
            for key, part in made.items()
        }

    async def _decrypt(self, context: Any, data: bytes, is_json: bool) -> bytes:
        if not is_json:
            return _bytes(await self._call(self._decrypt_blob, context, data))
        stored = json.loads(data)
        if "b" in stored:
            return _bytes(await self._call(self._decrypt_blob, context, base64.b64decode(stored["b"], validate=True)))
        if self._decrypt_json is None:
            raise TypeError("there is no handler for @decrypt.json any more")
        root = [stored["v"]]
        for path in reversed(stored["p"]):  # what is inside was encrypted last
            place, last = root, 0
            for step in path:
                place, last = place[last], step
            place[last] = await self._call(self._decrypt_json, context, place[last])
            if not isinstance(place[last], dict):
                raise TypeError("the handler of @decrypt.json must return an object")
        return _dump(root[0])

    async def _call(self, handler: Handler, context: Any, data: Any) -> Any:
        """The plaintext. The agent server does not store the replacement that a handler may offer
        beside it."""
        found = await handler(context, data)
        return found.plaintext if DecryptResult is not None and isinstance(found, DecryptResult) else found


async def _within_limit(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(LIMIT):
            return await work
    except (SystemExit, asyncio.CancelledError) as e:  # of a handler
        raise RuntimeError(type(e).__name__) from e


def load_encryption(config: Config) -> Cipher | None:
    """Imports the Encryption object that the configuration file names; None if it names none."""
    if config.encryption is None:
        return None
    if Encryption is None:
        raise UserError("encryption: the repository's release of langgraph-sdk has no Encryption with all its handlers: it must be 0.3.1 or newer")
    value = load_variable(config.directory, "encryption", config.encryption)
    if not isinstance(value, Encryption):
        raise UserError(f"encryption: {config.encryption} is not an Encryption object of langgraph_sdk, but {type(value).__name__}")
    return Cipher(value)


def _bytes(made: Any) -> bytes:
    if not isinstance(made, (bytes, bytearray)):
        raise TypeError(f"a handler for blobs returned {type(made).__name__}, not bytes")
    return bytes(made)


def _dump(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _data(value: Any) -> bytes:
    try:
        return base64.b64decode(_typed(value, "data", str), validate=True)
    except binascii.Error as e:
        raise InvalidInvocation("encryption.values: data is not base64") from e


def _typed(fields: Any, name: str, kind: type) -> Any:
    value = fields.get(name) if isinstance(fields, dict) else None
    if not isinstance(value, kind):
        raise InvalidInvocation(f"{name}: must be of type {kind.__name__}")
    return value
