"""Send calls to one target and tell their failures apart."""

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Self, cast

import httpx

from saasload.errors import InDoubtError, NotSentError, SaasloadError
from saasload.model import Reply, Request
from saasload.transport.network import Network, target_url
from saasload.transport.reasons import TooLargeError, reason

# ProxyError is a tunnel refused: behind a plain proxy, what the proxy says is a reply
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_REMEMBERED = 4096  # paths kept in parsed form
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_COMMON = {"User-Agent": "saasload", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}


class Sender:
    """Send calls to one target through an httpx client, each once."""

    def __init__(
        self, base_url: str, client: httpx.AsyncClient, headers: Mapping[str, str], *, network: Network | None = None
    ) -> None:
        """Aim at `base_url`; `headers` go with every request, the request's own win."""
        url = target_url(base_url)
        self._base = base_url.rstrip("/")
        self._place = url.netloc.decode("ascii")
        self._client = client
        self._headers = _raw({"Host": self._place} | _COMMON) | _raw(headers)
        self._timeout = client.timeout.as_dict()
        self._max_reply_bytes = (network or Network()).max_reply_bytes
        self._places: dict[str, tuple[httpx.URL, Mapping[str, object]]] = {}
        self._merged: tuple[Mapping[str, str], dict[str, tuple[bytes, bytes]]] = ({}, {})

    async def send(self, request: Request) -> Reply:
        """Send one request and read its reply whole; the deadline is the caller's, by a cancel scope around this.

        Raises NotSentError when no byte of it can have left, InDoubtError for whatever happens later.
        """
        try:
            built = self._built(request)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise NotSentError(f"{self._place}: path or headers of the request are not valid") from error
        try:
            response = await self._client.send(built, stream=True)
            body = response.content if response.is_closed else await self._read(response)
        except SaasloadError:
            raise
        except _NEVER_SENT as error:
            raise NotSentError(f"{self._place}: {reason(error)}") from error
        except Exception as error:
            # also what an application behind ASGITransport raises: it may have booked the rows before
            raise InDoubtError(f"{self._place}: {reason(error)}") from error
        return Reply(response.status_code, _in_lower_case(response.headers), body)

    def _built(self, request: Request) -> httpx.Request:
        # by hand: build_request and `content=` would cost more than the rest of this class together
        url, extensions = self._places.get(request.path) or self._remember(request.path)
        headers = self._with(request.headers)
        if request.body or request.method in _WITH_BODY:
            headers = headers | {"content-length": (b"Content-Length", b"%d" % len(request.body))}
        built = httpx.Request(
            request.method, url, headers=list(headers.values()), stream=_Body(request.body), extensions=extensions
        )
        built._content = request.body  # noqa: SLF001 - where `read` would put it, after reading
        return built

    def _with(self, headers: Mapping[str, str]) -> dict[str, tuple[bytes, bytes]]:
        """Put a request's headers over ours; a wire format gives all its requests the same ones."""
        last, merged = self._merged
        if last is not headers:
            merged = self._headers | _raw(headers)
            self._merged = headers, merged
        return merged

    def _remember(self, path: str) -> tuple[httpx.URL, Mapping[str, object]]:
        if len(self._places) >= _REMEMBERED:
            self._places.clear()
        url = httpx.URL(self._base + path)
        place = self._places[path] = url, {"timeout": self._timeout, "address": str(url)}
        return place

    async def _read(self, response: httpx.Response) -> bytes:
        parts, size = [], 0
        try:
            async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as pieces:
                async for piece in pieces:
                    parts.append(piece)
                    size += len(piece)
                    if size > self._max_reply_bytes:
                        raise TooLargeError(self._max_reply_bytes)
        finally:
            await response.aclose()
        return b"".join(parts)


class _Body(httpx.ByteStream):
    """A body in memory, without httpx's generator: trio warns of one that an application did not read to its end."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._body)


class _Once:
    """An asynchronous iterator over one piece; nothing to close."""

    def __init__(self, piece: bytes) -> None:
        self._pieces = [piece]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop()


def _raw(headers: Mapping[str, str]) -> dict[str, tuple[bytes, bytes]]:
    return {name.lower(): (name.encode("ascii"), value.encode()) for name, value in headers.items()}


@functools.lru_cache(maxsize=256)
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()


def _in_lower_case(headers: httpx.Headers) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        name, value = _lower(raw_name), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
