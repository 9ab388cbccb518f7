"""The JSON form of an invocation, and what it means to the framework."""

import base64
import binascii
import dataclasses
import uuid
from dataclasses import dataclass
from typing import Any

import orjson
from langgraph.types import Command, Send, StateUpdate

OPERATIONS = ("run", "update_state", "describe")
# QUESTIONS are operations too, for the repository's own authentication, its index of the store and
# its encryption.
QUESTIONS = ("authenticate", "authorize", "embed", "encrypt", "decrypt")
# Each checkpoint is sent, also to an earlier server, which passes on that a client wants only the
# checkpoints of the end.
DURABILITIES = {"async": "async", "sync": "sync", "exit": "async"}
# The namespace of a configuration's keys that are the framework's own, which no client may set.
_INTERNAL = "__pregel_"
_CONFIG_FIELDS = ("tags", "recursion_limit", "max_concurrency", "run_name")
# The framework's own names for the user of a run. The platform alone sets them: values that a
# client sends under these names are dropped.
_USER = "langgraph_auth_"


class InvalidInvocation(Exception):
    """A body that is not an invocation, as one sentence."""


@dataclass(frozen=True)
class Checkpoint:
    id: str
    parent_id: str | None
    ns: str
    data: bytes


@dataclass(frozen=True)
class Writes:
    checkpoint_id: str
    ns: str
    task_id: str
    data: bytes


@dataclass(frozen=True)
class Update:
    """A change of the state as if a node had returned it. No node leaves it to the graph to say
    which."""

    values: Any
    as_node: str | None

    def state_update(self) -> StateUpdate:
        return StateUpdate(self.values, self.as_node)


