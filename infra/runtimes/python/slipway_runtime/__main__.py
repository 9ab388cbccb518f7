"""Serves the graphs of a repository: python -m slipway_runtime [--config framework.json]
[--check]."""

import argparse
import contextlib
import logging
import os
import signal
import socket
import sys

import uvicorn

from . import loopback
from .app import Application, load_application
from .auth import Authentication, load_auth
from .bridge import GraphLoop
from .config import UserError, read_config
from .describe import describe
from .encode import encode
from .encryption import Cipher, load_encryption
from .index import Index, load_index
from .loader import Source, load, warn_of_own_checkpointer
from .server import Server

# GRACE is how many seconds running invocations have when the process is told to stop.
GRACE = 10
# IDLE is how many seconds an idle connection stays open. The caller must close it first, because a
# request that is sent while we close fails: the server does so after seconds, a load balancer of
# AWS after up to 4,000 s.
IDLE = 4100


def main() -> None:
    parser = argparse.ArgumentParser(prog="slipway_runtime", description="Hosts the graphs that framework.json names.")
    parser.add_argument("--config", help="the framework configuration file; by default framework.json, else langgraph.json")
    parser.add_argument("--check", action="store_true", help="load the graphs, write their description, and exit")
    arguments = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=_log_level(), format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        # The output of a module that is imported does not get between the lines of a description.
        with contextlib.redirect_stdout(sys.stderr) if arguments.check else contextlib.nullcontext():
            loopback.install()
            config = read_config(arguments.config)
            sources = load(config)
            auth = load_auth(config)
            encryption = load_encryption(config)
            graphs = GraphLoop()
            app = load_application(config, graphs)
            index = load_index(config)
            # A factory that makes no graph is found now, not by the first run.
            checked = {i: graphs.submit(describe(s)).result() for i, s in sources.items() if arguments.check or s.is_factory}
            if app is not None and not arguments.check:
                app.start()
    except UserError as e:
        print(e, file=sys.stderr, flush=True)
        _exit(1)
    if arguments.check:
        sys.stdout.buffer.write(encode({"graphs": checked}) + b"\n")
        _exit(0)
    _serve(sources, graphs, auth, app, index, encryption)


def _serve(sources: dict[str, Source], graphs: GraphLoop, auth: Authentication | None, app: Application | None, index: Index | None,
           encryption: Cipher | None) -> None:
    for graph_id, source in sources.items():
        if not source.is_factory:
            warn_of_own_checkpointer(graph_id, source.value)
    path = os.environ.get("SLIPWAY_SOCKET")
    host, port = os.environ.get("HOST") or "0.0.0.0", int(os.environ.get("PORT") or 8080)  # port 0 picks one
    config = uvicorn.Config(
        Server(sources, graphs, os.environ.get("SLIPWAY_INVOKE_TOKEN", ""), auth, app, index, encryption),
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
    )
    server = uvicorn.Server(config)
    try:
        listener = listen_at(path) if path else listen(host, port)
    except OSError as e:
        print(f"cannot listen at {path or f'{host}:{port}'}: {e.strerror}", file=sys.stderr, flush=True)
        _exit(1)
    address = path or f"http://{host}:{listener.getsockname()[1]}"
    print(f"serving {', '.join(sorted(sources))} at {address}", file=sys.stderr, flush=True)
    # The server raises the signal that has stopped it once more, when it is done.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    if app is not None:
        app.stop()
    _exit(0 if server.started else 1)


def listen_at(path: str) -> socket.socket:
    """A listening Unix socket, which no other agent of the machine reaches."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    return listener


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that names its protocol, because asyncio turns Nagle's algorithm off for
    those only: with it, each event may wait 40 ms."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


def _log_level() -> int:
    return logging.getLevelNamesMapping().get(os.environ.get("LOG_LEVEL", "INFO").upper(), logging.INFO)


def _exit(status: int) -> None:
    """Ends the process although a node may still be blocking a thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
