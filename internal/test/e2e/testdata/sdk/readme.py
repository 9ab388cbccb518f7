"""Runs a program that the README shows. Arguments: the agent's URL, the key, the transport, the
program's file."""

import sys
import textwrap
from pathlib import Path

from story import tell

found = {}
exec("async def readme(client):\n" + textwrap.indent(Path(sys.argv[4]).read_text(), "    "), found)
tell(found["readme"])