class User(dict[str, Any]):
    """Who asks for a run, as graphs read it: by key, and by attribute."""

    def __init__(self, fields: dict[str, Any]) -> None:
        identity = str(fields.get("identity") or "")
        super().__init__({"display_name": identity, "is_authenticated": True, "permissions": [], **fields, "identity": identity})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Invocation:
    operation: str
    graph: str
    thread_id: str
    run_id: str
    attempt: int
    input: Any
    command: Command | None
    checkpoint_id: str | None
    checkpoints: list[Checkpoint]
    writes: list[Writes]
    # Whether the thread has moved past the checkpoint.
    superseded: bool
    pending: list[Update]
    config: dict[str, Any]
    context: Any
    assistant_id: str
    # metadata is the run's own, and its assistant's and thread's.
    metadata: dict[str, Any]
    user: "User | None"
    # own_users says that the repository's own authentication lets users in.
    own_users: bool
    # headers are those of the request that asked for the run, without credentials, by their names
    # in lower case, and the place in a trace at which its client sees the run.
    headers: dict[str, Any]
    # tracer says where the run is traced, if its process traces.
    tracer: dict[str, Any]
    stream_modes: list[str]
    stream_subgraphs: bool
    interrupt_before: Any
    interrupt_after: Any
    durability: str
    supersteps: list[list[Update]]
    server_url: str

    def run_config(self) -> dict[str, Any]:
        """The configuration of a run, whose id is ours, so that whatever is traced is found under
        it."""
        config = self.state_config()
        for part in ("configurable", "metadata"):
            config[part]["run_id"] = self.run_id
        config["metadata"]["run_attempt"] = self.attempt
        try:
            config["run_id"] = uuid.UUID(self.run_id)
        except ValueError:
            pass  # the framework makes one up
        return config

    def state_config(self) -> dict[str, Any]:
        """The configuration of changes that belong to no run: a checkpoint with the run's id means
        that the run has taken its input."""
        config: dict[str, Any] = {name: self.config[name] for name in _CONFIG_FIELDS if self.config.get(name) is not None}
        given = self.config.get("configurable") or {}
        names = {"thread_id": self.thread_id, "graph_id": self.graph, **({"assistant_id": self.assistant_id} if self.assistant_id else {})}
        config["configurable"] = {key: value for key, value in given.items() if not key.startswith((_INTERNAL, _USER))} | self.headers | names
        config["metadata"] = {**self.metadata, **(self.config.get("metadata") or {}), **names}
        if self.user is not None:
            config["configurable"] |= {_USER + "user": self.user, _USER + "user_id": self.user.identity, _USER + "permissions": self.user.permissions}
            if self.own_users:  # the framework's server names the user here, too
                config["configurable"]["user_id"] = config["configurable"].get("user_id") or self.user.identity
        named = config["configurable"]
        ns, within = named.get("checkpoint_ns"), named.get("checkpoint_id")
        # The map of a subgraph's checkpoint names the graph's checkpoint, at which a run begins.
        if ns:
            named["checkpoint_id"] = (named.get("checkpoint_map") or {}).get("")
        # A checkpoint to go on from is addressed only if it is the one that the state holds, and
        # nothing comes before the run.
        addressed = named.get("checkpoint_id")
        if not addressed or addressed != self.checkpoint_id or self.pending:
            for key in ("checkpoint_id", "checkpoint_map"):
                named.pop(key, None)
        if self.operation == "run":
            named.pop("checkpoint_ns", None)
        elif ns and any(c.ns == ns and c.id == within for c in self.checkpoints):
            named["checkpoint_id"] = within
        elif ns:
            named.pop("checkpoint_id", None)
        if self.context is not None and isinstance(self.context, dict):
            for key, value in self.context.items():
                if not key.startswith((_INTERNAL, _USER)):
                    config["configurable"].setdefault(key, value)
        return config

    def assistant_config(self) -> dict[str, Any]:
        """The configuration of an assistant, without a thread."""
        config = self.state_config()
        for part in ("configurable", "metadata"):
            config[part].pop("thread_id")
        return config

    def nested_metadata(self) -> dict[str, Any]:
        """The objects and lists of the metadata that graphs read."""
        metadata = self.state_config()["metadata"]
        return {key: value for key, value in metadata.items() if isinstance(value, (dict, list)) and not key.startswith("__")}

    def context_for(self, schema: type | None) -> Any:
        """The run's context. Clients that know only configurable values have them passed as the
        context that the graph declares."""
        if self.context or schema is None:
            return self.context
        names = _fields(schema)
        given = self.config.get("configurable") or {}
        # Even if there is nothing: only an object makes the schema's defaults.
        return {name: given[name] for name in names if name in given}


def _fields(schema: type) -> list[str]:
    if dataclasses.is_dataclass(schema):
        return [f.name for f in dataclasses.fields(schema)]
    return list(getattr(schema, "model_fields", None) or getattr(schema, "__annotations__", {}))


def question_of(body: bytes) -> dict[str, Any] | None:
    """The question that a body is, None for an invocation of a graph."""
    if not any(f'"{name}"'.encode() in body for name in QUESTIONS):
        return None
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None  # parse says what is wrong with it
    return fields if isinstance(fields, dict) and fields.get("operation") in QUESTIONS else None


