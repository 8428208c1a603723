"""What comes through whole: replies of every shape, bodies of every size, each to the call it answers."""

import asyncio
import gzip
import hashlib
import logging
import random
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import httpx
import pytest
import respx

from saasload.errors import InDoubtError, NotSentError
from saasload.model import Reply, Request
from saasload.transport import Sender, open_client

from .engines import POST, QUERY_SECRET, TOKEN, Engine, open_sender, send
from .fault_server import Behave, FaultServer, Wire

HEAD = b"HTTP/1.1 201 Created\r\n"


def answer(*said: bytes) -> Behave:
    """Answer each request of a connection with these bytes."""

    def behave(wire: Wire) -> None:
        while wire.read() is not None:
            for data in said:
                wire.write(data)

    return behave


def length(body: bytes) -> bytes:
    """Put a Content-Length before a body."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def until_closed(wire: Wire) -> None:
    """Answer without a length, as HTTP/1.0 does: the body ends with the connection."""
    wire.read()
    wire.write(b"HTTP/1.0 201 Created\r\n\r\nto the end")


REPLIES: dict[str, tuple[Behave, int, bytes]] = {
    "empty": (answer(HEAD + length(b"")), 201, b""),
    "no content": (answer(b"HTTP/1.1 204 No Content\r\n\r\n"), 204, b""),
    "redirect": (answer(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\n" + length(b"go")), 307, b"go"),
    "refused": (answer(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n" + length(b"{}")), 429, b"{}"),
    "in pieces": (answer(HEAD + b"Content-Length: 6\r\n\r\n", b"ab", b"cd", b"ef"), 201, b"abcdef"),
    "chunked": (
        answer(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"),
        201,
        b"abc",
    ),
    "gzip": (answer(HEAD + b"Content-Encoding: gzip\r\n" + length(gzip.compress(b"row" * 99))), 201, b"row" * 99),
    "after an interim reply": (answer(b"HTTP/1.1 102 Processing\r\n\r\n", HEAD + length(b"ok")), 201, b"ok"),
    "until closed": (until_closed, 201, b"to the end"),
    "megabytes": (answer(HEAD + length(b"z" * 3_000_000)), 201, b"z" * 3_000_000),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_arrives_whole(engine: Engine, name: str) -> None:
    """Status and body are the server's, twice in a row, and each POST is sent once; a redirect is not followed."""
    behave, status, body = REPLIES[name]
    with FaultServer(behave) as server:
        heard = send(engine, server.url, POST, POST)

        assert [(reply.status, reply.body) for reply in heard if isinstance(reply, Reply)] == [(status, body)] * 2
        assert [request.line.split("?")[0] for request in server.arrived] == ["POST /api/v1/123/crm"] * 2


def test_reply_headers_are_in_lower_case(engine: Engine) -> None:
    """Header names are found in lower case, and repeated ones are joined."""
    said = HEAD + b"X-RateLimit-Remaining: 59\r\nLink: <a>\r\nLINK: <b>\r\n" + length(b"")
    with FaultServer(answer(said)) as server:
        (reply,) = send(engine, server.url)

    assert isinstance(reply, Reply)
    assert reply.headers == {"x-ratelimit-remaining": "59", "link": "<a>, <b>", "content-length": "0"}


def test_cookies_are_not_kept(engine: Engine) -> None:
    """A session that one company's call opened does not travel with the next call."""
    with FaultServer(answer(HEAD + b"Set-Cookie: session=A; Path=/\r\n" + length(b""))) as server:
        # by name: jars take no cookies from addresses
        send(engine, server.url.replace("127.0.0.1", "localhost"), POST, POST)

        assert [request.headers.get("cookie") for request in server.arrived] == [None, None]


def test_headers_and_path_arrive_as_given(engine: Engine) -> None:
    """The request's headers win over the sender's; a path that is encoded already is not encoded again."""
    path = "/a%20b/Customers(guid%271%27)?$filter=Code%20eq%20'%C3%A9'"
    request = Request("GET", path, {"Accept": "application/xml", "authorization": "Bearer other"})
    with FaultServer(answer(HEAD + length(b""))) as server:
        send(engine, f"{server.url}/v1/", request)
        (arrived,), place = server.arrived, f"127.0.0.1:{server.port}"

    assert arrived.line == f"GET /v1{path} HTTP/1.1"
    assert arrived.headers == {
        "host": place,
        "user-agent": "saasload",
        "accept": "application/xml",
        "accept-encoding": "gzip, deflate",
        "authorization": "Bearer other",
    }


