"""One table: for each fault, what the error says and what the server really saw. It holds for every engine."""

import logging
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import anyio
import anyio.to_thread
import httpx
import pytest
from anyio.abc import TaskGroup

from saasload.errors import InDoubtError, NotSentError, TransportError
from saasload.model import Reply, Request
from saasload.transport import Network, Sender, open_client
from saasload.transport.reasons import reason

from .conftest import Certificate
from .engines import BODY_SECRET, POST, QUERY_SECRET, TOKEN, Engine, open_sender, send
from .fault_server import Behave, FaultServer, Wire

# httpx's own engine leaves its generators to the garbage collector, of which trio warns
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
LARGE = Request("POST", "/large", {}, b"x" * 8_000_000)
QUICK = Network(connect_s=0.3, max_reply_bytes=1000)


def after_reading(*said: bytes, end: Callable[[Wire], None] = Wire.close) -> Behave:
    """Read one request whole, say these bytes, end the connection."""

    def behave(wire: Wire) -> None:
        wire.read()
        for data in said:
            wire.write(data)
        end(wire)

    return behave


def half_read_then_reset(wire: Wire) -> None:
    """Read a part of a large body, then reset."""
    wire.socket.recv(1000)
    wire.reset()


def stay(wire: Wire) -> None:
    """Do nothing until the test is over."""
    wire.server.closing.wait(10.0)