def parse(body: bytes, own_users: bool = False) -> Invocation:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        raise InvalidInvocation(f"the body is not valid JSON: {e}") from e
    if not isinstance(fields, dict):
        raise InvalidInvocation("the body is not a JSON object")
    state = _typed(fields, "state", dict) or {}
    kept = _typed(state, "checkpoint", dict) or {}
    invocation = Invocation(
        operation=_typed(fields, "operation", str) or OPERATIONS[0],
        graph=_typed(fields, "graph", str) or "",
        thread_id=_typed(fields, "thread_id", str) or str(uuid.uuid4()),
        run_id=_typed(fields, "run_id", str) or str(uuid.uuid4()),
        attempt=_typed(fields, "attempt", int) or 1,
        input=fields.get("input"),
        command=_command(_typed(fields, "command", dict)),
        checkpoint_id=_typed(kept, "id", str),
        checkpoints=[
            Checkpoint(_required(c, "id"), _typed(c, "parent_id", str), _typed(c, "ns", str) or "", _data(c)) for c in _list(kept, "checkpoints")
        ],
        writes=[
            Writes(_required(w, "checkpoint_id"), _typed(w, "ns", str) or "", _required(w, "task_id"), _data(w)) for w in _list(kept, "writes")
        ],
        superseded=_typed(kept, "superseded", bool) or False,
        pending=[_update(u) for u in _list(state, "pending")],
        config=_typed(fields, "config", dict) or {},
        context=fields.get("context"),
        assistant_id=_typed(fields, "assistant_id", str) or "",
        metadata=_typed(fields, "metadata", dict) or {},
        headers=(_typed(fields, "headers", dict) or {}) | (_typed(fields, "trace", dict) or {}),
        tracer=_typed(fields, "tracer", dict) or {},
        user=User(user) if (user := _typed(fields, "user", dict)) else None,
        own_users=own_users,
        stream_modes=[mode for mode in _typed(fields, "stream_mode", list) or ["updates"] if isinstance(mode, str)],
        stream_subgraphs=fields.get("stream_subgraphs") is True,
        interrupt_before=fields.get("interrupt_before"),
        interrupt_after=fields.get("interrupt_after"),
        durability=_durability(fields),
        supersteps=[[_update(u) for u in _list(s, "updates")] for s in _list(fields, "supersteps")],
        server_url=_typed(fields, "server_url", str) or "",
    )
    if invocation.operation not in OPERATIONS:
        raise InvalidInvocation(f"operation: must be one of {', '.join(OPERATIONS)}")
    for name in ("configurable", "metadata"):
        _typed(invocation.config, name, dict)
    return invocation


def _durability(fields: dict[str, Any]) -> str:
    asked = _typed(fields, "durability", str) or "async"
    if asked not in DURABILITIES:
        raise InvalidInvocation(f"durability: must be one of {', '.join(DURABILITIES)}")
    return DURABILITIES[asked]


def _typed(fields: dict[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidInvocation(f"{name}: must be of type {kind.__name__}")
    return value


def _required(fields: dict[str, Any], name: str) -> str:
    value = _typed(fields, name, str)
    if not value:
        raise InvalidInvocation(f"{name}: is missing")
    return value


def _list(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = _typed(fields, name, list) or []
    if not all(isinstance(item, dict) for item in items):
        raise InvalidInvocation(f"{name}: must be a list of objects")
    return items


def _data(fields: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(_typed(fields, "data", str) or "", validate=True)
    except binascii.Error as e:
        raise InvalidInvocation("data: is not base64") from e


def _update(fields: dict[str, Any]) -> Update:
    command = _command(_typed(fields, "command", dict))
    return Update(command if command is not None else fields.get("values"), _typed(fields, "as_node", str) or None)


def _command(fields: dict[str, Any] | None) -> Command | None:
    if not fields:
        return None
    options: dict[str, Any] = {}
    if (update := fields.get("update")) is not None:
        # Pairs of channel and value stand for updates that name a channel more than once.
        pairs = isinstance(update, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in update)
        options["update"] = [tuple(pair) for pair in update] if pairs else update
    if (resume := fields.get("resume")) is not None:
        options["resume"] = resume
    if (goto := fields.get("goto")) is not None:
        targets = [_target(target) for target in (goto if isinstance(goto, list) else [goto])]
        options["goto"] = targets if isinstance(goto, list) else targets[0]
    return Command(**options) if options else None


def _target(target: Any) -> str | Send:
    if isinstance(target, str):
        return target
    if isinstance(target, dict) and isinstance(target.get("node"), str):
        return Send(target["node"], target.get("input"))
    raise InvalidInvocation('goto: must name nodes, or be {"node": ..., "input": ...}')
