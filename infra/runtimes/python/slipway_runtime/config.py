"""Reads the framework configuration file."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The second is the public framework's own name of the file; repositories deploy as they are.
DEFAULT_NAMES = ("framework.json", "langgraph.json")
# The keys that the platform must do something for. A file with one of them is refused unless the
# platform says that it does so: an image that was built elsewhere is not served without what its
# repository asks for either. A key that no format has asks for nothing.
_ASKED = ("auth", "checkpointer", "encryption", "http", "package", "priority", "project_root", "store", "ui", "ui_config", "webhooks")
# The platform sets it to the authentication that it asks about every request.
AUTH_VARIABLE = "SLIPWAY_AUTH"
# The platform sets it to the encryption with which it has everything encrypted that it stores.
ENCRYPTION_VARIABLE = "SLIPWAY_ENCRYPTION"
# The platform sets it to the other keys that it has read from the file and does what they ask for,
# with spaces between them.
KEYS_VARIABLE = "SLIPWAY_KEYS"
# The public server takes keys from these variables, too.
_SETTINGS = tuple(
    f"{word}_{name}" for word in ("LANGGRAPH", "FRAMEWORK")
    for name in ("AUTH", "HTTP", "STORE", "CHECKPOINTER", "ENCRYPTION", "PRIORITY", "WEBHOOKS", "UI", "UI_CONFIG", "CONFIG", "AES_KEY", "AES_JSON_KEYS")
)


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
    # auth is the import path of the repository's own authentication, None for none.
    auth: str | None = None
    # encryption is the import path of the repository's own encryption, None for none.
    encryption: str | None = None
    # http is the key http, of which the runtime serves app.
    http: dict[str, Any] = field(default_factory=dict)
    # store is the key store, of which the runtime serves index.
    store: dict[str, Any] = field(default_factory=dict)


def read_config(path: str | None) -> Config:
    file = Path(path) if path else _usual_file()
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
    _refuse(file, fields)
    directory = file.resolve().parent
    paths = {graph_id: _import_path(file, graph_id, value) for graph_id, value in graphs.items()}
    wanted = fields.get("dependencies")
    dependencies = [directory / d for d in wanted if isinstance(d, str)] if isinstance(wanted, list) else []
    auth = _asked(file, fields, "auth", AUTH_VARIABLE, "about every request")
    encryption = _asked(file, fields, "encryption", ENCRYPTION_VARIABLE, "to encrypt")
    return Config(directory, paths, [d for d in dependencies if d.is_dir()], auth, encryption, fields.get("http") or {}, fields.get("store") or {})


def _asked(file: Path, fields: dict[str, Any], name: str, variable: str, what: str) -> str | None:
    """The repository's own authentication or encryption. It is run only if the platform says that
    it will ask exactly that one."""
    value, asked = fields.get(name), os.environ.get(variable) or None
    if not _asks(value):
        if asked is not None:
            raise UserError(f"{file}: {name}: the platform asks {asked!r} {what}, and the file names none")
        return None
    path = value.get("path") if isinstance(value, dict) else None
    if path != asked:
        raise UserError(f"{file}: {name}.path: the platform asks {asked!r} {what}, not {path!r}")
    return asked


def _usual_file() -> Path:
    found = [Path(name) for name in DEFAULT_NAMES if os.path.lexists(name)]
    if len(found) == 2 and not _same(*found):
        raise UserError(f"there are both {found[0]} and {found[1]}, and they differ: name the one that counts with --config, or keep one")
    return found[0] if found else Path(DEFAULT_NAMES[0])


def _same(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _refuse(file: Path, fields: dict[str, object]) -> None:
    """Refuses by name what would be missing, also in other letters, such as "Auth": an agent is
    never served without what its repository asks for."""
    served = (*os.environ.get(KEYS_VARIABLE, "").split(), *(n for n, variable in (("auth", AUTH_VARIABLE), ("encryption", ENCRYPTION_VARIABLE)) if os.environ.get(variable)))
    refused = [f"{file}: {name}: is not served, and the agent is not served without it" for name in sorted(fields) if name.strip().lower() in _ASKED and name not in served and _asks(fields[name])]
    for name in _SETTINGS:
        if os.environ.get(name):
            refused.append(f"the environment variable {name}: is not read here, and the agent is not served without what it asks for")
    if refused:
        raise UserError("\n".join(refused))


def _asks(value: object) -> bool:
    return value is not None and value is not False and value not in ([], {}) and not (isinstance(value, str) and not value.strip())


def _import_path(file: Path, graph_id: str, value: object) -> str:
    path = value.get("path") if isinstance(value, dict) else value
    module, _, variable = path.rpartition(":") if isinstance(path, str) else ("", "", "")
    if not module or not variable:
        raise UserError(f'{file}: graphs.{graph_id} must be "path/to/file.py:variable"')
    return path
