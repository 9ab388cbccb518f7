"""The operation describe: the JSON schemas of a graph, and the graph to draw."""

import contextlib
import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol
from pydantic import create_model

from .config import UserError
from .framework import ReadRuntime
from .invocation import Invocation
from .loader import Source

# To how many levels graphs within are drawn.
MAX_DEPTH = 10
log = logging.getLogger("slipway_runtime")


async def describe(source: Source, invocation: Invocation | None = None) -> dict[str, Any]:
    """The graph as the configuration of an invocation makes it; without an invocation, it is empty.
    A factory that needs more has no description; one that makes no graph is a UserError."""
    configured = {"configured": True} if source.is_factory else {}
    config: dict[str, Any] = {"configurable": {}, "metadata": {}} if invocation is None else invocation.assistant_config()
    runtime = ReadRuntime(access_context="assistants.read", store=None, user=invocation and invocation.user)
    try:
        async with source.open(config, runtime) as graph:
            return configured | _describe(graph, drawn=True)
    except UserError:
        raise
    except Exception as e:
        log.warning("graph %r has no description: %s: %s", source.graph_id, type(e).__name__, e)
        return configured | {"checkpoints": True}


def _describe(graph: PregelProtocol, drawn: bool) -> dict[str, Any]:
    parts: dict[str, Callable[[], Any]] = {"graph": lambda: _drawn(graph), "xray": lambda: _xray(_local(graph))} if drawn else {}
    if isinstance(graph, Pregel):
        parts |= {
            "input_schema": graph.get_input_jsonschema,
            "output_schema": graph.get_output_jsonschema,
            "state_schema": lambda: _state_schema(graph),
            "config_schema": lambda: _config_schema(graph),
            "context_schema": lambda: graph.get_context_jsonschema(),  # which older releases lack
        }
        if drawn:
            parts["subgraphs"] = lambda: {ns: _describe(sub, drawn=False) for ns, sub in graph.get_subgraphs(recurse=True)}
    found: dict[str, Any] = {"checkpoints": True} if drawn and isinstance(graph, Pregel) else {}
    for name, part in parts.items():
        try:
            with warnings.catch_warnings(), _typed_dicts():
                warnings.simplefilter("ignore")
                value = part()
        except Exception as e:  # types that have no schema
            log.debug("%s: %s: %s", name, type(e).__name__, e)
            continue
        if value:
            found[name] = value
    return found


def _drawn(graph: PregelProtocol, depth: int | bool = False) -> dict[str, Any]:
    """A drawing without the modules of the nodes, which the framework's own server shows to no
    client. The depth is not 0, which that server refuses if the graph is one of its graphs."""
    drawing = graph.get_graph(xray=depth).to_json()
    for node in drawing["nodes"]:
        if isinstance(data := node.get("data"), dict):
            data.pop("id", None)
    return drawing


def _xray(graph: PregelProtocol) -> list[dict[str, Any]]:
    """The graph as it is drawn with the graphs within, level by level, until there are no more."""
    drawings = [_drawn(graph)]
    while len(drawings) <= MAX_DEPTH and (deeper := _drawn(graph, len(drawings))) != drawings[-1]:
        drawings.append(deeper)
    return drawings[1:]


def _local(graph: PregelProtocol) -> PregelProtocol:
    """A copy whose drawing asks no other server: a graph of another server is a node like others.
    Its server would be asked from the loop of the graphs, and may be this one, which has no answer
    before the description has ended."""
    if not isinstance(graph, Pregel):
        return graph
    local = copy.copy(graph)
    local.get_subgraphs = lambda **options: ((ns, _local(sub)) for ns, sub in graph.get_subgraphs(**options) if isinstance(sub, Pregel))
    return local


@contextlib.contextmanager
def _typed_dicts() -> Iterator[None]:
    """Pydantic has no schema for the TypedDict of the standard library before Python 3.12, because
    that one keeps too little for checking values. A schema that is only shown needs no more than it
    keeps. A release of pydantic that is made otherwise is left as it is."""
    try:
        from pydantic._internal import _generate_schema
    except ImportError:
        _generate_schema = None
    supports = getattr(_generate_schema, "_SUPPORTS_TYPEDDICT", True)
    if supports:
        yield
        return
    _generate_schema._SUPPORTS_TYPEDDICT = True
    try:
        yield
    finally:
        _generate_schema._SUPPORTS_TYPEDDICT = supports


def _state_schema(graph: Pregel) -> dict[str, Any]:
    types = {name: graph.channels[name].UpdateType for name in graph.stream_channels_list if hasattr(graph.channels[name], "UpdateType")}
    fields: dict[str, Any] = {name: (of if _has_schema(of) else Any, None) for name, of in types.items()}
    return create_model(graph.get_name("State"), **fields).model_json_schema()


def _has_schema(of: Any) -> bool:
    """Whether pydantic can show a type. It takes NotRequired, which the middleware of agents uses,
    in a TypedDict only."""
    try:
        create_model("Value", value=(of, None)).model_json_schema()
    except Exception:
        return False
    return True


def _config_schema(graph: Pregel) -> dict[str, Any] | None:
    """The schema of a configuration's "configurable", which is what clients set."""
    schema = graph.config_schema(include=["configurable"]).model_json_schema()
    configurable = schema.get("properties", {}).get("configurable")
    if configurable is None:
        return None
    reference = configurable.get("$ref") or next((a["$ref"] for a in configurable.get("anyOf", ()) if "$ref" in a), "")
    definitions = schema.get("$defs", {})
    found = definitions.pop(reference.rpartition("/")[2], None)
    return {**found, **({"$defs": definitions} if definitions else {})} if found else configurable
