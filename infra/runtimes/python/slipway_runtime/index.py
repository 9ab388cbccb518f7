"""The vectors of the store's items and of queries, as `store.index` of the configuration file says.

The agent server keeps the items and compares the vectors; only this process has the packages and
the code that make them. Texts are taken from a value, and embedded, by the repository's own release
of the framework.
"""

import asyncio
import base64
import logging
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .bridge import GraphLoop
from .config import Config, UserError
from .invocation import InvalidInvocation
from .loader import load_variable

log = logging.getLogger("slipway_runtime")

# LIMIT is how many seconds a call may take. The agent server waits a little longer.
LIMIT = 60.0
# How many texts a call of the embedding function has, and an item at most.
_TEXTS = 1000


class Failed(Exception):
    """There are no vectors, for a reason that the client can read."""


@dataclass(eq=False)
class _Request:
    texts: list[str]
    made: asyncio.Future[list[bytes]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Index:
    """Embeds on a loop of its own: a node that blocks the loop of the graphs while it waits for the
    store waits for this one.

    While a call of the embedding function is under way, the texts of further items wait, and become
    one call.
    """

    def __init__(self, embeddings: Any, text_at: Callable[[Any, str], list[str]], dims: int, fields: Sequence[str]) -> None:
        self._embeddings = embeddings
        self._text_at = text_at
        self._dims = dims
        self._fields = fields
        self._loop = GraphLoop("index")
        self._waiting: list[_Request] = []
        self._busy = False

    async def embed(self, texts: dict[str, Any]) -> dict[str, Any]:
        """Answers the operation embed."""
        items, queries = [_item(item) for item in _list(texts, "items", dict)], _list(texts, "queries", str)
        try:
            async with asyncio.timeout(LIMIT):
                return await asyncio.wrap_future(self._loop.submit(self._embed(items, queries)))
        except Failed as e:
            return {"error": str(e)}
        except TimeoutError:
            return {"error": str(_late())}

    async def _embed(self, items: list[tuple[dict[str, Any], list[str] | None]], queries: list[str]) -> dict[str, Any]:
        texts = [self._texts(value, self._fields if fields is None else fields) for value, fields in items]
        vectors = await asyncio.gather(*(self._documents(t) for t in texts), *(self._query(query) for query in queries))
        encoded = [base64.b64encode(v).decode("ascii") for v in vectors]
        return {"items": encoded[: len(items)], "queries": encoded[len(items) :]}

    def _texts(self, value: dict[str, Any], fields: Sequence[str]) -> list[str]:
        try:
            texts = [text for path in fields for text in self._text_at(value, path)]
        except RecursionError as e:
            raise Failed("the item is nested too deeply") from e
        if len(texts) > _TEXTS:
            raise Failed(f"the item has {len(texts)} texts, and may have {_TEXTS}")
        return texts

    async def _query(self, query: str) -> bytes:
        try:
            return self._packed(await self._embeddings.aembed_query(query))
        except (Exception, SystemExit) as e:
            raise _failed(e) from e

    async def _documents(self, texts: list[str]) -> bytes:
        if not texts:
            return b""
        self._waiting.append(request := _Request(texts))
        if not self._busy:
            self._busy = True
            self._worker = asyncio.create_task(self._work())
        return b"".join(await request.made)

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, size = [], 0
                while self._waiting and (not batch or size + len(self._waiting[0].texts) <= _TEXTS):
                    batch.append(self._waiting.pop(0))
                    size += len(batch[-1].texts)
                await self._answer(batch)
        finally:
            self._busy = False

    async def _answer(self, batch: list[_Request]) -> None:
        """Embeds the texts of several requests at once. If that fails, each half is embedded by
        itself, so that no text spoils the others.

        The halves come one after the other: the function may have failed because it is called too
        often. A call that takes too long is not repeated.
        """
        if not (batch := [request for request in batch if not request.made.done()]):  # nobody waits for the others
            return
        try:
            async with asyncio.timeout(LIMIT) as limit:
                vectors = dict(zip(texts := list({text: None for request in batch for text in request.texts}), await self._vectors(texts)))
        except (Exception, SystemExit) as e:
            if len(batch) > 1 and not limit.expired():
                half = len(batch) // 2
                await self._answer(batch[:half])
                await self._answer(batch[half:])
                return
            failed = _late() if limit.expired() else _failed(e)
            for request in batch:
                if not request.made.done():
                    request.made.set_exception(failed)
            return
        for request in batch:
            if not request.made.done():
                request.made.set_result([vectors[text] for text in request.texts])

    async def _vectors(self, texts: list[str]) -> list[bytes]:
        vectors = await self._embeddings.aembed_documents(texts)
        if len(vectors) != len(texts):
            raise Failed(f"{len(texts)} texts were embedded as {len(vectors)} vectors")
        return [self._packed(vector) for vector in vectors]

    def _packed(self, vector: Sequence[float]) -> bytes:
        packed = array("f", [float(number) for number in vector])
        if len(packed) != self._dims:
            raise Failed(f"a vector has {len(packed)} dimensions, and store.index.dims is {self._dims}")
        if sys.byteorder == "big":
            packed.byteswap()
        return packed.tobytes()


def _late() -> Failed:
    return Failed(f"the embedding function has not answered within {LIMIT:.0f} s")


def _failed(error: BaseException) -> Failed:
    """The failure that clients see. The text of an exception of the repository may have secrets:
    only the log has it."""
    if isinstance(error, Failed):
        return error
    log.error("the embedding function has failed", exc_info=error)
    return Failed(type(error).__name__)


def _item(item: dict[str, Any]) -> tuple[dict[str, Any], list[str] | None]:
    value, fields = item.get("value"), item.get("fields")
    if not isinstance(value, dict) or not (fields is None or isinstance(fields, list) and all(isinstance(f, str) for f in fields)):
        raise InvalidInvocation("embed.items: an item must have a value, which is an object, and may have a list of fields")
    return value, fields


def _list(texts: dict[str, Any], name: str, kind: type) -> list[Any]:
    found = texts.get(name) or []
    if not isinstance(found, list) or not all(isinstance(value, kind) for value in found):
        raise InvalidInvocation(f"embed.{name}: must be a list of {kind.__name__}")
    return found


def load_index(config: Config) -> Index | None:
    """Loads the embedding function that the configuration file names; None if the file has no
    store.index."""
    asked = config.store.get("index")
    if not asked:
        return None
    embed, dims, fields = asked.get("embed"), asked.get("dims"), asked.get("fields") or ["$"]
    if not isinstance(embed, str) or not isinstance(dims, int) or dims < 1 or not isinstance(fields, list) or not all(isinstance(f, str) for f in fields):
        raise UserError('store.index: must be as {"embed": "path/to/file.py:function", "dims": 384, "fields": ["$"]}')
    try:
        from langchain_core.embeddings import Embeddings
        from langgraph.store.base.embed import ensure_embeddings, get_text_at_path
    except ImportError as e:
        raise UserError("store.index: the repository's release of langgraph-checkpoint embeds nothing") from e
    own = embed.rpartition(":")[0].endswith(".py")
    value = load_variable(config.directory, "store.index.embed", embed) if own else embed
    if own and not callable(value) and not isinstance(value, Embeddings):
        raise UserError(f"store.index.embed: {embed} must be a function or an Embeddings object, and is of type {type(value).__name__}")
    try:
        return Index(ensure_embeddings(value), get_text_at_path, dims, fields)
    except (Exception, SystemExit) as e:
        raise UserError(f"store.index.embed: {embed} cannot be used: {' '.join(str(e).split())}") from e
