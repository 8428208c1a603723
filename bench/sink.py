"""A server that answers in the right shape and does as little else as can be, so that the client is the limit.

It keeps no rows, checks nothing and counts what it is sent. One program: `python -m bench.sink`.
"""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
import uvloop

_IDS = re.compile(rb"\r\nContent-ID: (\d+)\r\n")
_JSON_CODES = re.compile(rb'"Code":\s?"([^"]*)"')
_XML_CODES = re.compile(rb'<Account code="([^"]*)"')
_GUID = b"5a1d0000-0000-4000-8000-000000000001"
_TYPE = b'"type":"Platform.Models.Account"'
_CREATED = (
    b'{"d":{"__metadata":{"uri":"http://127.0.0.1/api/v1/1001/crm/Accounts(guid\'' + _GUID + b"')\"," + _TYPE
    + b'},"ID":"' + _GUID + b'","Code":"%b"}}'
)  # fmt: skip
_PART = (
    b"--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n--changesetresponse_1\r\n"
    b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: %b\r\n\r\n"
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json;odata=verbose;charset=utf-8\r\nContent-Length: %d\r\n\r\n"
    b"%b\r\n--changesetresponse_1--\r\n"
)
_MESSAGE = (
    b'<Message type="2"><Topic code="Accounts" node="Account"><Data key="{' + _GUID + b'}" keyAlt="%b"/></Topic>'
    b"<Date>2026-01-01T00:00:00</Date><Description>Created</Description></Message>\n"
)
_COMPANIES = json.dumps({"d": {"results": [{"Code": 1001 + place} for place in range(100)]}}).encode()

Handler = Callable[[Any], Awaitable[None]]


class Sink:
    """The application."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._rows = 0

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Handler) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = await _body(receive)
        status, kind, answer = self._answer(scope["path"], body)
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, path: str, body: bytes) -> tuple[int, bytes, bytes]:
        if path.endswith("/Accounts"):
            self._rows += 1
            found = _JSON_CODES.search(body)
            return 201, b"application/json", _CREATED % (found[1] if found else b"")
        if path.endswith("/$batch"):
            codes = _JSON_CODES.findall(body)
            self._rows += len(codes)
            answers = [_CREATED % code for code in codes]
            parts = [
                _PART % (number, len(answer), answer)
                for number, answer in zip(_IDS.findall(body), answers, strict=True)
            ]
            return 202, b"multipart/mixed; boundary=batchresponse_1", b"".join([*parts, b"--batchresponse_1--\r\n"])
        if path.startswith("/docs/"):
            codes = _XML_CODES.findall(body)
            self._rows += len(codes)
            messages = b"".join([_MESSAGE % code for code in codes])
            return 200, b"text/xml", b"<eExact><Messages>" + messages + b"</Messages></eExact>"
        return self._other(path)

    def _other(self, path: str) -> tuple[int, bytes, bytes]:
        if path == "/_mock/reset":
            self._rows = 0
        if path == "/_mock/audit":
            return (
                200,
                b"application/json",
                json.dumps({"companies": {"all": {"rows": self._rows, "twice": 0}}}).encode(),
            )
        return 200, b"application/json", _COMPANIES


async def _body(receive: Callable[[], Awaitable[Any]]) -> bytes:
    message = await receive()
    if not message.get("more_body"):
        return message["body"]  # type: ignore[no-any-return] # ASGI messages are not typed
    pieces = [message["body"]]
    while message.get("more_body"):
        message = await receive()
        pieces.append(message["body"])
    return b"".join(pieces)


def main() -> None:
    """Serve on a free port until standard input ends."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    config = uvicorn.Config(
        Sink(), loop="uvloop", http="httptools", ws="none", lifespan="off", access_log=False, log_level="critical",
        date_header=False, server_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)

    async def serve() -> None:
        def ended() -> None:
            if not os.read(0, 4096):
                loop.remove_reader(0)
                server.should_exit = server.force_exit = True

        loop = asyncio.get_running_loop()
        loop.add_reader(0, ended)
        sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}) + "\n")
        sys.stdout.flush()
        await server.serve(sockets=[listener])

    uvloop.run(serve())


if __name__ == "__main__":
    main()