FAULTS: dict[str, tuple[Behave, str, int]] = {
    # name: behaviour, words of the error, POSTs that arrived whole
    "closed on accept": (Wire.close, "connection|broken pipe|broken off", 0),
    "read and closed": (after_reading(), "connection closed|broken off", 1),
    "read and reset": (after_reading(end=Wire.reset), "connection reset by peer", 1),
    "closed in the headers": (after_reading(b"HTTP/1.1 201 Created\r\nContent-Le"), "connection closed|broken off", 1),
    "closed in the body": (after_reading(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"), "broken off", 1),
    "reset in the body": (
        after_reading(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{", end=Wire.reset),
        "broken off|connection",
        1,
    ),
    "closed in a chunk": (
        after_reading(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc"),
        "broken off",
        1,
    ),
    "chunk that is none": (
        after_reading(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", end=stay),
        "not HTTP|broken off",
        1,
    ),
    "not HTTP": (after_reading(f"SSH-2.0 {TOKEN}\r\n{QUERY_SECRET}\r\n\r\n".encode(), end=stay), "not HTTP", 1),
    "reply too large": (
        after_reading(b"HTTP/1.1 201 Created\r\nContent-Length: 4000\r\n\r\n" + b"x" * 4000, end=stay),
        "reply longer than 1,000 bytes",
        1,
    ),
    "reply too large, chunked": (
        after_reading(
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n",
            *[b"190\r\n" + b"x" * 400 + b"\r\n"] * 4,
            end=stay,
        ),
        "reply longer than 1,000 bytes",
        1,
    ),
    "gzip that is none": (
        after_reading(b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", end=stay),
        "decompressed|broken off|not HTTP",
        1,
    ),
}


def assert_silent(error: TransportError, engine: Engine) -> None:
    """Neither the error nor, with our transport, its whole trace holds a secret."""
    texts = [str(error), repr(error)]
    if engine.aiohttp:
        texts += traceback.format_exception(error)
    for secret in (TOKEN, QUERY_SECRET, BODY_SECRET):
        assert not [text for text in texts if secret in text]
    assert "\n" not in str(error)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_after_connecting_is_in_doubt(engine: Engine, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """Once a connection stands the rows may have been applied, whatever then happens; the POST went out once."""
    behave, words, arrived = FAULTS[fault]
    caplog.set_level(logging.DEBUG)

    with FaultServer(behave) as server:
        (error,) = send(engine, server.url, network=QUICK)

        assert type(error) is InDoubtError
        assert str(error).startswith(f"127.0.0.1:{server.port}: ")
        assert any(word in str(error) for word in words.split("|")), str(error)
        assert [request.body for request in server.arrived] == [POST.body] * arrived
        assert server.connections == 1
        assert_silent(error, engine)
        assert TOKEN not in caplog.text
        assert QUERY_SECRET not in caplog.text


def test_a_reset_while_the_body_is_sent_is_in_doubt(engine: Engine) -> None:
    """A server that hangs up half way through a large request may have used what it has."""
    with FaultServer(half_read_then_reset) as server:
        (error,) = send(engine, server.url, LARGE)

        assert type(error) is InDoubtError
        assert (len(server.arrived), server.connections) == (0, 1)


def test_a_reset_on_accept_was_not_read(engine: Engine) -> None:
    """Whether the reset is met in connecting or after it is a race; both answers are true, and neither repeats."""
    with FaultServer(Wire.reset) as server:
        (error,) = send(engine, server.url)

        assert type(error) in {NotSentError, InDoubtError}
        assert (len(server.arrived), server.connections) == (0, 1)


@contextmanager
def refused() -> Iterator[str]:
    """An address at which nobody listens: the port is taken, so that nobody else comes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def refused_by_name() -> Iterator[str]:
    """The same under a name that has an IPv6 and an IPv4 address on most machines: two causes, one line."""
    with refused() as url:
        yield url.replace("127.0.0.1", "localhost")


@contextmanager
def full() -> Iterator[str]:
    """A listener whose queue is full: the system drops further connections silently."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def unknown() -> Iterator[str]:
    """A name that no resolver knows (RFC 6761)."""
    yield "http://no-such-host.invalid"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param(refused, "connection refused", id="refused"),
        pytest.param(refused_by_name, "connection refused", id="refused twice"),
        pytest.param(unknown, "the name cannot be resolved", id="unknown name"),
        pytest.param(full, "no connection in time", id="connect time-out"),
    ],
)
def test_a_fault_in_connecting_is_never_sent(
    engine: Engine, place: Callable[[], AbstractContextManager[str]], words: str
) -> None:
    """Without a connection no byte has left."""
    with place() as url:
        (error,) = send(engine, url, network=QUICK)

    assert type(error) is NotSentError
    assert str(error) == f"{url.removeprefix('http://')}: {words}"
    assert_silent(error, engine)


def test_a_certificate_nobody_vouches_for_is_never_sent(engine: Engine, certificate: Certificate) -> None:
    """A server whose authority is unknown gets nothing."""
    with FaultServer(after_reading(OK), tls=certificate.server()) as server:
        (error,) = send(engine, server.url)

        assert type(error) is NotSentError
        assert "certificate not accepted: self-signed certificate" in str(error)
        assert server.arrived == []


def test_a_certificate_for_another_host_is_never_sent(engine: Engine, foreign_certificate: Certificate) -> None:
    """A trusted certificate with another name in it gets nothing."""
    network = Network(ca_file=str(foreign_certificate.cert))
    with FaultServer(after_reading(OK), tls=foreign_certificate.server()) as server:
        (error,) = send(engine, server.url, network=network)

        assert type(error) is NotSentError
        assert "certificate not accepted" in str(error)
        assert server.arrived == []


def test_a_plain_server_under_https_is_never_sent(engine: Engine) -> None:
    """A handshake answered in plain text ends before the request."""

    def plain(wire: Wire) -> None:
        wire.socket.recv(100)
        wire.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with FaultServer(plain) as server:
        (error,) = send(engine, server.url.replace("http:", "https:"))

    assert type(error) is NotSentError
    assert "TLS failed: " in str(error)


@pytest.mark.parametrize(("behave", "words"), [(stay, "no connection in time"), (Wire.close, "connection|eof")])
def test_a_handshake_that_never_ends_is_never_sent(engine: Engine, behave: Behave, words: str) -> None:
    """The connect limit covers the handshake; a server that hangs up in it got nothing either."""
    with FaultServer(behave) as server:
        (error,) = send(engine, server.url.replace("http:", "https:"), network=QUICK)

    assert type(error) is NotSentError
    assert any(word in str(error) for word in words.split("|")), str(error)


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_a_kept_connection_that_drops_is_not_tried_again(engine: Engine, method: str) -> None:
    """The second request on a kept connection is read, then dropped: in doubt, and no engine repeats it by itself."""

    def behave(wire: Wire) -> None:
        wire.read()
        wire.write(OK)
        wire.read()

    with FaultServer(behave) as server:
        request = Request(method, "/", {}, b"" if method == "GET" else b"row")
        first, second = send(engine, server.url, request, request)

        assert isinstance(first, Reply)
        assert type(second) is InDoubtError
        assert (len(server.arrived), server.connections) == (2, 1)


def test_a_connection_closed_while_idle_is_replaced(engine: Engine) -> None:
    """A server that drops idle connections costs nothing as long as we hear of it first."""
    closed = threading.Event()

    def behave(wire: Wire) -> None:
        wire.read()
        wire.write(OK)
        wire.close()
        closed.set()

    async def main() -> list[int]:
        async with open_sender(engine, server.url) as sender:
            first = await sender.send(POST)
            await anyio.to_thread.run_sync(closed.wait, 5.0)
            return [first.status, (await sender.send(POST)).status]

    with FaultServer(behave) as server:
        assert engine.run(main) == [201, 201]
        assert (len(server.arrived), server.connections) == (2, 2)


def test_a_reply_nobody_asked_for_is_nobodys(engine: Engine) -> None:
    """Bytes that come on an idle connection are not taken for the answer to the next request."""
    heard, written = threading.Event(), threading.Event()

    def behave(wire: Wire) -> None:
        if wire.read() is None:
            return
        wire.write(OK)
        if wire.server.connections == 1:
            heard.wait(5.0)
            wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbooked")
            written.set()
        wire.server.closing.wait(5.0)

    async def main() -> list[bytes]:
        async with open_sender(engine, server.url) as sender:
            first = await sender.send(POST)
            heard.set()
            await anyio.to_thread.run_sync(written.wait, 5.0)
            return [first.body, (await sender.send(POST)).body]

    with FaultServer(behave) as server:
        assert engine.run(main) == [b"ok", b"ok"]
        assert server.connections == 2


def test_no_reply_in_time_leaves_the_pool_well(engine: Engine) -> None:
    """The caller's deadline ends the wait; the server saw one POST, and the only slot of the pool is free again."""
    arrived = threading.Event()

    def behave(wire: Wire) -> None:
        wire.read()
        if wire.server.connections == 1:
            arrived.set()
            wire.server.closing.wait(5.0)
        else:
            wire.write(OK)

    async def main() -> tuple[bool, int]:
        async with open_sender(engine, server.url, parallel=1) as sender:
            with anyio.move_on_after(5.0) as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(sender.send, POST)
                    await anyio.to_thread.run_sync(arrived.wait, 5.0)
                    scope.cancel()
            return scope.cancelled_caught, (await sender.send(POST)).status

    with FaultServer(behave) as server:
        assert engine.run(main) == (True, 201)
        assert (len(server.arrived), server.connections) == (2, 2)


@pytest.mark.parametrize(
    ("limits", "kind", "words"),
    [
        (httpx.Timeout(None, connect=0.1, pool=0.1), NotSentError, "no free connection in time"),
        (httpx.Timeout(None, read=0.2), InDoubtError, "no reply in time"),
    ],
    ids=["pool", "read"],
)
def test_limits_of_the_client_are_told_apart(
    ours: Engine, limits: httpx.Timeout, kind: type[TransportError], words: str
) -> None:
    """A call that found no slot was never sent; one that got no reply may have been applied."""
    heard: list[TransportError] = []

    async def one(sender: Sender, tasks: TaskGroup) -> None:
        try:
            await sender.send(POST)
        except TransportError as error:
            heard.append(error)
            tasks.cancel_scope.cancel()

    async def main() -> None:
        async with open_client(base_url=server.url, parallel=1) as client:
            client.timeout = limits
            sender = Sender(server.url, client, {})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one, sender, tasks)
                tasks.start_soon(one, sender, tasks)

    with FaultServer(after_reading(end=stay)) as server:
        ours.run(main)

    assert [type(error) for error in heard] == [kind]
    assert str(heard[0]).endswith(f": {words}")


def test_several_causes_are_one_line() -> None:
    """Where each address of a name refuses, httpx's engine hands up a group: the first reason is the reason."""
    refusals = ExceptionGroup(
        "multiple connection attempts failed", [ConnectionRefusedError(111, "a"), OSError(101, "b")]
    )
    below = OSError("All connection attempts failed")
    below.__cause__ = refusals
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = below

    assert reason(error) == "connection refused"
