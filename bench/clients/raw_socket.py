"""(b) Ready-made bytes over bare sockets: the floor of what Python can do. It knows of HTTP only Content-Length."""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import uvloop

from bench.clients.common import TOKEN, Watch, arguments
from bench.inputs import Ready, read_ready

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class _Connection(asyncio.Protocol):
    """Sends one request after the other, until none is left."""

    def __init__(self, waiting: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._waiting = waiting
        self._done = done
        self._heard = b""
        self._wanted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment] # a stream, for it is TCP
        self._next()

    def _next(self) -> None:
        request = next(self._waiting, None)
        if request is not None:
            self._transport.write(request)
        elif not self._done.done():
            self._transport.close()
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._heard = self._heard + data if self._heard else data
        if not self._wanted:
            end = self._heard.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(self._heard, 0, end + 2)
            if not self._heard.startswith(b"HTTP/1.1 20") or length is None:
                self._done.set_exception(RuntimeError(repr(self._heard[:300])))
                self._transport.close()
                return
            self._wanted = end + 4 + int(length[1])
        if len(self._heard) >= self._wanted:
            self._heard, self._wanted = b"", 0
            self._next()


def _bytes(ready: Ready, host: str) -> bytes:
    request = ready.request
    headers = {"Host": host, "Authorization": f"Bearer {TOKEN}", "Content-Length": str(len(request.body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | dict(request.headers)).items())
    return f"POST {request.path} HTTP/1.1\r\n{lines}\r\n".encode() + request.body


async def _main() -> None:
    options = arguments()
    ready = read_ready(options.file)
    target = urlsplit(options.url)
    requests = [_bytes(one, target.netloc) for one in ready]
    watch = Watch()
    waiting = iter(requests)
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in range(options.parallel)]
    for end in ends:
        await loop.create_connection(partial(_Connection, waiting, end), target.hostname, target.port)
    await asyncio.gather(*ends)
    watch.say(calls=len(ready), rows=sum(one.rows for one in ready))


if __name__ == "__main__":
    uvloop.run(_main())
