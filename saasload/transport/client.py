"""Open the httpx client that fits the clock: aiohttp on asyncio, an application in this process on virtual time."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx

from saasload.transport.network import Network, proxy_for, target_url, tls_context

App = Callable[..., Awaitable[None]]
"""An ASGI application that answers in this process instead of a target."""


@asynccontextmanager
async def open_client(
    *,
    base_url: str,
    parallel: int,
    app: App | None = None,
    auth: httpx.Auth | None = None,
    network: Network | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """Open an httpx client sized for `parallel` calls: aiohttp below on asyncio, httpx's own engine on trio.

    With `app` no socket is opened: the application answers in this process, and an exception it raises is raised here.
    Raises ConfigError for a proxy or a certificate that cannot be used.
    """
    network = network or Network()
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they log every URL, with its query
    client = _Client(
        transport=_transport(target_url(base_url), parallel, app, network),
        base_url=base_url,
        # a plain Auth does nothing, and spares a look for credentials in each URL
        auth=auth or httpx.Auth(),
        timeout=httpx.Timeout(None, connect=network.connect_s),
        headers={"User-Agent": "saasload", "Accept-Encoding": "gzip, deflate"},
        trust_env=False,
    )
    try:
        yield client
    finally:
        with anyio.move_on_after(2.0, shield=True):
            await client.aclose()


class _NoCookies(httpx.Cookies):
    """Forgets what it is told."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Keep nothing."""


class _Client(httpx.AsyncClient):
    """An httpx client without cookies: one company's session must not travel with another's call."""

    _nothing = _NoCookies()

    @property
    def cookies(self) -> httpx.Cookies:
        """Always empty."""
        return self._nothing

    @cookies.setter
    def cookies(self, cookies: object) -> None:
        raise NotImplementedError

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request; where nobody signs it, straight through the transport.

        httpx's own way there (authentication, redirects, hooks, cookies: all of them nothing here) takes 0.06 ms a
        call, as much as aiohttp's whole engine.
        """
        if type(self.auth) is not httpx.Auth:
            return await super().send(request, **options)
        response = await self._transport_for_url(request.url).handle_async_request(request)
        response.request = request
        return response


def _transport(target: httpx.URL, parallel: int, app: App | None, network: Network) -> httpx.AsyncBaseTransport:
    if app is not None:
        return httpx.ASGITransport(app=app, raise_app_exceptions=True, client=("127.0.0.1", 123))
    if _on_asyncio():
        from saasload.transport.over_aiohttp import AiohttpTransport  # noqa: PLC0415 - slow to import

        transport = AiohttpTransport(parallel=parallel, network=network)
        transport.prepare(str(target))
        return transport
    # above 20 kept connections the pool of httpcore 1.0 takes ten times the CPU
    limits = httpx.Limits(
        max_connections=parallel, max_keepalive_connections=min(parallel, 20), keepalive_expiry=network.keepalive_s
    )
    # for a plain target a context that trusts nobody: httpx would load its own, by its own reading of the environment
    tls = tls_context(network) if target.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncHTTPTransport(verify=tls, proxy=proxy_for(target, network), limits=limits, trust_env=False)


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