def test_the_senders_headers_win_over_the_usual_ones(ours: Engine) -> None:
    """A caller that names itself is named so."""

    async def main() -> None:
        async with open_client(base_url=server.url, parallel=1) as client:
            await Sender(server.url, client, {"user-agent": "me/1.0"}).send(POST)

    with FaultServer(answer(HEAD + length(b""))) as server:
        ours.run(main)

        assert server.arrived[0].headers["user-agent"] == "me/1.0"


def test_the_client_itself_keeps_no_cookies_and_streams(ours: Engine) -> None:
    """Other uses of the client, such as signing in, have no session either; a streamed body is sent with its length."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"grant_type="
        yield b"refresh"

    async def main() -> None:
        async with open_client(base_url=server.url.replace("127.0.0.1", "localhost"), parallel=1) as client:
            await client.post("/token", content=pieces())
            await client.post("/token", content=pieces())

    with FaultServer(answer(HEAD + b"Set-Cookie: session=A; Path=/\r\n" + length(b""))) as server:
        ours.run(main)

        assert [each.headers.get("cookie") for each in server.arrived] == [None, None]
        assert [each.body for each in server.arrived] == [b"grant_type=refresh"] * 2
        assert [each.headers.get("transfer-encoding") for each in server.arrived] == [None, None]


def test_a_call_is_not_logged(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """At the highest level no library logs the address with its query, or the token."""
    caplog.set_level(logging.DEBUG)
    with FaultServer(answer(HEAD + length(b""))) as server:
        send(engine, server.url)

    assert QUERY_SECRET not in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000, 5_000_000])
def test_a_body_sent_twice_is_the_same(engine: Engine, size: int) -> None:
    """Every try carries the same complete bytes, with their length and not in chunks."""
    body = random.Random(size).randbytes(size)
    request = Request("POST", "/upload", {}, body)
    with FaultServer(answer(b"HTTP/1.1 503 Busy\r\n" + length(b""))) as server:
        send(engine, server.url, request, request)

        want = (str(size), None, hashlib.sha256(body).hexdigest())
        seen = [
            (
                each.headers["content-length"],
                each.headers.get("transfer-encoding"),
                hashlib.sha256(each.body).hexdigest(),
            )
            for each in server.arrived
        ]
    assert seen == [want, want]


def test_an_early_refusal_of_a_large_body_is_heard(ours: Engine) -> None:
    """A server that answers 413 before it has read the body is believed, and the slot is free again."""

    def behave(wire: Wire) -> None:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.socket.recv(1000)
        wire.write(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\n" + length(b"no"))
        wire.server.closing.wait(5.0)

    async def main() -> list[int]:
        async with open_sender(ours, server.url, parallel=1) as sender:
            request = Request("POST", "/", {}, b"x" * 20_000_000)
            return [(await sender.send(request)).status for _ in range(2)]

    with FaultServer(behave) as server:
        assert ours.run(main) == [413, 413]


def test_a_cancelled_upload_stops(ours: Engine) -> None:
    """What is still in our buffers of a request that was given up is not sent after all."""
    begun, given_up, end = threading.Event(), threading.Event(), threading.Event()
    seen: list[int] = []

    def behave(wire: Wire) -> None:
        seen.append(len(wire.socket.recv(1000)))
        begun.set()
        given_up.wait(5.0)
        with suppress(ConnectionError):
            while piece := wire.socket.recv(2**18):
                seen.append(len(piece))
        end.set()

    async def main() -> bool:
        async with open_sender(ours, server.url) as sender, anyio.create_task_group() as tasks:
            tasks.start_soon(sender.send, Request("POST", "/", {}, b"x" * 20_000_000))
            await anyio.to_thread.run_sync(begun.wait, 5.0)
            tasks.cancel_scope.cancel()
        given_up.set()
        return await anyio.to_thread.run_sync(end.wait, 5.0)

    with FaultServer(behave) as server:
        assert ours.run(main)
    assert 0 < sum(seen) < 20_000_000


@pytest.mark.parametrize("request_", [Request("POST", "/a\nb", {}), Request("POST", "/", {"Grüße": "a"})])
def test_a_request_that_cannot_be_built_is_never_sent(ours: Engine, request_: Request) -> None:
    """What is not even a request has not left."""
    (error,) = send(ours, "http://127.0.0.1:9", request_)

    assert type(error) is NotSentError
    assert str(error) == "127.0.0.1:9: path or headers of the request are not valid"


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectError, NotSentError),
        (httpx.ConnectTimeout, NotSentError),
        (httpx.PoolTimeout, NotSentError),
        (httpx.ProxyError, NotSentError),
        (httpx.ReadTimeout, InDoubtError),
        (httpx.WriteTimeout, InDoubtError),
        (httpx.ReadError, InDoubtError),
        (httpx.WriteError, InDoubtError),
        (httpx.CloseError, InDoubtError),
        (httpx.RemoteProtocolError, InDoubtError),
        (httpx.DecodingError, InDoubtError),
        (ZeroDivisionError, InDoubtError),
    ],
)
def test_the_exits_of_the_border(ours: Engine, raised: type[Exception], kind: type[Exception]) -> None:
    """Each class of httpx, and whatever else comes, leaves as one of two; what it says does not leave."""

    async def main() -> str:
        async with open_sender(ours, "http://target.example") as sender:
            with respx.mock(using="httpx") as router:
                router.post("http://target.example/api/v1/123/crm").mock(side_effect=raised("sig=SECRET-AAA\nline"))
                with pytest.raises(kind) as caught:
                    await sender.send(POST)
        assert isinstance(caught.value.__cause__, raised)
        return str(caught.value)

    said = ours.run(main)

    assert said.startswith("target.example: ")
    assert said.isprintable()
    assert "SECRET-AAA" not in said


def test_a_mocked_route_answers(ours: Engine) -> None:
    """The client's calls are seen by respx, with their body."""

    async def main() -> tuple[Reply, bytes]:
        async with open_sender(ours, "http://target.example") as sender:
            with respx.mock(using="httpx") as router:
                route = router.post(path="/api/v1/123/crm").respond(201, json={"ID": 1})
                return await sender.send(POST), route.calls.last.request.content

    reply, sent = ours.run(main)

    assert (reply.status, reply.body, sent) == (201, b'{"ID":1}', POST.body)


