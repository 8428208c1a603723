"""The mock behind a line that spoils the calls it is told to."""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
import orjson

from mock_server.app import MockApp
from mock_server.faults import ConnectionDroppedError

MODES = ("insert", "batch", "xml")
DEADLINE_S = 20.0

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass
class Heard:
    """A reply of the mock, caught before it leaves."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    async def catch(self, message: Message) -> None:
        """Take the mock's messages in the place of the client."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        else:
            self.body += message.get("body", b"")

    async def pass_on(self, send: Send) -> None:
        """Send it after all."""
        headers = [pair for pair in self.headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def refusal(status: int, text: str = "", **headers: str) -> Heard:
    """Make an answer that comes in the place of the mock's."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    body = orjson.dumps({"error": {"message": {"value": text}}}) if text else b""
    return Heard(status, named, body)


HTML = Heard(200, [(b"content-type", b"text/html")], b"<!DOCTYPE html><html><body>We are working on it</body></html>")

INSTEAD = {
    "408": refusal(408, "Request Timeout"),
    "413": refusal(413, "Request Entity Too Large"),
    "429 with a wait": refusal(429, retry_after="7"),
    "429 with a date": refusal(429, retry_after="Mon, 21 Sep 2026 14:14:00 GMT"),
    "429 with limit headers": refusal(
        429, x_ratelimit_minutely_remaining="0", x_ratelimit_minutely_reset="1790000067000"
    ),
    "429 without headers": refusal(429),
    "500 business": refusal(500, "Verplicht: Name"),
    "500 technical": refusal(500, "Object reference not set to an instance of an object"),
    "502": refusal(502, "Bad Gateway"),
    "503": refusal(503, "Service Unavailable"),
    "503 with a wait": refusal(503, "Service Unavailable", retry_after="3"),
    "504": refusal(504, "Gateway Timeout"),
    "HTML page with 200": HTML,
    "empty body": Heard(200),
}  # fmt: skip

# Done before the answer is spoilt: the rows are stored.
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut JSON": lambda body: body[: len(body) * 2 // 3],
    "cut multipart": lambda body: body[: body.rstrip().rfind(b"--batchresponse")],
    "cut multipart in a part": lambda body: body[: len(body) // 2],
    "cut XML": lambda body: body[: len(body) * 2 // 3],
    "HTML page after the commit": lambda _: HTML.body,
    "empty body after the commit": lambda _: b"",
    "an answer without the last row": lambda body: re.sub(
        rb"(?s)<Message type=\"2\">(?:(?!<Message).)*</Message>\s*(?=</Messages>)", b"", body
    ),
    "wrong length": lambda body: body[:-1],
}

CONNECTION = (
    "connection refused", "reset before the request", "reset after the commit", "time-out before the commit",
    "time-out after the commit", "late commit after the time-out", "slow body", "idle connection closed",
)  # fmt: skip

ONLY = {
    "cut multipart": {"batch"}, "cut multipart in a part": {"batch"}, "cut XML": {"xml"}, "cut JSON": {"insert"},
    "an answer without the last row": {"xml"},
}  # fmt: skip

# A row that stands alone in its call and is refused for what the call is: rejected, and not sent again by a resume.
REFUSES = {"413", "500 business"}

FAULTS = (*CONNECTION, *INSTEAD, *SPOILT)


class Faulty:
    """The mock behind a line that spoils the calls it is told to, counted from 1, writes and look-ups apart."""

    def __init__(self, app: MockApp, faults: dict[tuple[str, int], str]) -> None:
        """Take what happens to which call: ("write", 2) or ("look-up", 1)."""
        self.app = app
        self.faults = dict(faults)
        self.seen = {"write": 0, "look-up": 0}
        self.hit: list[str] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a call pass, or spoil it."""
        if scope["path"].startswith("/api/v1/current"):
            await self.app(scope, receive, send)
            return
        kind = "write" if scope["method"] == "POST" else "look-up"
        self.seen[kind] += 1
        fault = self.faults.pop((kind, self.seen[kind]), None)
        if fault is None:
            await self.app(scope, receive, send)
            return
        self.hit.append(fault)
        if fault in CONNECTION:
            await self._connection(fault, scope, receive, send)
        elif fault in INSTEAD:
            await receive()
            await INSTEAD[fault].pass_on(send)
        else:
            heard = Heard()
            await self.app(scope, receive, heard.catch)
            heard.body = SPOILT[fault](heard.body)
            await heard.pass_on(send)

    async def _connection(self, fault: str, scope: Message, receive: Receive, send: Send) -> None:
        heard = Heard()
        match fault:
            case "connection refused":
                raise httpx.ConnectError(fault)
            case "reset before the request":
                raise httpx.WriteError(fault)
            case "idle connection closed":
                raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
            case "time-out before the commit":
                await anyio.sleep_forever()
            case "slow body":
                await self.app(scope, receive, heard.catch)
                await anyio.sleep(DEADLINE_S - 5.0)
                await heard.pass_on(send)
                return
            case "late commit after the time-out":
                body = (await receive())["body"]
                self.app.world.ledger.later(
                    self.app.world.clock.now_s() + DEADLINE_S + 3.0, lambda: self._late(scope, body)
                )
                await anyio.sleep_forever()
        await self.app(scope, receive, heard.catch)
        if fault == "time-out after the commit":
            await anyio.sleep_forever()
        raise ConnectionDroppedError

    def _late(self, scope: Message, body: bytes) -> None:
        """Carry a call out for nobody: what the platform does with one whose client has left."""
        latency, self.app.world.latency = self.app.world.latency, _Free()  # type: ignore[assignment]

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        late = self.app(scope, receive, Heard().catch)
        try:
            late.send(None)
        except StopIteration:
            pass
        else:
            raise AssertionError("a late call must not wait")
        finally:
            self.app.world.latency = latency


class _Free:
    """No latency."""

    def is_free(self, _endpoint: str) -> bool:
        return True


class PowerFailureError(BaseException):
    """The process is gone."""


class Crashing(Faulty):
    """A line on which one call, before or after it is carried out, is the last thing a process does."""

    crash_at = 0
    crash_when_asked = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a call pass, spoil it, or end the process."""
        if self.crash_when_asked and "filter" in scope["query_string"].decode():
            self.crash_when_asked = False
            raise PowerFailureError
        if scope["method"] == "POST" and self.seen["write"] + 1 == abs(self.crash_at):
            if self.crash_at > 0:
                await self.app(scope, receive, send)
            self.crash_at = 0
            raise PowerFailureError
        await super().__call__(scope, receive, send)
