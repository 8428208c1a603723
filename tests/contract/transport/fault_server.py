"""A server on raw sockets that does to each connection exactly what a test says, and remembers what arrived."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

Behave = Callable[["Wire"], None]


@dataclass(frozen=True, slots=True)
class Arrived:
    """One request that arrived whole."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Wire:
    """One accepted connection."""

    socket: socket.socket
    server: "FaultServer"
    _rest: bytes = field(default=b"")

    def read(self) -> Arrived | None:
        """Read one request whole and remember it; None when the client closed before."""
        head = self._until(b"\r\n\r\n")
        if head is None:
            return None
        line, *lines = head.decode("latin-1").split("\r\n")
        pairs = (text.split(":", 1) for text in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = self._exactly(int(headers.get("content-length", "0")))
        if body is None:
            return None
        arrived = Arrived(line, headers, body)
        self.server.arrived.append(arrived)
        return arrived

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def close(self) -> None:
        """Close in an orderly way (FIN)."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def reset(self) -> None:
        """Close with a reset (RST)."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Take the server's side of a TLS handshake."""
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def _until(self, mark: bytes) -> bytes | None:
        while mark not in self._rest:
            if not self._more():
                return None
        found, _, self._rest = self._rest.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes | None:
        while len(self._rest) < size:
            if not self._more():
                return None
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def _more(self) -> bool:
        piece = self.socket.recv(2**18)
        self._rest += piece
        return bool(piece)


class FaultServer:
    """Listens on a free port; `behave` runs in a thread for each connection, which is closed when it returns."""

    def __init__(self, behave: Behave, *, tls: ssl.SSLContext | None = None) -> None:
        """Say what is done to each connection."""
        self.arrived: list[Arrived] = []
        self.connections = 0
        self.closing = threading.Event()
        self._behave, self._tls = behave, tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        """Start to accept."""
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything and wait for the threads."""
        self.closing.set()
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5.0)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(accepted)
            self._start(self._serve, accepted)

    def _serve(self, accepted: socket.socket) -> None:
        wire = Wire(accepted, self)
        with suppress(OSError):  # ssl.SSLError is one: a client that does not trust us hangs up
            if self._tls is not None:
                wire.start_tls(self._tls)
            self._behave(wire)
        with suppress(OSError):
            wire.close()
