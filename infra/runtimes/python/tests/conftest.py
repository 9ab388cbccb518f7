import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True  # the examples are repositories: nothing is left in them

from harness import Agent  # found through the path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="session")
def example() -> Iterator:
    """Starts the runtime in an example repository, as it is."""
    started: dict[str, Agent] = {}

    def start(name: str) -> Agent:
        if name not in started:
            started[name] = Agent(EXAMPLES / f"python-{name}", PYTHONDONTWRITEBYTECODE="1").__enter__()
        return started[name]

    yield start
    for agent in started.values():
        agent.__exit__()
