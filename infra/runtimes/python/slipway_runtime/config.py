"""Reads the framework configuration file."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

# The second is the public framework's own name of the file; repositories deploy as they are.
DEFAULT_NAMES = ("framework.json", "langgraph.json")
# What the public format can configure of the public server, and has no meaning for this one.
_NOT_SERVED = ("auth", "http", "store", "checkpointer", "encryption", "ui")

log = logging.getLogger("slipway_runtime")


class UserError(Exception):
    """Something that the repository's owner can mend, as one sentence."""


@dataclass(frozen=True)
class Config:
    # directory is where the file is; paths in it are relative to it.
    directory: Path
    # graphs are the import paths by graph id.
    graphs: dict[str, str]
    # dependencies are the directories among them.
    dependencies: list[Path]


def read_config(path: str | None) -> Config:
    file = Path(path) if path else next((Path(n) for n in DEFAULT_NAMES if Path(n).is_file()), Path(DEFAULT_NAMES[0]))
    try:
        fields = json.loads(file.read_bytes())
    except OSError as e:
        raise UserError(f"the framework configuration file {str(file)!r} cannot be read: {e.strerror}") from e
    except ValueError as e:
        raise UserError(f"{file} is not valid JSON: {e}") from e
    if not isinstance(fields, dict):
        raise UserError(f"{file} is not a JSON object")
    graphs = fields.get("graphs")
    if not isinstance(graphs, dict) or not graphs:
        raise UserError(f'{file}: graphs must name at least one graph, as {{"agent": "path/to/file.py:variable"}}')
    for name in _NOT_SERVED:
        if fields.get(name):
            log.warning("%s: %s is not used: it belongs to another server", file, name)
    directory = file.resolve().parent
    paths = {graph_id: _import_path(file, graph_id, value) for graph_id, value in graphs.items()}
    wanted = fields.get("dependencies")
    dependencies = [directory / d for d in wanted if isinstance(d, str)] if isinstance(wanted, list) else []
    return Config(directory, paths, [d for d in dependencies if d.is_dir()])


def _import_path(file: Path, graph_id: str, value: object) -> str:
    path = value.get("path") if isinstance(value, dict) else value
    module, _, variable = path.rpartition(":") if isinstance(path, str) else ("", "", "")
    if not module or not variable:
        raise UserError(f'{file}: graphs.{graph_id} must be "path/to/file.py:variable"')
    return path
