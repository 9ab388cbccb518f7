"""The operations run and update_state."""

import asyncio
import contextlib
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import LangChainTracer
from langgraph.constants import END, START
from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol
from langgraph.store.base import BaseStore
from langsmith.utils import tracing_is_enabled

from .bridge import Outlet
from .checkpointer import DataError
from .encode import encode
from .identify import identify_result, identify_update
from .framework import ExecutionRuntime, ReadRuntime, located, named, stream_options, translated
from .invocation import Invocation, Update
from .loader import Source, place_of
from .loopback import reaching
from .recorder import Recorder
from .transformers import SHOWN, Transformers
from .unfinished import Unfinished

log = logging.getLogger("slipway_runtime")

INTERRUPTED = "__interrupt__"
INPUT = "__input__"
# Modes that the framework streams by itself; events come from its callbacks.
_MODES = ("values", "updates", "messages", "custom", "debug", "tasks", "checkpoints", "tools")


class Run:
    """One invocation of a graph."""

    def __init__(self, source: Source, invocation: Invocation, store: BaseStore | None, outlet: Outlet) -> None:
        self._source = source
        self._invocation = invocation
        self._store = store
        self._outlet = outlet
        # Of runs that show messages.
        self._unfinished: Unfinished | None = None
        # Of graphs whose checkpoints the server keeps.
        self._recorder: Recorder | None = None
        # Of graphs whose transformers make something for clients.
        self._transformers: Transformers | None = None

    @property
    def _shows_messages(self) -> bool:
        return any(mode in ("messages", "messages-tuple") for mode in self._invocation.stream_modes)

    async def execute(self) -> None:
        """Answers the invocation. A graph that fails is an error event; only being cancelled ends
        this otherwise."""
        try:
            operation = self._update if self._invocation.operation == "update_state" else self._run
            with reaching(self._invocation.server_url, self._invocation.user, f"{self._invocation.thread_id}/{self._invocation.run_id}"):
                async with self._open() as graph:
                    await operation(graph)
        except asyncio.CancelledError as e:
            if asyncio.current_task().cancelling():
                raise
            self._fail(e)  # it comes from the graph: nobody has cancelled the run
        except (Exception, SystemExit, KeyboardInterrupt) as e:
            self._fail(e)
        finally:
            if self._recorder is not None:
                self._recorder.checkpointer.close()

    def _fail(self, error: BaseException) -> None:
        try:
            message = str(error)
        except Exception as e:
            message = f"the text of the error cannot be made: {type(e).__name__}"
        # A filter by level or run finds the first line only, so that line also tells the place.
        place = place_of(self._source.directory, error)
        log.exception("graph %r, run %s%s: %s: %s", self._invocation.graph, self._invocation.run_id, f", {place}" if place else "",
                      type(error).__name__, " ".join(message.split()))
        self._outlet.emit("error", encode({"error": type(error).__name__, "message": message}))

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[PregelProtocol]:
        invocation = self._invocation
        if invocation.operation == "run":
            runtime: Any = ExecutionRuntime(access_context="threads.create_run", store=self._store, context=invocation.context, user=invocation.user)
        else:
            runtime = ReadRuntime(access_context="threads.update", store=self._store, user=invocation.user)
        async with self._source.open(invocation.run_config(), runtime) as graph:
            yield graph

    def _attach(self, graph: PregelProtocol) -> tuple[PregelProtocol, Recorder | None]:
        """Gives the graph the platform's checkpointer and store for this invocation, with the state
        that the server keeps."""
        if not isinstance(graph, Pregel):
            return graph, None  # it runs elsewhere, and has its checkpoints there
        invocation = self._invocation
        self._recorder = recorder = Recorder(invocation.thread_id, self._outlet.emit)
        recorder.checkpointer.nested_metadata = invocation.nested_metadata()
        try:
            for c in invocation.checkpoints:
                recorder.checkpointer.seed(c.ns, c.id, c.parent_id, c.data)
            for w in invocation.writes:
                recorder.checkpointer.seed_writes(w.ns, w.checkpoint_id, w.task_id, w.data)
        except DataError as e:
            raise DataError(f"the stored checkpoint {invocation.checkpoint_id} cannot be read: {e}") from e
        update: dict[str, Any] = {"checkpointer": recorder.checkpointer, "config": _unaddressed(graph.config)}
        if self._store is not None:
            update["store"] = self._store
        return graph.copy(update), recorder

    async def _run(self, graph: PregelProtocol) -> None:
        invocation = self._invocation
        graph, recorder = self._attach(graph)
        given = invocation.command if invocation.command is not None else invocation.input
        config = invocation.run_config()
        if recorder is not None:
            joined = START not in graph.nodes and invocation.command is None and isinstance(given, dict)
            await self._apply_pending(graph, recorder, [u for u in invocation.pending if not (joined and u.as_node == INPUT)])
            if joined:
                given = _with_earlier_messages(given, [u.values for u in invocation.pending if u.as_node == INPUT])
            newest = recorder.checkpointer.newest("")
            if newest is not None and recorder.checkpointer.metadata(newest).get("run_id") == invocation.run_id:
                given = None  # an earlier attempt has taken it
                config["configurable"].pop("checkpoint_id", None)
            elif given is not None and invocation.command is None and "checkpoint_id" not in config["configurable"]:
                await self._keep_results(graph, recorder)
            recorder.checkpointer.superseded = invocation.superseded and "checkpoint_id" in config["configurable"]
        callbacks = _tracers(invocation.tracer)
        if recorder is not None and self._shows_messages:
            self._unfinished = Unfinished(graph, self._outlet.emit)
            callbacks.append(self._unfinished.structured)
        if callbacks:
            config["callbacks"] = callbacks
        if recorder is not None and SHOWN.issubset(invocation.stream_modes):
            self._transformers = Transformers.of(graph, self._source.transformers, self._outlet.emit, has_checkpoint=recorder.checkpointer.newest("") is not None)
        transforming = self._transformers.running() if self._transformers is not None else contextlib.nullcontext()
        async with transforming, _finishing(recorder, graph), contextlib.aclosing(self._chunks(graph, given, config, recorder)) as chunks:
            async for ns, mode, payload in chunks:
                if self._transformers is not None:
                    await self._transformers.take(ns, mode, payload)
                self._show(ns, mode, payload, recorder)
                if self._transformers is not None and recorder is not None and recorder.has_sent:
                    self._transformers.begin()
                if self._outlet.full:
                    await self._outlet.drain()

    def _chunks(self, graph: PregelProtocol, given: Any, config: dict[str, Any], recorder: Recorder | None) -> AsyncGenerator[tuple]:
        invocation = self._invocation
        modes = {"messages" if mode == "messages-tuple" else mode for mode in invocation.stream_modes}
        # Without checkpoints, values are what makes the state.
        modes = modes & {*_MODES} | ({"checkpoints"} if recorder else {"values"})
        if self._unfinished is not None:
            modes = modes | {"tasks"}  # tells when a step has finished
        if self._transformers is not None:
            modes = modes | self._transformers.modes
        context = invocation.context_for(getattr(graph, "context_schema", None))
        options = stream_options(modes, invocation.durability if recorder is not None else None, context)
        if invocation.interrupt_before:
            options["interrupt_before"] = invocation.interrupt_before
        if invocation.interrupt_after:
            options["interrupt_after"] = invocation.interrupt_after
        if "events" not in invocation.stream_modes:
            return translated(graph.astream(given, config, **options), modes)
        return translated(self._events(graph, given, config, options), modes)

    async def _events(self, graph: Any, given: Any, config: dict[str, Any], options: dict[str, Any]) -> AsyncGenerator[tuple]:
        """Streams the framework's callback events. Among those, the graph's own chunks are what it
        streams without."""
        async for event in graph.astream_events(given, config, version="v2", **options):
            if event["event"] == "on_chain_stream" and event["run_id"] == self._invocation.run_id:
                yield event["data"]["chunk"]
            else:
                yield (), "events", event

    def _show(self, ns: tuple[str, ...], mode: str, payload: Any, recorder: Recorder | None) -> None:
        invocation = self._invocation
        if mode == "checkpoints" and recorder is not None:
            recorder.describe(payload)
        if mode == "updates":
            identify_update(payload)
        if mode == "tasks":
            identify_result(payload)
        if mode == "tasks" and self._unfinished is not None:
            self._unfinished.finish(ns, payload)
        if ns and not invocation.stream_subgraphs:
            return
        if mode == "updates" and not ns and isinstance(payload, Mapping) and INTERRUPTED in payload:
            self._outlet.emit("interrupt", encode([named(question) for question in payload[INTERRUPTED]]))
            return
        if mode == "messages" and self._unfinished is not None:
            self._unfinished.show(ns, payload)
        if mode in invocation.stream_modes or mode == "messages" or recorder is None:
            self._outlet.emit("|".join((mode, *ns)), encode(located(mode, payload)))

    async def _apply_pending(self, graph: Pregel, recorder: Recorder, pending: list[Update]) -> None:
        """Brings what was shown and never saved into the graph's state, through its own
        reducers."""
        if pending:
            await self._keep_results(graph, recorder)
        for update in pending:
            if not await self._try(graph, update):
                log.warning("run %s: an update that was shown as that of node %r is lost, because the graph takes it in no way",
                            self._invocation.run_id, update.as_node)
        if pending:
            await recorder.finish(graph)

    async def _keep_results(self, graph: Pregel, recorder: Recorder) -> None:
        """Brings into the state what tasks have returned beside one that waits or was stopped. The
        framework drops it with new input, and with a change of the state."""
        newest = recorder.checkpointer.newest("")
        if newest is None or not newest.writes:
            return
        config = self._invocation.state_config()
        try:
            state = await graph.aget_state(config)
            if any(task.result is not None and task.name != START for task in state.tasks):
                await _update_state(graph, config, [[Update(None, END)]])
        except Exception as e:
            # The graph itself refuses it: no input would come past it.
            log.warning("run %s: what tasks have returned at checkpoint %s is left out, because the graph does not take it: %s: %s",
                        self._invocation.run_id, newest.id, type(e).__name__, e)
            recorder.checkpointer.forget_returned(newest)
        await recorder.finish(graph)

    async def _try(self, graph: Pregel, update: Update) -> bool:
        """A node that is no longer there, or refuses the update, leaves it to the graph to say
        whose it is; else it counts as input. An input goes through the node that spreads it over
        the state: one that waits for its run would not outlive what comes next."""
        nodes = (START, INPUT) if update.as_node == INPUT else (update.as_node, None, START, INPUT)
        for as_node in dict.fromkeys(nodes):
            try:
                await _update_state(graph, self._invocation.state_config(), [[Update(update.values, as_node)]])
                return True
            except Exception as e:
                log.info("run %s: update as %r: %s: %s", self._invocation.run_id, as_node, type(e).__name__, e)
        return False

    async def _update(self, graph: PregelProtocol) -> None:
        graph, recorder = self._attach(graph)
        if recorder is None:
            raise TypeError(f"graph {self._invocation.graph!r} keeps its state elsewhere: it cannot be changed here")
        await self._apply_pending(graph, recorder, self._invocation.pending)
        async with _finishing(recorder, graph):
            await _update_state(graph, self._invocation.state_config(), self._invocation.supersteps)


