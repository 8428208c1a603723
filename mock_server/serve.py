"""Serving: the application on a socket, until it is told to stop."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mock_server.app import HANG_UP, MockApp, create_app
from mock_server.scenario import Scenario
from mock_server.store import Store, StoreError


class ServeError(Exception):
    """The server cannot start; the text is one line."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where and how to serve."""

    host: str
    port: int
    time_scale: float
    allow_remote: bool = False
    announce: bool = False
    die_with_stdin: bool = False
    db: Path | None = None
    """File in which the state outlives the process."""


class Protocol(HttpToolsProtocol):
    """HTTP whose application can hang up without a word."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {HANG_UP: self.transport.close}  # type: ignore[dict-item] # not in the standard


class Server(uvicorn.Server):
    """A server that says where it listens and stops without a traceback."""

    def __init__(self, app: MockApp, options: Options, listener: socket.socket) -> None:
        """Prepare to serve on a socket that listens already."""
        super().__init__(
            uvicorn.Config(
                app, http=Protocol, loop="auto", ws="none", lifespan="off", log_config=None, log_level="critical",
                access_log=False, date_header=False, server_header=False, timeout_graceful_shutdown=1,
            )
        )  # fmt: skip
        self._mock = app
        self._options = options
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        self._mock.world.clock.start()
        await super().startup(sockets)
        if self._options.die_with_stdin:
            self._watch_stdin()
        host, port = self._listener.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        if self._options.announce:
            line = {"url": url, "pid": os.getpid(), "time_scale": self._options.time_scale}
            sys.stdout.write(orjson.dumps(line).decode() + "\n")
            sys.stdout.flush()
        else:
            name = self._mock.world.scenario.name
            sys.stderr.write(f"mock server listens on {url} (scenario {name}, time x{self._options.time_scale:g})\n")
            sys.stderr.flush()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and leave it at that: the base class raises it once more at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    def _watch_stdin(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(0, self._read_stdin)
        except (OSError, ValueError):  # a file or nothing at all: its end has been reached
            self.should_exit = True

    def _read_stdin(self) -> None:
        if not os.read(0, 65_536):
            asyncio.get_running_loop().remove_reader(0)
            self.should_exit = self.force_exit = True


def serve(scenario: Scenario, options: Options) -> None:
    """Serve until a signal comes; raise `ServeError` when it cannot start."""
    if not options.allow_remote and not _is_loopback(options.host):
        message = f"host {options.host} is not this machine only: add --allow-remote to serve others"
        raise ServeError(message)
    listener = _listen(options.host, options.port)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    store = None if options.db is None else _open(options.db, scenario.seed)
    app = create_app(scenario, time_scale=options.time_scale, epoch0_s=time.time(), store=store)
    # a ledger of a million rows is not worth walking again and again
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    with contextlib.suppress(KeyboardInterrupt):
        Server(app, options, listener).run(sockets=[listener])
    app.world.close()


def _open(path: Path, seed: int) -> Store:
    try:
        return Store(path, seed=seed)
    except StoreError as error:
        raise ServeError(str(error)) from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        message = f"{host}:{port}: cannot listen: {getattr(error, 'strerror', None) or error}"
        raise ServeError(message) from error
    listener.settimeout(0.0)
    return listener


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
