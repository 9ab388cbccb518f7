"""Turns "path/to/file.py:variable" into something that can be run."""

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import logging
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol

from .config import Config, UserError
from .framework import ServerRuntime
from .imports import failing_import, one_line

log = logging.getLogger("slipway_runtime")

# The name of graphs that their repository has not named. Events and traces show it.
_NAMELESS = "LangGraph"


@dataclass(frozen=True)
class Source:
    """What a graph id stands for: a graph, or a factory that is called for each invocation."""

    graph_id: str
    value: Any
    directory: Path  # that of the repository's configuration file
    transformers: Callable[[], Any] | None = None  # makes the stream transformers of a run

    @contextlib.asynccontextmanager
    async def open(self, config: dict[str, Any], runtime: ServerRuntime) -> AsyncIterator[PregelProtocol]:
        """Yields the graph. A factory's context manager stays open for as long."""
        async with contextlib.AsyncExitStack() as stack:
            value = self.value
            if _is_factory(value):
                value = await _call(value, config, runtime)
                if isinstance(value, contextlib.AbstractAsyncContextManager):
                    value = await stack.enter_async_context(value)
                elif isinstance(value, contextlib.AbstractContextManager):
                    value = stack.enter_context(value)
            yield as_graph(self.graph_id, value)

    @property
    def is_factory(self) -> bool:
        return _is_factory(self.value)


def load(config: Config) -> dict[str, Source]:
    """Imports every graph. The error has a line for each that cannot be had."""
    for directory in (config.directory, *config.dependencies):
        if str(directory) not in sys.path:
            sys.path.append(str(directory))
    sys.meta_path.append(_Packages([d.resolve() for d in config.dependencies if _is_package(d)]))
    sources, problems = {}, []
    for graph_id, path in config.graphs.items():
        try:
            sources[graph_id] = _load(config.directory, graph_id, path)
        except UserError as e:
            problems.append(str(e))
    if problems:
        raise UserError("\n".join(problems))
    return sources


def _is_package(dependency: Path) -> bool:
    """A directory that is a package itself, which no installer installs, is imported by its
    name."""
    return (dependency / "__init__.py").is_file() and not any((dependency / name).is_file() for name in ("pyproject.toml", "setup.py"))


class _Packages(MetaPathFinder):
    """Finds directories that are packages themselves. Their parents are not in sys.path:
    directories beside them would hide installed packages."""

    def __init__(self, directories: list[Path]) -> None:
        self._directories = {directory.name: directory for directory in directories}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        directory = self._directories.get(fullname)
        if directory is None:
            return None
        return importlib.util.spec_from_file_location(fullname, directory / "__init__.py", submodule_search_locations=[str(directory)])


def _load(directory: Path, graph_id: str, path: str) -> Source:
    module, value = _import_variable(directory, f"graph {graph_id!r}", path)
    transformers = getattr(module, "stream_transformers", None)
    if transformers is not None and not callable(transformers):
        log.warning("graph %r: stream_transformers is ignored, because it is not a function that returns a list", graph_id)
        transformers = None
    source = Source(graph_id, value, directory, transformers)
    return source if source.is_factory else replace(source, value=as_graph(graph_id, value))


def load_variable(directory: Path, what: str, path: str) -> Any:
    """Imports what the configuration file calls something, "path/to/file.py:variable"."""
    return _import_variable(directory, what, path)[1]


def _import_variable(directory: Path, what: str, path: str) -> tuple[ModuleType, Any]:
    target, _, variable = path.rpartition(":")
    try:
        if "/" in target or target.endswith(".py"):
            module = _import_file(directory, what, target)
        else:
            module = importlib.import_module(target)
    except UserError:
        raise
    except SyntaxError as e:
        file = _relative(directory, e.filename or target)
        raise UserError(f"{what}: {file}, line {e.lineno}: {type(e).__name__}: {e.msg}") from e
    except (Exception, SystemExit) as e:
        module = failing_import(e)
        place = (place_of(directory, e) or target) + (f", in the import of {module}" if module else "")
        raise UserError(f"{what}: {place}: {type(e).__name__}: {one_line(e) or _source_of(directory, e)}") from e
    try:
        return module, getattr(module, variable)
    except AttributeError as e:
        others = [name for name, value in vars(module).items() if not name.startswith("_") and _is_own_graph(module, value)]
        known = f"; it has {', '.join(repr(name) for name in others[:8])}" if others else ""
        raise UserError(f"{what}: {target} has no variable {variable!r}{known}") from e


