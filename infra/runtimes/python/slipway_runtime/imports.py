"""Says which installed module an error comes from. It imports nothing of the framework, because the
framework may be what cannot be imported."""

import sys
import traceback
from pathlib import Path
from types import TracebackType


def failing_import(error: BaseException) -> str:
    """The installed module that was being imported when the error was raised, or "" if other code
    raised the error. Such an error shows that installed releases do not fit each other."""
    module = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "<module>":
            module = frame.f_globals.get("__name__", "") if "site-packages" in Path(frame.f_code.co_filename).parts else ""
    return module


def explain_framework() -> None:
    """From now on, one sentence after the traceback also tells an error that ends the process while
    the framework is imported."""
    sys.excepthook = _explain


def _explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.__excepthook__(kind, error, trace)
    module = failing_import(error)
    if module and not module.startswith(__package__) and module != "__main__":
        print(f"the framework cannot be loaded, in the import of {module}: {kind.__name__}: {one_line(error)}", file=sys.stderr)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
