"""The four ways a call can go out, and one way to try each."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import httpx

from saasload.errors import TransportError
from saasload.model import Reply, Request
from saasload.transport import Network, Sender, open_client
from saasload.transport.network import tls_context

T = TypeVar("T")

TOKEN, QUERY_SECRET, BODY_SECRET = "ACCESS-CCC", "SECRET-AAA", "REFRESH-BBB"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
POST = Request("POST", f"/api/v1/123/crm?sig={QUERY_SECRET}", {"Content-Type": "text/plain"}, BODY_SECRET.encode())


@dataclass(frozen=True, slots=True)
class Engine:
    """What carries the bytes: our transport over aiohttp, or httpx's own engine."""

    name: str
    backend: str
    options: Mapping[str, Any]
    aiohttp: bool

    def run(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run one function on this engine's event loop."""
        return anyio.run(main, backend=self.backend, backend_options=dict(self.options))


AIOHTTP = Engine("aiohttp", "asyncio", {}, aiohttp=True)
UVLOOP = Engine("aiohttp-uvloop", "asyncio", {"use_uvloop": True}, aiohttp=True)
HTTPX = Engine("httpx", "asyncio", {}, aiohttp=False)
TRIO = Engine("httpx-trio", "trio", {}, aiohttp=False)
OURS, ALL = (AIOHTTP, UVLOOP), (AIOHTTP, UVLOOP, HTTPX, TRIO)


@asynccontextmanager
async def open_sender(
    engine: Engine, base_url: str, *, parallel: int = 4, network: Network | None = None
) -> AsyncIterator[Sender]:
    """Open a client on an engine and a sender over it."""
    network = network or Network()
    if engine is HTTPX:
        limits = httpx.Limits(max_connections=parallel, max_keepalive_connections=parallel)
        tls = tls_context(network) if base_url.startswith("https") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = httpx.AsyncHTTPTransport(verify=tls, limits=limits)
        async with httpx.AsyncClient(
            transport=transport, timeout=httpx.Timeout(None, connect=network.connect_s), trust_env=False
        ) as client:
            yield Sender(base_url, client, HEADERS, network=network)
    else:
        async with open_client(base_url=base_url, parallel=parallel, network=network) as client:
            yield Sender(base_url, client, HEADERS, network=network)


def send(
    engine: Engine, base_url: str, *requests: Request, network: Network | None = None
) -> list[Reply | TransportError]:
    """Send requests one after another and collect what comes of each."""

    async def main() -> list[Reply | TransportError]:
        heard: list[Reply | TransportError] = []
        async with open_sender(engine, base_url, network=network) as sender:
            for request in requests or (POST,):
                try:
                    heard.append(await sender.send(request))
                except TransportError as error:
                    heard.append(error)
        return heard

    return engine.run(main)
