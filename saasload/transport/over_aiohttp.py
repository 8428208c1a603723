"""httpx requests over aiohttp. Imported only when a client is opened: aiohttp takes 0.17 s to import."""

import asyncio
import functools
import io
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import aiohttp
import httpx
import yarl
from aiohttp.client_proto import ResponseHandler

from saasload.transport.network import Network, proxy_for, tls_context
from saasload.transport.reasons import BROKEN_OFF, CLOSED, NOT_HTTP, TooLargeError, system_error

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest, ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

_REMEMBERED = 4096  # addresses kept in parsed form
_WARNS_ABOVE = 2**20  # bytes: aiohttp writes them in one go, and warns; a BytesIO it writes in pieces
_DECODED = frozenset({b"content-encoding", b"content-length"})


@dataclass(frozen=True, slots=True)
class _Route:
    """Where a request goes: its address in aiohttp's form, the proxy in between, the trust it needs."""

    url: yarl.URL
    proxy: str | None
    tls: ssl.SSLContext | bool


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Send httpx requests over aiohttp: a fraction of the CPU of httpx's own engine, and sound under cancellation.

    Bodies are sent whole, from memory. Nothing is repeated, no redirect followed, no cookie kept. asyncio only.
    """

    def __init__(self, *, parallel: int, network: Network) -> None:
        """Prepare for at most `parallel` connections; none is opened before the first request."""
        self._parallel = parallel
        self._network = network
        self._session: aiohttp.ClientSession | None = None
        self._routes: dict[str, _Route] = {}
        self._timeouts: dict[tuple[float | None, float | None, float | None], aiohttp.ClientTimeout] = {}
        self._trust = functools.cache(functools.partial(tls_context, network))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its reply whole."""
        session = self._session or self._open()
        address = request.extensions.get("address") or str(request.url)
        route = self._routes.get(address) or self.prepare(address)
        timeout = self._timeout(request.extensions.get("timeout") or {})
        in_memory = isinstance(request.stream, httpx.SyncByteStream)
        body = request.read() if in_memory else await request.aread()
        try:
            reply = await session.request(
                request.method,
                route.url,
                data=(body or None) if len(body) <= _WARNS_ABOVE else io.BytesIO(body),
                headers=_as_text(request.headers),
                allow_redirects=False,
                proxy=route.proxy,
                ssl=route.tls,
                timeout=timeout,
            )
            try:
                content = await self._read(reply)
            except BaseException:
                reply.close()
                raise
        except (OSError, ValueError, aiohttp.ClientError) as error:
            # the system's error stays as the cause; aiohttp's own texts hold the URL
            raise _translated(error) from system_error(error)
        headers = list(reply.raw_headers)
        if "Content-Encoding" in reply.headers:
            headers = [pair for pair in headers if pair[0].lower() not in _DECODED]
        return _whole(reply.status, headers, content)

    async def aclose(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def prepare(self, address: str) -> _Route:
        """Find the way to an address, once; a setting that cannot work raises ConfigError here."""
        target = httpx.URL(address)
        proxy = proxy_for(target, self._network)
        secure = target.scheme == "https" or (proxy or "").startswith("https:")
        route = _Route(yarl.URL(address, encoded=True), proxy, self._trust() if secure else True)
        if len(self._routes) >= _REMEMBERED:
            self._routes.clear()
        self._routes[address] = route
        return route

    def _open(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=_Connector(limit=self._parallel, keepalive_s=self._network.keepalive_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        # aiohttp repeats a GET or a PUT when a kept connection proves closed; here every call that leaves is paid for
        session._retry_connection = False  # noqa: SLF001 - there is no public switch
        self._session = session
        return session

    def _timeout(self, limits: Mapping[str, float | None]) -> aiohttp.ClientTimeout:
        key = connect, read, pool = limits.get("connect"), limits.get("read"), limits.get("pool")
        if (known := self._timeouts.get(key)) is None:
            # aiohttp's `connect` holds the wait for a free connection too; the connector bounds the rest by itself
            waiting = None if pool is None or connect is None else pool + connect
            known = aiohttp.ClientTimeout(total=None, connect=waiting, sock_connect=connect, sock_read=read)
            self._timeouts[key] = known
        return known

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        source, limit = reply.content, self._network.max_reply_bytes
        first = await source.readany()
        if source.at_eof() and len(first) <= limit:
            return first  # nearly always
        parts, size = [first], len(first)
        while size <= limit:
            part = await source.readany()
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        raise TooLargeError(limit)


class _Protocol(ResponseHandler):
    """aiohttp's side of one connection."""

    def close(self) -> None:
        # a plain close would go on sending what is buffered of a body that was given up, or hold on to the socket
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.transport.abort()
        super().close()


class _Connector(aiohttp.TCPConnector):
    """aiohttp's pool, with never-sent told apart by place, and without answers nobody asked for."""

    def __init__(self, *, limit: int, keepalive_s: float) -> None:
        super().__init__(
            limit=limit,
            limit_per_host=limit,
            keepalive_timeout=keepalive_s,
            ttl_dns_cache=60,
            resolver=aiohttp.ThreadedResolver(),
        )
        self._factory = functools.partial(cast("type[ResponseHandler]", _Protocol), loop=self._loop)

    async def _create_connection(
        self,
        req: "ClientRequest",
        traces: "list[Trace]",
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        # whatever fails in here was never sent: name, connection, TLS handshake, a proxy's tunnel
        try:
            async with asyncio.timeout(timeout.sock_connect):
                return await super()._create_connection(req, traces, timeout)
        except TimeoutError:
            raise httpx.ConnectTimeout("") from None
        except aiohttp.ClientHttpProxyError:
            raise httpx.ProxyError("") from None
        except (OSError, ValueError, aiohttp.ClientError) as error:
            raise httpx.ConnectError("") from system_error(error)

    async def _get(self, key: "ConnectionKey", traces: "list[Trace]") -> "Connection | None":
        # bytes that came while nobody asked would be taken for the answer to the next request
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is not None and not found.protocol.should_close:
                return found
            found.close()
        return None


class _Nothing(httpx.AsyncByteStream):
    """What is left to read of a reply that was read whole."""


def _whole(status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> httpx.Response:
    """Make a reply that was read already; by `content=` httpx would write headers for it and read it once more."""
    response = httpx.Response(status, headers=headers, stream=_NOTHING)
    response._content = content  # noqa: SLF001 - where `read` would put it
    response.is_closed = response.is_stream_consumed = True
    return response


_NOTHING = _Nothing()


def _translated(error: Exception) -> httpx.TransportError:
    """Say in httpx's words what aiohttp says in its own; all of it after the connection stood, but for the pool's."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            said: httpx.TransportError = httpx.PoolTimeout("")
        case TimeoutError():
            said = httpx.ReadTimeout("")
        case aiohttp.ServerDisconnectedError():
            said = httpx.RemoteProtocolError(CLOSED)
        case aiohttp.ClientPayloadError():
            said = httpx.RemoteProtocolError(BROKEN_OFF)
        case OSError() | aiohttp.ClientConnectionError():
            said = httpx.ReadError("")
        case ValueError():
            said = httpx.LocalProtocolError("")
        case _:
            said = httpx.RemoteProtocolError(NOT_HTTP)
    return said


def _as_text(headers: httpx.Headers) -> list[tuple[str, str]]:
    # the body is in memory: its length is known, chunks are not needed
    return [
        (name.decode("ascii"), value.decode()) for name, value in headers.raw if name.lower() != b"transfer-encoding"
    ]
