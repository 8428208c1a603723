"""An application in this process on virtual time: the same border, no socket."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import anyio
import pytest
from trio.testing import MockClock

from saasload.errors import InDoubtError
from saasload.model import Reply, Request
from saasload.transport import App, Network, Sender, open_client

from .engines import HEADERS, POST

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
BASE = "http://mock"


class ConnectionDropped(Exception):  # noqa: N818 - the mock's own name for it
    """What a mock raises to drop a connection."""


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run in virtual time."""
    return anyio.run(main, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})


def heard(app: App, *requests: Request, network: Network | None = None) -> list[Reply | InDoubtError]:
    """Send requests to an application one after another."""

    async def main() -> list[Reply | InDoubtError]:
        answers: list[Reply | InDoubtError] = []
        async with open_client(base_url=BASE, parallel=2, app=app, network=network) as client:
            sender = Sender(BASE, client, HEADERS, network=network)
            for request in requests or (POST,):
                try:
                    answers.append(await sender.send(request))
                except InDoubtError as error:
                    answers.append(error)
        return answers

    return run(main)


def answering(status: int, body: bytes, *, reads: int = 0, after_s: float = 0.0) -> App:
    """Answer after some virtual seconds, having read some messages of the body."""

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        for _ in range(reads):
            await receive()
        await anyio.sleep(after_s)
        await send({"type": "http.response.start", "status": status, "headers": [(b"Retry-After", b"7")]})
        await send({"type": "http.response.body", "body": body})

    return app


@pytest.mark.parametrize("reads", [0, 1, 2])
def test_an_application_answers(reads: int) -> None:
    """Its status, headers and body arrive, whether it reads the request to its end or not at all."""
    answers = heard(answering(429, b"wait", reads=reads), POST, POST)

    assert answers == [Reply(429, {"retry-after": "7"}, b"wait")] * 2


def test_an_application_sees_the_whole_request() -> None:
    """Method, path, headers and body are those of the request."""
    seen: list[Any] = []

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        message = await receive()
        headers = dict(scope["headers"])
        seen.append((scope["method"], scope["path"], headers[b"content-length"], headers[b"host"], message["body"]))
        await answering(201, b"")(scope, receive, send)

    heard(app)

    assert seen == [("POST", "/api/v1/123/crm", b"11", b"mock", POST.body)]


@pytest.mark.parametrize(("method", "said"), [("POST", b"0"), ("PUT", b"0"), ("GET", None), ("DELETE", None)])
def test_an_empty_body_has_a_length_where_one_is_expected(method: str, said: bytes | None) -> None:
    """A POST without a body says so; a GET says nothing."""
    seen: list[bytes | None] = []

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        seen.append(dict(scope["headers"]).get(b"content-length"))
        await answering(200, b"")(scope, receive, send)

    heard(app, Request(method, "/", {}))

    assert seen == [said]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ConnectionDropped("SECRET-AAA"), "mock: ConnectionDropped while answering"),
        (ExceptionGroup("SECRET-AAA", [ConnectionDropped()]), "mock: ExceptionGroup while answering"),
        (ConnectionResetError(104, "SECRET-AAA"), "mock: connection reset by peer"),
    ],
)
def test_an_application_that_raises_is_in_doubt(raised: Exception, said: str) -> None:
    """A mock that drops the connection may have booked the rows before; the message holds only the class."""

    async def app(scope: object, receive: object, send: object) -> None:
        raise raised

    (error,) = heard(app)

    assert type(error) is InDoubtError
    assert str(error) == said
    assert error.__cause__ is raised


@pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")
def test_an_application_that_says_too_much_is_in_doubt() -> None:
    """The limit of a reply holds in this process too."""
    (error,) = heard(answering(200, b"x" * 1001), network=Network(max_reply_bytes=1000))

    assert str(error) == "mock: reply longer than 1,000 bytes"


def test_a_deadline_is_virtual() -> None:
    """The caller's deadline passes at its virtual instant, and the next call is answered."""

    async def main() -> tuple[bool, float, int]:
        async with open_client(base_url=BASE, parallel=1, app=answering(201, b"", after_s=20.0)) as client:
            sender = Sender(BASE, client, HEADERS)
            with anyio.move_on_after(15.0) as scope:
                await sender.send(POST)
            passed = anyio.current_time()
            return scope.cancelled_caught, passed, (await sender.send(POST)).status

    assert run(main) == (True, 15.0, 201)
