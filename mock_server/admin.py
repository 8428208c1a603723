"""Admin: what a tester asks the mock itself, from this machine only."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mock_server.world import World

_LOOPBACK = frozenset({"127.0.0.1", "::1", "testclient"})

Handler = Callable[[Request], Awaitable[Response]]


def admin_app(world: World) -> Starlette:
    """Return the routes below `/_mock`."""

    async def health(_: Request) -> Response:
        return _json({"status": "ok", "scenario": world.scenario.name, "time_scale": world.clock.scale})

    async def stats(_: Request) -> Response:
        return _json(world.stats())

    async def audit(request: Request) -> Response:
        return _json(world.audit(request.query_params.get("key", "Code")))

    async def reset(_: Request) -> Response:
        world.reset()
        return _json({"status": "reset"})

    async def calls(request: Request) -> Response:
        last = _number(request.query_params.get("last", ""), 1000)
        names = ("at_s", "company", "endpoint", "rows", "status", "took_s")
        lines = [orjson.dumps(dict(zip(names, call, strict=True))) for call in list(world.calls)[-last:]]
        return Response(b"\n".join([*lines, b""]), media_type="application/x-ndjson")

    async def rows(request: Request) -> Response:
        world.ledger.settle(world.clock.now_s())
        book = world.ledger.book(_number(request.query_params.get("company", ""), 0))
        return _json({"company": book.company, "codes": [book.codes[number] for number in book.numbers()]})

    async def scenario(_: Request) -> Response:
        return _json(world.scenario.model_dump(mode="json", exclude={"token"}))

    return Starlette(
        routes=[
            Route("/_mock/health", _local(health)),
            Route("/_mock/stats", _local(stats)),
            Route("/_mock/audit", _local(audit)),
            Route("/_mock/reset", _local(reset), methods=["POST"]),
            Route("/_mock/calls", _local(calls)),
            Route("/_mock/rows", _local(rows)),
            Route("/_mock/scenario", _local(scenario)),
        ]
    )


def _local(handler: Handler) -> Handler:
    """Let in this machine, but no web page that a browser on it shows."""

    async def guarded(request: Request) -> Response:
        client = request.client
        origin = request.headers.get("origin")
        if client is None or client.host not in _LOOPBACK:
            return _json({"error": "only from this machine"}, status=403)
        if origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}":
            return _json({"error": "not from another page"}, status=403)
        return await handler(request)

    return guarded


def _json(value: Any, status: int = 200) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status_code=status, media_type="application/json")


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else default
