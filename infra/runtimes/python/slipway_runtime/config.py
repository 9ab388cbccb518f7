"""Reads the framework configuration file."""

import json
from dataclasses import dataclass
from pathlib import Path

# The second is the public framework's own name of the file; repositories deploy as they are.
DEFAULT_NAMES = ("framework.json", "langgraph.json")
# What this runtime does not do. The build refuses these keys, too; an image that was built elsewhere is not served without them either.
_NOT_SERVED = ("auth", "http", "store", "checkpointer", "encryption", "ui")


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
    refused = [name for name in _NOT_SERVED if fields.get(name)]
    if refused:
        raise UserError("\n".join(f"{file}: {name}: is not served yet, and the agent is not served without it" for name in refused))
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