def _tracers(wanted: Mapping[str, Any]) -> list[BaseCallbackHandler]:
    """The tracer of a run whose client says where it is traced. Without one the framework makes
    its own."""
    if not wanted or not tracing_is_enabled():
        return []
    return [LangChainTracer(project_name=wanted.get("project_name"), example_id=wanted.get("example_id"))]


def _with_earlier_messages(given: dict[str, Any], earlier: list[Any]) -> dict[str, Any]:
    """Returns an input with the messages of inputs before it that no run has answered. A function
    of the functional API keeps only what it returns, so its next input is the one place for
    them."""
    lists = [value["messages"] for value in (*earlier, given) if isinstance(value, dict) and isinstance(value.get("messages"), list)]
    return {**given, "messages": [message for messages in lists for message in messages]} if isinstance(given.get("messages"), list) else given


# The members of a configuration about one run, or one checkpoint. Each call to the graph sets them
# again.
_ADDRESS = {"configurable": ("run_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"), "metadata": ("run_id", "run_attempt")}


def _unaddressed(config: RunnableConfig | None) -> RunnableConfig | None:
    """Returns the configuration that is bound to a graph without what addresses a run or a
    checkpoint.

    A factory may bind the run's whole configuration to its graph. The framework merges it into
    every call, so a change of the state would be saved under the run's id, and the framework would
    take the run for one that goes on: it ignores the input of such a run.
    """
    if config is None:
        return None
    bound: dict[str, Any] = {key: value for key, value in config.items() if key != "run_id"}
    for part, names in _ADDRESS.items():
        if part in bound:
            bound[part] = {key: value for key, value in bound[part].items() if key not in names}
    return bound


@contextlib.asynccontextmanager
async def _finishing(recorder: Recorder | None, graph: PregelProtocol) -> AsyncIterator[None]:
    """Sends what is left of the checkpoints when a graph has ended, or failed; of one that was
    stopped nobody wants them."""
    try:
        yield
    except (Exception, SystemExit, KeyboardInterrupt):
        if recorder is not None:
            try:
                await recorder.finish(graph)
            except Exception:
                log.exception("the state in which the graph failed cannot be told")
        raise
    if recorder is not None:
        await recorder.finish(graph)


async def _update_state(graph: Pregel, config: dict[str, Any], supersteps: list[list[Update]]) -> None:
    await graph.abulk_update_state(config, [[update.state_update() for update in step] for step in supersteps])


# Warnings that a newer way exists are for the graph's author, not for each run's log.
warnings.filterwarnings("ignore", message=".*`config_schema` is deprecated.*")
