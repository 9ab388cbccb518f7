"""JSON as the framework's clients expect it: messages and models as their fields, whatever else a
state holds as something readable."""

import base64
import dataclasses
import datetime
import decimal
import json
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


# Fragment stands for JSON that is encoded already.
Fragment = orjson.Fragment


def encode(value: Any) -> bytes:
    """Returns the value as JSON. Every value has a form, so that nothing an agent puts into its
    state can end a stream."""
    try:
        return orjson.dumps(value, default=_default, option=_OPTIONS)
    except TypeError:  # huge integers, lone surrogates, keys that are no scalars
        return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False).encode()


def _default(value: Any) -> Any:
    try:
        return _form(value)
    except Exception:  # of the value's own methods
        return _text(value)


def _text(value: Any) -> str:
    """Returns the value's own text, or that of every object, if its own fails."""
    try:
        return str(value)
    except Exception:
        return object.__repr__(value)


def _form(value: Any) -> Any:
    if isinstance(value, type):
        return repr(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump()
    if hasattr(value, "__fields__") and callable(dump := getattr(value, "dict", None)):  # models of pydantic 1, as messages were before core 0.3
        return dump()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": _text(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset, deque, tuple, list)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if hasattr(value, "node") and hasattr(value, "arg"):  # the framework's Send
        return {"node": value.node, "arg": value.arg}
    return str(value)


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Rebuilds a value from what the standard library encodes. above: the values that hold it."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if id(value) in above:
        return "[circular]"
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return {_plain(k if isinstance(k, str) else _text(k)): _plain(v, inside) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_plain(v, inside) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), inside) for f in dataclasses.fields(value)}
    try:
        return _plain(orjson.loads(orjson.dumps(value, default=_default, option=_OPTIONS)))
    except TypeError:
        return _plain(_default(value), inside)