@asynccontextmanager
async def echo_server(delay: float) -> AsyncIterator[str]:
    """Answer each POST with its own body after up to `delay` seconds, drawn from a fixed seed."""
    rng = random.Random(7)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                body = await reader.readexactly(size)
                await asyncio.sleep(rng.uniform(0.0, delay))
                writer.write(HEAD + length(body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def cancelled_twice(sender: Sender, pause: float) -> None:
    """Cancel one call, and again while it is being cancelled."""
    task = asyncio.create_task(sender.send(POST))
    await asyncio.sleep(pause)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def cancelled_by_scope(sender: Sender, pause: float) -> None:
    """Let a deadline pass during one call."""
    with anyio.move_on_after(pause):
        await sender.send(POST)


@pytest.mark.parametrize("give_up", [cancelled_by_scope, cancelled_twice])
def test_a_thousand_cancelled_calls_leave_the_pool_well(
    ours: Engine, give_up: Callable[[Sender, float], Awaitable[None]]
) -> None:
    """After the storm a hundred ordinary calls all succeed: no slot of the pool is lost."""
    rng = random.Random(3)

    async def main() -> int:
        async with echo_server(0.004) as url, open_sender(ours, url, parallel=10) as sender:
            for _ in range(20):
                await asyncio.gather(*[give_up(sender, rng.uniform(0.0, 0.004)) for _ in range(50)])
            with anyio.fail_after(10.0):
                replies = await asyncio.gather(*[sender.send(POST) for _ in range(100)])
            return sum(reply.body == POST.body for reply in replies)

    assert ours.run(main) == 100


def test_no_answers_are_swapped(ours: Engine) -> None:
    """Of 1,500 calls a third is cancelled; each of the others gets its own answer."""
    rng = random.Random(5)

    async def one(sender: Sender, number: int) -> bool | None:
        body = b"%d" % number
        with anyio.move_on_after(rng.uniform(0.0, 0.003) if number % 3 == 0 else 10.0):
            return (await sender.send(Request("POST", "/", {}, body))).body == body
        return None

    async def main() -> list[bool | None]:
        async with echo_server(0.003) as url, open_sender(ours, url, parallel=20) as sender:
            heard: list[bool | None] = []
            for start in range(0, 1500, 60):
                heard += await asyncio.gather(*[one(sender, number) for number in range(start, start + 60)])
            return heard

    heard = ours.run(main)

    assert False not in heard
    assert heard.count(True) >= 1000
    assert None in heard


def test_the_pool_never_has_more_connections_than_calls(ours: Engine) -> None:
    """Two hundred calls at once through a pool of five wait for one of its five connections."""

    async def main() -> int:
        async with open_client(base_url=server.url, parallel=5) as client:
            sender = Sender(server.url, client, {})
            replies = await asyncio.gather(*[sender.send(POST) for _ in range(200)])
            return sum(reply.status == 201 for reply in replies)

    with FaultServer(answer(HEAD + length(b""))) as server:
        assert ours.run(main) == 200
        assert server.connections <= 5