def _import_file(directory: Path, what: str, target: str) -> ModuleType:
    file = (directory / target).resolve()
    if file.suffix in (".js", ".ts", ".mjs", ".mts", ".cjs", ".cts", ".tsx", ".jsx"):
        raise UserError(f"{what}: {target} is a JavaScript file; the Python runtime hosts Python graphs only")
    if not file.is_file():
        raise UserError(f"{what}: there is no file {target!r}")
    name = _module_name(directory, file)
    if "." in name:
        # Its package may import the file itself. A package that cannot be imported is no obstacle
        # for a file that does not need it.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name.rpartition(".")[0])
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{what}: {target!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _module_name(directory: Path, file: Path) -> str:
    """The name by which the repository's other modules import the file, because checkpoints name
    the classes in it by module: it must be the same in every process. Where an installed package
    has the first part of that name, one that nothing else has."""
    parts = file.relative_to(directory).with_suffix("").parts if file.is_relative_to(directory) else (file.stem,)
    if parts == ("__init__",):
        return "slipway_graph_root"  # a package whose directory has no name that is the same everywhere
    if not all(part.isidentifier() for part in parts):
        return "slipway_graph_" + "_".join("".join(c if c.isalnum() else "_" for c in part) for part in parts)
    try:
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        spec = None
    places = [spec.origin] if spec and spec.origin else list(spec.submodule_search_locations or []) if spec else []
    if any(not Path(place).resolve().is_relative_to(directory) for place in places):
        return "slipway_graph_" + "_".join(parts)
    return ".".join(parts)


def as_graph(graph_id: str, value: Any) -> PregelProtocol:
    if isinstance(value, StateGraph):
        try:
            value = value.compile()
        except ValueError as e:
            raise UserError(f"graph {graph_id!r}: the graph cannot be compiled: {one_line(e)}") from e
    if isinstance(value, Pregel) and value.name == _NAMELESS:
        return value.copy({"name": graph_id})
    if isinstance(value, PregelProtocol):
        return value
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    raise UserError(f"graph {graph_id!r}: a graph, or a function that returns one, was expected, not {kind}")


def _is_own_graph(module: ModuleType, value: Any) -> bool:
    return isinstance(value, (PregelProtocol, StateGraph)) or (inspect.isfunction(value) and value.__module__ == module.__name__)


def _is_factory(value: Any) -> bool:
    return callable(value) and not isinstance(value, (PregelProtocol, StateGraph, type))


async def _call(factory: Callable[..., Any], config: dict[str, Any], runtime: ServerRuntime) -> Any:
    arguments: dict[str, Any] = {}
    positional = []
    parameters = [p for p in inspect.signature(factory).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for parameter in parameters:
        kind = _kind(parameter)
        if _takes_runtime(parameter, kind, alone=len(parameters) == 1):
            value: Any = runtime
        elif parameter.name == "config" or "RunnableConfig" in kind or (parameter.default is parameter.empty and not positional and not arguments):
            value = config
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            arguments[parameter.name] = value
    if inspect.iscoroutinefunction(factory):
        return await factory(*positional, **arguments)
    value = await asyncio.to_thread(factory, *positional, **arguments)
    return await value if inspect.isawaitable(value) else value


def _kind(parameter: inspect.Parameter) -> str:
    return str(getattr(parameter.annotation, "__name__", parameter.annotation))


def _takes_runtime(parameter: inspect.Parameter, kind: str, *, alone: bool) -> bool:
    """The framework's own server goes by the annotation. It gives the only parameter of a factory
    the config if that is annotated with another class, such as the runtime that nodes get."""
    if "ServerRuntime" in kind or kind in ("_ExecutionRuntime", "_ReadRuntime"):
        return True
    if alone and parameter.annotation is not parameter.empty:
        return False
    return parameter.name == "runtime" or "Runtime" in kind


def warn_of_own_checkpointer(graph_id: str, graph: PregelProtocol) -> None:
    if getattr(graph, "checkpointer", None) not in (None, True):
        log.warning("graph %r: its own checkpointer is replaced by the platform's", graph_id)


def place_of(directory: Path, error: BaseException) -> str:
    """The innermost line of the repository's own code that an error comes from, or ""."""
    frame = _own_frame(directory, error)
    return f"{_relative(directory, frame.filename)}, line {frame.lineno}" if frame else ""


def _source_of(directory: Path, error: BaseException) -> str:
    """The text of that line, or "". It tells what an assertion without a message asserts."""
    frame = _own_frame(directory, error)
    return (frame.line or "") if frame else ""


def _own_frame(directory: Path, error: BaseException) -> traceback.FrameSummary | None:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_relative_to(directory) and "site-packages" not in file.parts:
            return frame
    return None


def _relative(directory: Path, filename: str) -> str:
    file = Path(filename)
    return str(file.relative_to(directory)) if file.is_relative_to(directory) else filename
