"""A line with faults between the loader and a mock server, on real sockets."""

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from saasload.sample import write_sample

WORLD = """
companies = 2
[latency]
slots = 8
read_s = 0.01
insert = { call_s = 0.2 }
batch = { call_s = 0.2 }
xml = { call_s = 0.2 }
"""


class Target:
    """A mock server in a process of its own."""

    def __init__(self, url: str) -> None:
        """Know where it is."""
        self.url = url
        self.place = (str(urlsplit(url).hostname), int(urlsplit(url).port or 0))

    def booked(self) -> tuple[int, int]:
        """Count the rows its ledger holds, and those it holds more than once."""
        companies = httpx.get(f"{self.url}/_mock/audit", params={"key": "Code"}).json()["companies"].values()
        return sum(company["rows"] for company in companies), sum(company["twice"] for company in companies)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Start one mock server for all tests; the 30 s of quiet that most of them wait for are an eighth of one there."""
    scenario = tmp_path_factory.mktemp("faults") / "scenario.toml"
    scenario.write_text(WORLD)
    command = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin",
               "--scenario", str(scenario), "--time-scale", "240"]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield Target(orjson.loads(process.stdout.readline())["url"])
        process.kill()


@pytest.fixture
def target(server: Target) -> Target:
    """Give the mock server with empty books."""
    httpx.post(f"{server.url}/_mock/reset").raise_for_status()
    return server


class Line:
    """Passes requests on, and does to the n-th POST what it is told."""

    def __init__(self, target: Target, faults: dict[int, str]) -> None:
        """Listen on a port of the system's choosing."""
        self.target = target
        self.faults = faults
        self.posts = 0
        self.hit: list[str] = []
        self.bodies: list[bytes] = []
        self.one_request_a_connection = False
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._start(self._accept, self._listener)

    def hang_up(self) -> None:
        """Refuse connections from now on, and end those that stand."""
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        """End it with its threads."""
        self.hang_up()
        for thread in self._threads:
            thread.join(5)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._open.append(client)
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, client.makefile("rb") as stream:
            answered = 0
            while (request := _message(stream)) is not None:
                fault = self._fault(request)
                if self.one_request_a_connection and answered:
                    return  # the server had closed it, and the request met that
                if not self._answer(client, request, fault):
                    return
                answered += 1

    def _fault(self, request: bytes) -> str:
        if not request.startswith(b"POST"):
            return ""
        with self._lock:
            self.posts += 1
            self.bodies.append(request.partition(b"\r\n\r\n")[2])
            fault = self.faults.get(self.posts, "")
            self.hit += [fault] if fault else []
        return fault

    def _answer(  # noqa: C901, PLR0911, PLR0912 one case a fault
        self, client: socket.socket, request: bytes, fault: str
    ) -> bool:
        """Answer one request; tell whether the connection goes on."""
        match fault:
            case "reset before the request":
                return _reset(client)
            case "closed before the request":
                return False
            case "time-out before the commit":
                return _until_gone(client)
            case "hung up":
                self.hang_up()
                return False
        reply = self._pass_on(request)
        head, _, body = reply.partition(b"\r\n\r\n")
        match fault:
            case "reset after the commit":
                return _reset(client)
            case "closed after the commit":
                return False
            case "time-out after the commit":
                return _until_gone(client)
            case "cut body":
                client.sendall(head + b"\r\n\r\n" + body[: len(body) // 2])
                return False
            case "cut head":
                client.sendall(head[:20])
                return False
            case "length too long":
                client.sendall(head.replace(b"content-length: ", b"content-length: 1") + b"\r\n\r\n" + body)
                return False
            case "length too short":
                short = b"content-length: %d" % (len(body) - 9)
                client.sendall(head.replace(b"content-length: %d" % len(body), short) + b"\r\n\r\n" + body)
            case "not HTTP":
                client.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                return False
            case "slow body":
                client.sendall(head + b"\r\n\r\n")
                for place in range(0, len(body), 64):
                    client.sendall(body[place : place + 64])
            case "closed after the answer":
                client.sendall(reply)
                return False
            case _:
                client.sendall(reply)
        return True

    def _pass_on(self, request: bytes) -> bytes:
        with socket.create_connection(self.target.place) as upstream, upstream.makefile("rb") as stream:
            upstream.sendall(request)
            return _message(stream) or b""


def _message(stream: BufferedReader) -> bytes | None:
    """Read one HTTP message whole."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return None
        head += line
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    body: bytes = stream.read(length)
    return head + body if len(body) == length else None


def _reset(client: socket.socket) -> bool:
    """End with a reset."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def _until_gone(client: socket.socket) -> bool:
    """Say nothing until the client leaves."""
    with suppress(OSError):
        client.recv(1)
    return False


@pytest.fixture
def line(target: Target) -> Iterator[Callable[[dict[int, str]], Line]]:
    """Give a function that puts a line with faults before the server."""
    made: list[Line] = []

    def make(faults: dict[int, str]) -> Line:
        made.append(Line(target, faults))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a source of 24 customers over 2 companies."""
    path = tmp_path_factory.mktemp("source") / "rows.parquet"
    write_sample(path, rows=24, companies=2)
    return path
