"""The guard: who may ask the admin."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

_LOOPBACK = frozenset({"127.0.0.1", "::1", "testclient"})

Handler = Callable[[Request], Awaitable[Response]]


def local(handler: Handler) -> Handler:
    """Let in this machine, but no web page that a browser on it shows."""

    async def guarded(request: Request) -> Response:
        client = request.client
        origin = request.headers.get("origin")
        if client is None or client.host not in _LOOPBACK:
            return as_json({"error": "only from this machine"}, status=403)
        if origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}":
            return as_json({"error": "not from another page"}, status=403)
        return await handler(request)

    return guarded


def as_json(value: Any, status: int = 200) -> Response:
    """Answer with a value."""
    body = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status_code=status, media_type="application/json")


def fault(text: str, status: int = 400) -> Response:
    """Answer that the question is wrong."""
    return as_json({"error": text}, status=status)
